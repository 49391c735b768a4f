//! RSS, Atom and JSON feeds: what each item is called, what it says, where it is and when it was.
//!
//! XML feeds are read with the tokenizer of the pages, because feeds of the web are often not well
//! formed, and a strict parser would give nothing.

use std::fmt;

use html5gum::State;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use url::Url;

use crate::element::Attributes;
use crate::extract::Document;
use crate::links::{LINKS, Link, absolute};
use crate::scan::scan;
use crate::text::one_line;
use crate::tokens::{Reader, read};

/// Most items of a feed, and bytes of each of their pieces.
const ITEMS: usize = 1000;
const TITLE_BYTES: usize = 1024;
const DESCRIPTION_BYTES: usize = 4096;
/// Bytes of the whole text of an item, which stands in for a description.
const CONTENT_BYTES: usize = 600;

#[derive(Debug, Default)]
struct Item {
    title: String,
    description: String,
    content: String,
    link: String,
    date: String,
}

/// Reads an RSS or Atom feed; `None` when the XML is something else.
pub(crate) fn xml(source: &str, url: &str) -> Option<Document> {
    let mut feed = XmlFeed::default();
    read(source, &mut feed);
    feed.is_feed.then(|| document(feed.channel, feed.items, url))
}

/// Whether a page that calls itself HTML begins like a feed.
pub(crate) fn is_xml_feed(source: &str) -> bool {
    let mut rest = source.trim_start();
    for _ in 0..8 {
        if let Some((_, after)) = rest.strip_prefix("<?").and_then(|rest| rest.split_once("?>")) {
            rest = after.trim_start();
        } else if let Some((_, after)) = rest.strip_prefix("<!--").and_then(|rest| rest.split_once("-->")) {
            rest = after.trim_start();
        }
    }
    ["<rss", "<feed", "<rdf:RDF"].iter().any(|root| rest.starts_with(root))
}

/// Reads a JSON feed; `None` when the JSON is something else.
pub(crate) fn json(source: &str, url: &str) -> Option<Document> {
    if !source.contains("jsonfeed.org/version/") {
        return None;
    }
    let feed: JsonFeed = serde_json::from_str(source).ok()?;
    if !feed.version.contains("jsonfeed.org/version/") {
        return None;
    }
    let channel = Item { title: feed.title, description: feed.description, ..Item::default() };
    let items = feed.items.into_iter().map(|item| Item {
        title: item.title,
        description: item.summary,
        content: if item.content_text.is_empty() { plain(&item.content_html) } else { item.content_text },
        link: item.url,
        date: item.date_published,
    });
    Some(document(channel, items.collect(), url))
}

fn document(channel: Item, items: Vec<Item>, url: &str) -> Document {
    let base = Url::parse(url).ok();
    let mut text = Vec::new();
    let mut links: Vec<Link> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for item in items {
        let title = one_line(&plain(&item.title), TITLE_BYTES);
        let description = match one_line(&plain(&item.description), DESCRIPTION_BYTES) {
            said if said.is_empty() => one_line(&plain(&item.content), CONTENT_BYTES),
            said => said,
        };
        let address = if item.link.trim().is_empty() { None } else { absolute(&item.link, base.as_ref()) };
        let end = one_line(
            &format!("{} {}", address.clone().unwrap_or_default(), item.date),
            TITLE_BYTES + DESCRIPTION_BYTES,
        );
        text.extend([&title, &description, &end].into_iter().filter(|line| !line.is_empty()).cloned());
        if let Some(address) = address
            && links.len() < LINKS
            && known.insert(address.clone())
        {
            links.push(Link { address, text: one_line(&title, 200) });
        }
    }
    Document {
        title: one_line(&plain(&channel.title), TITLE_BYTES),
        description: one_line(&plain(&channel.description), DESCRIPTION_BYTES),
        links,
        text: text.join("\n"),
        source: String::new(),
    }
}

