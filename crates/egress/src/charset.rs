//! From the bytes of a page to text.
//!
//! The order: a byte order mark; then *content that is UTF-8 and not pure ASCII is UTF-8*, whatever a
//! label says, because other encodings almost never look like it by accident while wrong labels are
//! common, and a few bad bytes do not change that; then the label of the `Content-Type` header; then that of the page
//! (`<meta charset>`, `<meta http-equiv=content-type>`, `<?xml encoding>`) in its first 64 KiB;
//! then detection. Labels are those of the WHATWG Encoding Standard; unknown ones are skipped.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, X_USER_DEFINED};

use crate::media_type::MediaType;
use crate::scan;

/// How far a page is searched for its own label.
const LABEL_WITHIN: usize = 64 * 1024;
/// Characters beyond ASCII that stand against one bad sequence.
const RIGHT_FOR_ONE_WRONG: usize = 3;

/// Decodes `bytes`; malformed sequences become U+FFFD. A byte order mark is not part of the text.
pub(crate) fn decode(bytes: &[u8], media_type: &MediaType) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        let (text, _) = encoding.decode_without_bom_handling(&bytes[mark..]);
        return text.into_owned();
    }
    let encoding = choose(bytes, media_type);
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    text.into_owned()
}

fn choose(bytes: &[u8], media_type: &MediaType) -> &'static Encoding {
    if !bytes.is_ascii() && is_utf8(bytes) {
        return UTF_8;
    }
    from_label(media_type.charset()).or_else(|| from_page(bytes, media_type)).unwrap_or_else(|| detect(bytes))
}

/// Valid UTF-8, UTF-8 that was cut inside its last character, or UTF-8 with a few bad bytes: text in
/// another encoding has more sequences that are wrong than such that are right by accident.
fn is_utf8(bytes: &[u8]) -> bool {
    let error = match std::str::from_utf8(bytes) {
        Ok(_) => return true,
        Err(error) => error,
    };
    if error.error_len().is_none() && error.valid_up_to() > 0 {
        return true;
    }
    let (mut right, mut wrong) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        right += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        wrong += usize::from(!chunk.invalid().is_empty());
    }
    right >= 3 && right >= RIGHT_FOR_ONE_WRONG * wrong
}

fn from_label(label: Option<&str>) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label?.as_bytes())
}

/// The page's own label. A page whose label can be read as ASCII is not UTF-16 (HTML standard).
fn from_page(bytes: &[u8], media_type: &MediaType) -> Option<&'static Encoding> {
    if !(media_type.is_html() || media_type.is_xml()) {
        return None;
    }
    let head = &bytes[..bytes.len().min(LABEL_WITHIN)];
    let ascii: String = head.iter().map(|byte| char::from(byte & 0x7f)).collect();
    let label = xml_label(&ascii).or_else(|| scan::charset_label(&ascii))?;
    let encoding = from_label(Some(&label))?;
    if encoding == UTF_16LE || encoding == UTF_16BE || encoding == X_USER_DEFINED {
        return Some(UTF_8);
    }
    Some(encoding)
}

/// The encoding that an XML declaration names.
fn xml_label(page: &str) -> Option<String> {
    let declaration = page.trim_start().strip_prefix("<?xml")?;
    let declaration = &declaration[..declaration.find("?>")?];
    let value = declaration.split_once("encoding")?.1.trim_start();
    let value = value.strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    value[1..].split_once(quote).map(|(label, _)| label.to_owned())
}

