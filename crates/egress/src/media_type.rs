//! Which kinds of content a fetch may bring in: text, and nothing else.

/// A `Content-Type` header, read leniently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MediaType {
    essence: String,
    charset: Option<String>,
}

/// How the content itself begins, for when the header says nothing (WHATWG MIME Sniffing, 7.1).
const BINARY_WITHIN: usize = 1445;

impl MediaType {
    /// Reads `text/html; charset="utf-8"`. Of several types in one header the last readable one counts,
    /// with the charset of an earlier one of the same name (Fetch standard, "extract a MIME type").
    /// A header without a readable type has an empty essence.
    pub(crate) fn parse(header: &str) -> Self {
        let mut found = Self { essence: String::new(), charset: None };
        for one in header.split(',') {
            let one = Self::parse_one(one);
            if !is_essence(&one.essence) {
                continue;
            }
            let charset = one.charset.or(if one.essence == found.essence { found.charset } else { None });
            found = Self { essence: one.essence, charset };
        }
        found
    }

    fn parse_one(header: &str) -> Self {
        let mut parts = header.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts
            .filter_map(|part| part.split_once('='))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
            .map(|(_, value)| value.trim().trim_matches(['"', '\'']).trim().to_owned())
            .filter(|label| !label.is_empty());
        Self { essence, charset }
    }

    /// The type of content that no header names: HTML, XML, or text that is not binary.
    pub(crate) fn sniff(bytes: &[u8]) -> Option<Self> {
        let named = |essence: &str| Some(Self { essence: essence.to_owned(), charset: None });
        let marked = [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| bytes.starts_with(mark));
        let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
        if start.starts_with(b"%PDF-") || start.starts_with(b"%!PS-Adobe-") {
            return None;
        }
        if start.starts_with(b"<?xml") {
            return named("text/xml");
        }
        if let [b'<', next, ..] = start
            && (next.is_ascii_alphabetic() || matches!(next, b'!' | b'/'))
        {
            return named("text/html");
        }
        let head = &bytes[..bytes.len().min(BINARY_WITHIN)];
        let binary = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
        if marked || !head.iter().any(binary) { named("text/plain") } else { None }
    }

    /// The type itself, or what the content looks like when the header named none.
    pub(crate) fn or_sniffed(self, bytes: &[u8]) -> Option<Self> {
        if self.is_named() { Some(self) } else { Self::sniff(bytes) }
    }

    pub(crate) fn essence(&self) -> &str {
        &self.essence
    }

    pub(crate) fn charset(&self) -> Option<&str> {
        self.charset.as_deref()
    }

    pub(crate) fn is_named(&self) -> bool {
        !self.essence.is_empty()
    }

    /// Parsed as HTML.
    pub(crate) fn is_html(&self) -> bool {
        self.essence == "text/html" || self.is_xhtml()
    }

    pub(crate) fn is_xhtml(&self) -> bool {
        self.essence == "application/xhtml+xml"
    }

    pub(crate) fn is_xml(&self) -> bool {
        matches!(self.essence.as_str(), "text/xml" | "application/xml")
            || self.essence.ends_with("+xml") && !self.essence.starts_with("image/")
    }

    pub(crate) fn is_json(&self) -> bool {
        matches!(self.essence.as_str(), "application/json" | "text/json")
            || self.essence.starts_with("application/") && self.essence.ends_with("+json")
    }

    /// HTML, XML, JSON, and text that is written to be read or is data in lines. Not the languages of
    /// scripts and style sheets, and not streams of events.
    pub(crate) fn is_text(&self) -> bool {
        self.is_html()
            || self.is_xml()
            || self.is_json()
            || matches!(
                self.essence.as_str(),
                "text/plain"
                    | "text/markdown"
                    | "text/x-markdown"
                    | "text/csv"
                    | "text/tab-separated-values"
                    | "text/vtt"
                    | "text/calendar"
                    | "text/yaml"
                    | "text/x-yaml"
                    | "application/yaml"
                    | "application/x-yaml"
                    | "application/x-ndjson"
                    | "application/ndjson"
                    | "application/jsonl"
                    | "application/csv"
            )
    }
}

/// `type/subtype` of the characters that HTTP allows in a token.
fn is_essence(essence: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    essence.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype) && kind != "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_essence_and_charset() {
        for (header, essence, charset) in [
            ("text/html", "text/html", None),
            ("Text/HTML; Charset=UTF-8", "text/html", Some("UTF-8")),
            ("text/html;a=b; charset = \"gbk\" ;c", "text/html", Some("gbk")),
            ("text/html; charset=", "text/html", None),
            ("text/html;", "text/html", None),
            (";;;", "", None),
            ("text / html", "", None),
            ("html", "", None),
            ("*/*", "", None),
            ("text/html, text/html; charset=utf-8", "text/html", Some("utf-8")),
            ("text/html; charset=utf-8, text/html", "text/html", Some("utf-8")),
            ("text/html; charset=utf-8, text/plain", "text/plain", None),
            ("text/html, broken", "text/html", None),
        ] {
            let media_type = MediaType::parse(header);
            assert_eq!(media_type.essence(), essence, "{header}");
            assert_eq!(media_type.charset(), charset, "{header}");
        }
    }

    #[test]
    fn only_text_passes() {
        for header in [
            "text/html",
            "application/xhtml+xml",
            "application/xml",
            "text/xml",
            "application/rss+xml",
            "text/plain",
            "application/json",
            "application/ld+json",
            "text/json",
            "text/markdown",
            "text/csv",
            "text/vtt",
            "text/calendar",
            "application/yaml",
            "application/x-ndjson",
        ] {
            assert!(MediaType::parse(header).is_text(), "{header}");
        }
        for header in [
            "",
            "image/png",
            "image/svg+xml",
            "application/octet-stream",
            "application/pdf",
            "video/mp4",
            "text/css",
            "text/javascript",
            "text/event-stream",
            "multipart/form-data",
        ] {
            assert!(!MediaType::parse(header).is_text(), "{header}");
        }
    }

    #[test]
    fn content_without_a_type_is_what_it_looks_like() {
        for (content, essence) in [
            (&b" \n<!DOCTYPE html><p>x"[..], Some("text/html")),
            (b"\xef\xbb\xbf<main>x", Some("text/html")),
            (b"<?xml version='1.0'?><rss/>", Some("text/xml")),
            (b"a < b", Some("text/plain")),
            (b"\xff\xfea\0", Some("text/plain")),
            ("世界".as_bytes(), Some("text/plain")),
            (b"", Some("text/plain")),
            (b"%PDF-1.7", None),
            (b"\x89PNG\r\n\x1a\n\0\0", None),
            (b"PK\x03\x04", None),
        ] {
            let sniffed = MediaType::sniff(content);
            assert_eq!(sniffed.as_ref().map(MediaType::essence), essence, "{content:?}");
        }
    }
}