/// The text of a piece, which may be HTML.
pub(crate) fn plain(piece: &str) -> String {
    if !piece.contains(['<', '&']) {
        return piece.to_owned();
    }
    let blocks = scan(piece, false).blocks;
    blocks.blocks.iter().map(|block| blocks.text(block)).collect::<Vec<_>>().join(" ")
}

/// The piece of a feed or item that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Title,
    Description,
    Content,
    Link,
    Date,
}

impl Field {
    /// The field of an element of RSS 2, RSS 1 or Atom; of two dates the first one counts.
    fn of(tag: &[u8]) -> Option<Self> {
        match tag {
            b"title" => Some(Self::Title),
            b"description" | b"summary" | b"subtitle" | b"itunes:summary" => Some(Self::Description),
            b"content" | b"content:encoded" => Some(Self::Content),
            b"link" => Some(Self::Link),
            b"pubdate" | b"published" | b"updated" | b"dc:date" => Some(Self::Date),
            _ => None,
        }
    }

    fn slot(self, item: &mut Item) -> &mut String {
        match self {
            Self::Title => &mut item.title,
            Self::Description => &mut item.description,
            Self::Content => &mut item.content,
            Self::Link => &mut item.link,
            Self::Date => &mut item.date,
        }
    }
}

#[derive(Debug, Default)]
struct XmlFeed {
    is_feed: bool,
    started: bool,
    channel: Item,
    items: Vec<Item>,
    in_item: bool,
    /// How deep inside a field, so that markup inside is a part of it.
    field: Option<(Field, usize)>,
    /// How deep inside an element that is neither a field nor an item (`<image>`, `<author>`).
    aside: usize,
    text: String,
}

impl XmlFeed {
    fn keep(&mut self, field: Field, value: String) {
        let item = match self.items.last_mut() {
            Some(item) if self.in_item => item,
            _ => &mut self.channel,
        };
        let slot = field.slot(item);
        if slot.trim().is_empty() {
            *slot = value;
        }
    }

    fn start_field(&mut self, field: Field, attributes: &Attributes, self_closing: bool) {
        if let (Field::Link, Some(href)) = (field, &attributes.href)
            && attributes.relation.as_deref().is_none_or(|relation| relation == "alternate")
        {
            self.keep(field, href.clone());
        }
        if !self_closing {
            self.field = Some((field, 1));
            self.text.clear();
        }
    }
}

impl Reader for XmlFeed {
    fn start(&mut self, tag: &[u8], attributes: &Attributes, self_closing: bool) -> Option<State> {
        if !self.started {
            self.started = true;
            self.is_feed = matches!(tag, b"rss" | b"feed" | b"rdf:rdf");
        }
        if let Some((_, depth)) = &mut self.field {
            *depth += usize::from(!self_closing);
            self.text.push(' ');
        } else if self.aside > 0 {
            self.aside += usize::from(!self_closing);
        } else if matches!(tag, b"item" | b"entry") {
            self.in_item = self.items.len() < ITEMS;
            if self.in_item {
                self.items.push(Item::default());
            } else {
                self.aside = 1;
            }
        } else if let Some(field) = Field::of(tag) {
            self.start_field(field, attributes, self_closing);
        } else if !matches!(tag, b"rss" | b"feed" | b"rdf:rdf" | b"channel") && !self_closing {
            self.aside = 1;
        }
        None
    }

    fn end(&mut self, tag: &[u8]) {
        if let Some((field, depth)) = self.field {
            if depth > 1 && Field::of(tag) != Some(field) {
                self.field = Some((field, depth - 1));
                self.text.push(' ');
                return;
            }
            self.field = None;
            let value = std::mem::take(&mut self.text);
            if !value.trim().is_empty() {
                self.keep(field, value);
            }
        } else if matches!(tag, b"item" | b"entry") {
            self.in_item = false;
            self.aside = 0;
        } else {
            self.aside = self.aside.saturating_sub(1);
        }
    }

