//! What a page says: title, description, links and readable text, from its bytes.
//!
//! `TITLE` is the first that is not empty of `<title>` (outside `<svg>`), `og:title`,
//! `twitter:title`, and the headline of JSON-LD. `DESCRIPTION` is the first of `description`,
//! `og:description`, `twitter:description`, and the description of JSON-LD.

use std::collections::HashSet;

use serde_json::Value;
use url::Url;

use crate::charset::decode;
use crate::media_type::MediaType;
use crate::scan::{RawLink, Scanned, scan};
use crate::text::{Text, one_line};

const TITLE_BYTES: usize = 1024;
const DESCRIPTION_BYTES: usize = 4096;
const LINKS: usize = 200;
const LINK_BYTES: usize = 2048;
const ALL_LINKS_BYTES: usize = 64 * 1024;

/// A page that was read whole; [`Page`](crate::Page)s are cut out of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) links: Vec<String>,
    pub(crate) text: String,
    pub(crate) source: String,
}

impl Document {
    /// Reads a page of any text type; only HTML has more than text.
    pub(crate) fn read(bytes: &[u8], content_type: &str, url: &str) -> Self {
        let media_type = MediaType::parse(content_type);
        let source = decode(bytes, &media_type);
        if !media_type.is_html() {
            return Self { text: source.clone(), source, ..Self::default() };
        }
        let scanned = scan(&source);
        let title = scanned.titles.iter().map(String::as_str);
        let title = title.chain(named(&scanned, "og:title")).chain(named(&scanned, "twitter:title"));
        let description = named(&scanned, "description")
            .chain(named(&scanned, "og:description"))
            .chain(named(&scanned, "twitter:description"));
        Self {
            title: first_line(title, TITLE_BYTES)
                .or_else(|| from_json_ld(&scanned.json_ld, "headline", TITLE_BYTES))
                .unwrap_or_default(),
            description: first_line(description, DESCRIPTION_BYTES)
                .or_else(|| from_json_ld(&scanned.json_ld, "description", DESCRIPTION_BYTES))
                .unwrap_or_default(),
            links: links(&scanned.links, scanned.base.as_deref(), url),
            text: readable(scanned),
            source,
        }
    }
}

fn named<'a>(scanned: &'a Scanned, name: &'a str) -> impl Iterator<Item = &'a str> {
    scanned.metas.iter().filter(move |(key, _)| key == name).map(|(_, content)| content.as_str())
}

fn first_line<'a>(mut candidates: impl Iterator<Item = &'a str>, limit: usize) -> Option<String> {
    candidates.find_map(|candidate| {
        let line = one_line(candidate, limit);
        (!line.is_empty()).then_some(line)
    })
}

/// The first non-empty `key` of the JSON-LD objects, at their top or in their `@graph`.
fn from_json_ld(scripts: &[String], key: &str, limit: usize) -> Option<String> {
    scripts.iter().find_map(|script| {
        let value: Value = serde_json::from_str(script).ok()?;
        let top = match &value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        let graphs = top.iter().filter_map(|item| item.get("@graph")?.as_array()).flatten();
        let found = top.iter().chain(graphs);
        first_line(found.filter_map(|item| item.get(key)?.as_str()), limit)
    })
}

/// The article when it holds a third of the page's text or more, else the main part, else the page
/// without boilerplate, else everything that is shown.
fn readable(scanned: Scanned) -> String {
    let Scanned { article, main, page, everything, .. } = scanned;
    let around = if main.is_empty() { page.len() } else { main.len() };
    let best: Text = if !article.is_empty() && article.len() >= around / 3 {
        article
    } else if !main.is_empty() {
        main
    } else if !page.is_empty() {
        page
    } else {
        everything
    };
    best.into_string()
}

/// Absolute http(s) links without fragments, each once, in page order; when there are too many,
/// those of the content come before the others.
fn links(raw: &[RawLink], base: Option<&str>, url: &str) -> Vec<String> {
    let page = Url::parse(url).ok();
    let base = match (base, &page) {
        (Some(base), Some(page)) => page.join(base.trim()).ok(),
        (Some(base), None) => Url::parse(base.trim()).ok(),
        (None, _) => None,
    };
    let base = base.filter(is_web).or(page);
    let mut seen = HashSet::new();
    let absolute: Vec<(String, bool)> = raw
        .iter()
        .filter_map(|link| Some((absolute(&link.href, base.as_ref())?, link.in_content)))
        .filter(|(link, _)| seen.insert(link.clone()))
        .collect();
    let preferred = absolute.iter().filter(|(_, in_content)| *in_content);
    let others = absolute.iter().filter(|(_, in_content)| !*in_content);
    let mut left = ALL_LINKS_BYTES;
    let kept: HashSet<&str> = preferred
        .chain(others)
        .take(LINKS)
        .map(|(link, _)| link.as_str())
        .take_while(|link| {
            let fits = link.len() <= left;
            left = left.saturating_sub(link.len());
            fits
        })
        .collect();
    absolute.iter().filter(|(link, _)| kept.contains(link.as_str())).map(|(link, _)| link.clone()).collect()
}

