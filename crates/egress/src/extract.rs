//! What a page says: title, description, links and readable text, from its bytes.
//!
//! `TITLE` is the first that is not empty of `<title>` (outside `<svg>`), `og:title`,
//! `twitter:title`, and the headline of JSON-LD. `DESCRIPTION` is the first of `description`,
//! `og:description`, `twitter:description`, and the description of JSON-LD.

use crate::charset::decode;
use crate::decompress::{is_gzip, uncompressed};
use crate::features::Hints;
use crate::feed::{self, is_xml_feed, plain};
use crate::layout::Layout;
use crate::lines::lines;
use crate::links::{Link, links};
use crate::media_type::MediaType;
use crate::readable::{Kind, readable};
use crate::scan::{Scanned, scan};
pub(crate) use crate::title::{description, title};

/// Most bytes of a page that was handed over compressed.
const UNCOMPRESSED_BYTES: usize = 16 * 1024 * 1024;

/// A text of JSON-LD that is shorter than this says no more than a description.
const BODY_BYTES: usize = 40;

/// A page that was read whole; [`Page`](crate::Page)s are cut out of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) links: Vec<Link>,
    pub(crate) text: String,
    pub(crate) source: String,
}

impl Document {
    /// Reads a page of any text type. Without a type it is what it looks like.
    pub(crate) fn read(bytes: &[u8], content_type: &str, url: &str) -> Self {
        if is_gzip(bytes) {
            return Self::read(&uncompressed(bytes, UNCOMPRESSED_BYTES), content_type, url);
        }
        let Some(media_type) = MediaType::parse(content_type).or_sniffed(bytes) else {
            return Self::default();
        };
        let source = decode(bytes, &media_type);
        let page = Self::of_source(&source, &media_type, url);
        Self { source, ..page }
    }

    fn of_source(source: &str, media_type: &MediaType, url: &str) -> Self {
        let feed = if media_type.is_xml() && !media_type.is_html() || is_xml_feed(source) {
            feed::xml(source, url)
        } else if media_type.is_json() {
            feed::json(source, url)
        } else {
            None
        };
        if let Some(feed) = feed {
            return feed;
        }
        let xhtml = media_type.is_xhtml() || media_type.is_xml() && is_xhtml(source);
        if media_type.is_html() || xhtml {
            return Self::of(&scan(source, xhtml), url);
        }
        Self { text: source.to_owned(), ..Self::default() }
    }

    fn of(scanned: &Scanned, url: &str) -> Self {
        let layout = Layout::of(&scanned.blocks);
        let (title, description) = (title(scanned), description(scanned));
        Self {
            links: links(scanned, &layout, url),
            text: text(scanned, &layout, &title, &description),
            title,
            description,
            source: String::new(),
        }
    }
}

/// XHTML that calls itself XML.
fn is_xhtml(source: &str) -> bool {
    let head = &source[..source.floor_char_boundary(2000)];
    head.contains("<html") && head.contains("http://www.w3.org/1999/xhtml")
}

/// The readable text; that of JSON-LD where the page itself shows less than half of it.
fn text(scanned: &Scanned, layout: &Layout, title: &str, description: &str) -> String {
    let body = scanned.linked_data.body.as_str();
    let hints = Hints { title, description, body };
    let page = &scanned.blocks;
    let (kind, kept) = readable(page, layout, &hints);
    let text = match kind {
        Kind::Article => kept.iter().map(|index| page.text(&page.blocks[*index])).collect::<Vec<_>>().join("\n"),
        Kind::Other => lines(scanned, &kept).join("\n"),
    };
    // The page shows only the start of its article, or nothing of it.
    if body.len() > BODY_BYTES && 2 * body.len() > 3 * text.len() { plain(body) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://www.bbc.com/sport/";

    fn read(html: &str) -> Document {
        Document::read(html.as_bytes(), "text/html", URL)
    }

    #[test]
    fn other_text_passes_through() {
        for content_type in
            ["application/json", "text/plain; charset=utf-8", "text/markdown", "text/csv", "application/xml"]
        {
            let document = Document::read(b"{\"a\": \"<b>\"}\r\n", content_type, URL);
            assert_eq!(document.text, "{\"a\": \"<b>\"}\r\n");
            assert_eq!(document.source, document.text);
            assert_eq!(document.title, "");
        }
    }

    #[test]
    fn a_feed_is_one_whatever_it_calls_itself() {
        let feed = "<?xml version='1.0'?><rss><channel><title>T</title><item><title>One</title></item></channel></rss>";
        for content_type in ["application/rss+xml", "text/xml", "text/html", ""] {
            let document = Document::read(feed.as_bytes(), content_type, URL);
            assert_eq!((document.title.as_str(), document.text.as_str()), ("T", "One"), "{content_type}");
            assert_eq!(document.source, feed);
        }
    }

    #[test]
    fn xhtml_that_calls_itself_xml_is_read_as_a_page() {
        let page = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><title>T</title><script/><p>Text</p></html>";
        let document = Document::read(page.as_bytes(), "application/xml", URL);
        assert_eq!((document.title.as_str(), document.text.as_str()), ("T", "Text"));
    }

    #[test]
    fn text_that_the_page_only_hides_is_taken_from_its_data() {
        let story = "Two otters were seen at the old weir on Monday. A volunteer filmed them for a minute.";
        let page = format!(
            "<script type=application/ld+json>{{\"articleBody\": \"{story}\"}}</script><p>Two otters were seen.<p hidden>{story}"
        );
        assert_eq!(read(&page).text, story);
    }
}