    fn characters(&mut self, characters: &str) {
        if self.field.is_some() {
            self.text.push_str(characters);
        }
    }

    fn has_cdata(&self) -> bool {
        true
    }
}

#[derive(Debug, Deserialize)]
struct JsonFeed {
    version: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default, deserialize_with = "bounded")]
    items: Vec<JsonItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JsonItem {
    title: String,
    summary: String,
    content_text: String,
    content_html: String,
    url: String,
    date_published: String,
}

/// The first items of a list; the others are skipped without being kept.
fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<JsonItem>, D::Error> {
    struct Items;

    impl<'de> Visitor<'de> for Items {
        type Value = Vec<JsonItem>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("the items of a feed")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while items.len() < ITEMS
                && let Some(item) = list.next_element()?
            {
                items.push(item);
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(items)
        }
    }

    deserializer.deserialize_seq(Items)
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://www.bbc.com/feed";

    #[test]
    fn rss_is_title_description_link_and_date() {
        let feed = xml(
            "<?xml version='1.0'?><rss><channel><title>River &amp; weir</title><link>/</link>\
             <description>All about it</description><image><title>logo</title><link>/logo</link></image>\
             <item><title><![CDATA[Otters <b>return</b>]]></title><description>&lt;p&gt;Two were seen.&lt;/p&gt;</description>\
             <link>/news/c1</link><guid>x</guid><pubDate>Mon, 30 Nov 2026 08:00:00 GMT</pubDate></item>\
             <item><title>No more</title><media:group><title>not this</title></media:group><content:encoded>Whole &amp;amp; text</content:encoded>\
             <link>/news/c2</link></item></channel></rss>",
            URL,
        )
        .expect("a feed");
        assert_eq!((feed.title.as_str(), feed.description.as_str()), ("River & weir", "All about it"));
        assert_eq!(
            feed.text,
            "Otters return\nTwo were seen.\nhttps://www.bbc.com/news/c1 Mon, 30 Nov 2026 08:00:00 GMT\n\
             No more\nWhole & text\nhttps://www.bbc.com/news/c2"
        );
        assert_eq!(feed.links[0], Link { address: "https://www.bbc.com/news/c1".into(), text: "Otters return".into() });
    }

    #[test]
    fn atom_and_json_say_the_same() {
        let expected = "Otters return\nTwo were seen.\nhttps://www.bbc.com/news/c1 2026-11-30T08:00:00Z";
        let atom = xml(
            "<feed xmlns='http://www.w3.org/2005/Atom'><title>River</title><subtitle>S</subtitle><link rel='self' href='/feed'/>\
             <author><name>A</name></author><entry><title>Otters return</title><link rel='self' href='/x'/>\
             <link href='/news/c1'/><summary type=html>&lt;p>Two were seen.</summary><updated>2026-11-30T08:00:00Z</updated></entry></feed>",
            URL,
        )
        .expect("a feed");
        assert_eq!((atom.title.as_str(), atom.description.as_str(), atom.text.as_str()), ("River", "S", expected));
        let json = json(
            r#"{"version": "https://jsonfeed.org/version/1.1", "title": "River", "items": [{"id": 1, "title": "Otters return",
                "content_html": "<p>Two were seen.</p>", "url": "/news/c1", "date_published": "2026-11-30T08:00:00Z"}]}"#,
            URL,
        )
        .expect("a feed");
        assert_eq!((json.title.as_str(), json.text.as_str()), ("River", expected));
    }

    #[test]
    fn other_documents_are_no_feeds() {
        assert_eq!(xml("<?xml version='1.0'?><svg/>", URL), None);
        assert_eq!(json("{\"version\": \"https://jsonfeed.org/version/1\", \"items\": 3}", URL), None);
        assert!(is_xml_feed(" <?xml version='1.0'?> <!-- a --> <rss version=2>"));
        assert!(!is_xml_feed("<!doctype html><rss>"));
    }
}