fn detect(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, EUC_JP, GBK, WINDOWS_1251, WINDOWS_1252};

    use super::*;

    fn html(charset: Option<&str>) -> MediaType {
        let charset = charset.map_or(String::new(), |label| format!("; charset={label}"));
        MediaType::parse(&format!("text/html{charset}"))
    }

    #[test]
    fn a_byte_order_mark_decides_and_is_gone() {
        for bytes in [&b"\xef\xbb\xbfa\xc3\xa9"[..], b"\xff\xfea\0\xe9\0", b"\xfe\xff\0a\0\xe9"] {
            assert_eq!(decode(bytes, &html(Some("gbk"))), "aé");
        }
    }

    #[test]
    fn valid_utf8_wins_over_a_wrong_label() {
        assert_eq!(decode("世界é".as_bytes(), &html(Some("iso-8859-1"))), "世界é");
        let page = "<meta charset=big5>世界";
        assert_eq!(decode(page.as_bytes(), &html(None)), page);
    }

    #[test]
    fn utf8_cut_inside_a_character_is_still_utf8() {
        let text = decode(&"世界".as_bytes()[..5], &html(Some("gbk")));
        assert_eq!(text, "世\u{fffd}");
    }

    #[test]
    fn one_bad_byte_does_not_decide() {
        for label in [None, Some("iso-8859-1"), Some("gbk")] {
            assert_eq!(decode(b"\xe4\xb8\x96\xe7\x95\x8c\xff\xe6\x9d\xaf", &html(label)), "世界\u{fffd}杯");
        }
        let (bytes, _, _) = WINDOWS_1252.encode("Mbappé à Wembley – “très déçu”");
        assert_eq!(decode(&bytes, &html(Some("windows-1252"))), "Mbappé à Wembley – “très déçu”");
        let (bytes, _, _) = GBK.encode("世界杯决赛在新泽西举行，家居广场人山人海。");
        assert_eq!(decode(&bytes, &html(Some("gbk"))), "世界杯决赛在新泽西举行，家居广场人山人海。");
    }

    #[test]
    fn the_header_comes_before_the_page() {
        let (bytes, _, _) = GBK.encode("<meta charset=big5>家居");
        assert_eq!(decode(&bytes, &html(Some("gbk"))), "<meta charset=big5>家居");
    }

    #[test]
    fn the_page_s_label_is_found_in_every_form() {
        for (encoding, page) in [
            (GBK, "<meta http-equiv=Content-Type content='charset=gbk'>家居"),
            (GBK, "<META CONTENT='text/html; CHARSET = \"GB2312\"' HTTP-EQUIV=content-type>家居"),
            (BIG5, "<!-- <meta charset=gbk> --><meta charset=\"big5\">家居"),
            (WINDOWS_1251, "<script>'<meta charset=gbk>'</script><meta charset=cp1251>Привет"),
            (EUC_JP, "<?xml version='1.0' encoding='euc-jp'?><html>日本語"),
        ] {
            let (bytes, _, unmappable) = encoding.encode(page);
            assert!(!unmappable);
            assert_eq!(decode(&bytes, &html(None)), page);
        }
    }

    #[test]
    fn an_unknown_label_is_skipped() {
        let (bytes, _, _) = GBK.encode("<meta charset=gbk>家居");
        assert_eq!(decode(&bytes, &html(Some("utf-9000"))), "<meta charset=gbk>家居");
        assert_eq!(decode(&bytes, &html(Some("replacement"))), "<meta charset=gbk>家居");
    }

    #[test]
    fn a_label_of_utf16_inside_an_ascii_readable_page_means_utf8() {
        assert_eq!(decode(b"<meta charset=utf-16>a\xff", &html(None)), "<meta charset=utf-16>a\u{fffd}");
    }

    #[test]
    fn without_a_label_it_is_detected() {
        let russian = "Привет, мир! Это обычный русский текст без всякой метки.";
        let (bytes, _, _) = WINDOWS_1251.encode(russian);
        assert_eq!(decode(&bytes, &html(None)), russian);
        let (bytes, _, _) = WINDOWS_1252.encode("Déjà vu, garçon");
        assert_eq!(decode(&bytes, &html(None)), "Déjà vu, garçon");
        assert_eq!(decode(b"", &html(None)), "");
    }
}
