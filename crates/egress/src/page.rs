//! What a sandbox asks for and what it gets back.

use std::str::FromStr;

use serde::Serialize;

use crate::extract::Document;
use crate::links::Link;

/// The longest `BODY`, in bytes.
pub const BODY_BYTES: usize = 8192;

/// What `BODY` holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// The readable text of the page.
    #[default]
    Text,
    /// The page's source, decoded.
    Html,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "text" => Ok(Self::Text),
            "html" => Ok(Self::Html),
            _ => Err(UnknownFormat),
        }
    }
}

/// A format that is neither `"text"` nor `"html"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownFormat;

impl std::fmt::Display for UnknownFormat {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "the format must be \"text\" or \"html\"")
    }
}

impl std::error::Error for UnknownFormat {}

/// One call of `fetch_url`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// The URL as the sandbox gave it.
    pub url: String,
    /// Where `BODY` starts, in bytes of the text or source: 0 or an earlier `NEXT_OFFSET`.
    pub offset: usize,
    /// What `BODY` holds.
    pub format: Format,
}

impl FetchRequest {
    /// The start of a page, as text.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), offset: 0, format: Format::Text }
    }
}

/// How a fetch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// There is a page. It may be cut: then `reason` says so.
    Ok,
    /// A rule refused it, before anything was sent to the host or because of what it sent.
    Blocked,
    /// It was tried and failed.
    Error,
}

/// The answer to a `fetch_url`, in the keys the sandbox sees. `STATUS`, `URL`, `TITLE`,
/// `DESCRIPTION`, `LINKS` and `BODY` are always there, empty when there is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub struct Page {
    /// How it ended.
    pub status: Status,
    /// The URL after redirects; of a blocked redirect, the URL that was refused.
    pub url: String,
    /// One line, at most 1 KiB.
    pub title: String,
    /// One line, at most 4 KiB.
    pub description: String,
    /// Absolute http(s) URLs without fragments, each once, stories first: at most 200, of at most
    /// 2 KiB each and 64 KiB together.
    pub links: Vec<String>,
    /// The links that say something: address and text, in the order of `links`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub link_texts: Vec<Link>,
    /// Whole characters, at most [`BODY_BYTES`].
    pub body: String,
    /// Why it is not ok, or, of a page that is, why it is not whole ("truncated: …").
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The offset that continues `body`; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

impl Page {
    /// A page of `document`: `BODY` starts at `offset`, or at the next lower character boundary,
    /// and has at most `limit` bytes. A limit below 4 may be too small for one character.
    pub(crate) fn of(document: &Document, url: &str, offset: usize, format: Format, limit: usize) -> Self {
        let whole = match format {
            Format::Text => &document.text,
            Format::Html => &document.source,
        };
        let start = whole.floor_char_boundary(offset);
        let end = whole.floor_char_boundary(start.saturating_add(limit));
        Self {
            status: Status::Ok,
            url: url.to_owned(),
            title: document.title.clone(),
            description: document.description.clone(),
            links: document.links.iter().map(|link| link.address.clone()).collect(),
            link_texts: document.links.iter().filter(|link| link.says_something()).cloned().collect(),
            body: whole[start..end].to_owned(),
            reason: None,
            next_offset: (end < whole.len()).then_some(end),
        }
    }

    /// The answer without a page.
    pub(crate) fn without(status: Status, url: &str, reason: String) -> Self {
        Self {
            status,
            url: url.to_owned(),
            title: String::new(),
            description: String::new(),
            links: Vec::new(),
            link_texts: Vec::new(),
            body: String::new(),
            reason: Some(reason),
            next_offset: None,
        }
    }
}

/// Extracts a page from bytes, without any network: `STATUS` is always `ok`.
///
/// `content_type` is the response header and decides between HTML (also when it is empty) and text
/// that is passed through (JSON, XML, plain). `url` is the page's own URL: links are relative to it
/// or to its `<base>`. `limit` bounds `BODY` in bytes.
#[must_use]
pub fn extract_page(html: &[u8], content_type: &str, url: &str, limit: usize) -> Page {
    extract_page_at(html, content_type, url, 0, Format::Text, limit)
}

/// [`extract_page`] from `offset` on and in either format.
#[must_use]
pub fn extract_page_at(
    html: &[u8],
    content_type: &str,
    url: &str,
    offset: usize,
    format: Format,
    limit: usize,
) -> Page {
    let document = Document::read(html, content_type, url);
    Page::of(&document, url, offset, format, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_the_contract() {
        let blocked = Page::without(Status::Blocked, "https://evil.com/", "no".into());
        assert_eq!(
            serde_json::to_string(&blocked).expect("json"),
            r#"{"STATUS":"blocked","URL":"https://evil.com/","TITLE":"","DESCRIPTION":"","LINKS":[],"BODY":"","REASON":"no"}"#
        );
        let mut page = extract_page(b"abcdef", "text/plain", "https://www.bbc.com/", 4);
        page.links.clear();
        assert_eq!(
            serde_json::to_string(&page).expect("json"),
            r#"{"STATUS":"ok","URL":"https://www.bbc.com/","TITLE":"","DESCRIPTION":"","LINKS":[],"BODY":"abcd","NEXT_OFFSET":4}"#
        );
    }

    #[test]
    fn following_next_offset_reads_everything_once() {
        let text = "aé世界🙂".repeat(50);
        for format in [Format::Text, Format::Html] {
            let mut read = String::new();
            let mut next = Some(0);
            while let Some(offset) = next {
                let page = extract_page_at(text.as_bytes(), "text/plain", "", offset, format, 7);
                assert!(page.body.len() <= 7 && !page.body.is_empty());
                read.push_str(&page.body);
                next = page.next_offset;
            }
            assert_eq!(read, text);
        }
    }

    #[test]
    fn offsets_inside_a_character_or_past_the_end_are_safe() {
        let at = |offset| extract_page_at("世界".as_bytes(), "text/plain", "", offset, Format::Text, 4);
        assert_eq!(at(1).body, "世");
        assert_eq!(at(5).body, "界");
        for past in [6, 7, usize::MAX] {
            assert_eq!((at(past).body.as_str(), at(past).next_offset), ("", None));
        }
    }

    #[test]
    fn formats_have_names() {
        assert_eq!("text".parse(), Ok(Format::Text));
        assert_eq!("html".parse(), Ok(Format::Html));
        assert_eq!("TEXT".parse::<Format>(), Err(UnknownFormat));
    }
}