fn absolute(href: &str, base: Option<&Url>) -> Option<String> {
    let mut link = match base {
        Some(base) => base.join(href.trim()).ok()?,
        None => Url::parse(href.trim()).ok()?,
    };
    link.set_fragment(None);
    (is_web(&link) && link.as_str().len() <= LINK_BYTES).then(|| link.into())
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://www.bbc.com/sport/";

    fn read(html: &str) -> Document {
        Document::read(html.as_bytes(), "text/html", URL)
    }

    #[test]
    fn the_order_of_titles_and_descriptions() {
        let all = "<title>1</title><meta property=og:title content=2><meta name=twitter:title content=3>\
                   <script type=application/ld+json>{\"headline\": \"4\"}</script>\
                   <meta name=description content=1><meta property=og:description content=2>\
                   <meta name=twitter:description content=3>\
                   <script type='application/ld+json'>[{\"@graph\": [{\"description\": \"4\"}]}]</script>";
        let mut html = all.to_owned();
        for (found, cut) in [
            ("1", ["<title>1</title>", "<meta name=description content=1>"]),
            ("2", ["og:title", "og:description"]),
            ("3", ["twitter:title", "twitter:description"]),
            ("4", ["headline", "\"description\""]),
            ("", ["", ""]),
        ] {
            let document = read(&html);
            assert_eq!((document.title.as_str(), document.description.as_str()), (found, found));
            for piece in cut.iter().filter(|piece| !piece.is_empty()) {
                html = html.replace(piece, "");
            }
        }
    }

    #[test]
    fn empty_candidates_are_passed_over() {
        let document = read(
            "<title>&nbsp;</title><meta property=og:title content=''>\
             <meta property=og:title content=' x\ny '>",
        );
        assert_eq!(document.title, "x y");
    }

    #[test]
    fn links_are_absolute_unique_and_web_only() {
        let document = read(
            "<a href=a>1</a><a href='a#x'>2</a><a href=' ../b?c '>3</a><a href=//bbc.com>4</a>\
             <a href=mailto:x@y.z>5</a><a href='javascript:void(0)'>6</a><a href=data:,x>7</a>\
             <a href='https://['>8</a><area href=/m><a>9</a><a href=http://x.test/>10</a>",
        );
        assert_eq!(
            document.links,
            [
                "https://www.bbc.com/sport/a",
                "https://www.bbc.com/b?c",
                "https://bbc.com/",
                "https://www.bbc.com/m",
                "http://x.test/",
            ]
        );
    }

    #[test]
    fn base_counts_wherever_it_stands_and_only_for_the_web() {
        assert_eq!(read("<a href=x></a><base href=/deep/er/>").links, ["https://www.bbc.com/deep/er/x"]);
        assert_eq!(read("<base href='data:,x'><a href=x></a>").links, ["https://www.bbc.com/sport/x"]);
    }

    #[test]
    fn links_are_bounded_and_content_comes_first() {
        let mut html = String::from("<nav>");
        (0..300).for_each(|n| html.push_str(&format!("<a href=/nav/{n}>n</a>")));
        html.push_str("</nav><main><a href=/story>s</a></main>");
        let document = read(&html);
        assert_eq!(document.links.len(), LINKS);
        assert_eq!(document.links[199], "https://www.bbc.com/story");
        let long = format!("<a href=/{}>x</a>", "x".repeat(3000));
        assert!(read(&long).links.is_empty());
        let many: String = (0..200).map(|n| format!("<a href=/{n}{}>x</a>", "x".repeat(1000))).collect();
        assert!(read(&many).links.concat().len() <= ALL_LINKS_BYTES);
    }

    #[test]
    fn the_article_is_read_first_then_main_then_the_page() {
        let story = "story ".repeat(20);
        let story = story.trim();
        let page = format!("<p>top<main>m <article>{story}</article></main>");
        assert_eq!(read(&page).text, story);
        let teaser = format!("<main>{story}<article>teaser</article></main>out");
        assert_eq!(read(&teaser).text, format!("{story}\nteaser"));
        assert_eq!(read("<p>one<p>two<nav>menu</nav>").text, "one\ntwo");
        assert_eq!(read("<nav>only a menu</nav>").text, "only a menu");
    }

    #[test]
    fn other_text_passes_through() {
        for content_type in ["application/json", "text/plain; charset=utf-8", "application/rss+xml"] {
            let document = Document::read(b"{\"a\": \"<b>\"}\r\n", content_type, URL);
            assert_eq!(document.text, "{\"a\": \"<b>\"}\r\n");
            assert_eq!(document.source, document.text);
            assert_eq!(document.title, "");
        }
    }
}
