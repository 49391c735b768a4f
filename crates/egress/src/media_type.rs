//! Which kinds of content a fetch may bring in: text, and nothing else.

/// A `Content-Type` header, read leniently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MediaType {
    essence: String,
    charset: Option<String>,
}

impl MediaType {
    /// Reads `text/html; charset="utf-8"`. Anything unreadable has an empty essence.
    pub(crate) fn parse(header: &str) -> Self {
        let mut parts = header.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts
            .filter_map(|part| part.split_once('='))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
            .map(|(_, value)| value.trim().trim_matches(['"', '\'']).trim().to_owned())
            .filter(|label| !label.is_empty());
        Self { essence, charset }
    }

    pub(crate) fn essence(&self) -> &str {
        &self.essence
    }

    pub(crate) fn charset(&self) -> Option<&str> {
        self.charset.as_deref()
    }

    /// Parsed as HTML. An empty type, which only a caller of `extract_page` can give, counts too.
    pub(crate) fn is_html(&self) -> bool {
        matches!(self.essence.as_str(), "" | "text/html" | "application/xhtml+xml")
    }

    pub(crate) fn is_xml(&self) -> bool {
        matches!(self.essence.as_str(), "text/xml" | "application/xml")
            || self.essence.ends_with("+xml") && !self.essence.starts_with("image/")
    }

    /// HTML, XHTML, XML, plain text or JSON.
    pub(crate) fn is_text(&self) -> bool {
        !self.essence.is_empty() && self.is_html()
            || self.is_xml()
            || self.essence == "text/plain"
            || self.essence == "application/json"
            || self.essence.starts_with("application/") && self.essence.ends_with("+json")
    }
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
            (";;;", "", None),
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
}
