//! The links of a page: where they go and what they say, stories first.

use std::collections::HashMap;

use serde::Serialize;
use url::Url;

use crate::layout::Layout;
use crate::scan::{RawLink, Scanned};
use crate::text::{one_line, weight};

/// Most links of a page, bytes of an address and of its text, and bytes of all addresses.
pub(crate) const LINKS: usize = 200;
const LINK_BYTES: usize = 2048;
const TEXT_BYTES: usize = 200;
const ALL_LINKS_BYTES: usize = 64 * 1024;
/// A text this long, in Latin letters, is a headline.
const HEADLINE: usize = 25;

/// An address and what the page calls it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Absolute, http or https, without a fragment.
    pub address: String,
    /// One line, at most 200 bytes; empty when the link says nothing.
    pub text: String,
}

impl Link {
    /// A single letter, an arrow or a picture without a name says nothing.
    pub(crate) fn says_something(&self) -> bool {
        self.text.chars().filter(|one| one.is_alphanumeric()).nth(1).is_some()
    }
}

/// What a link most likely leads to; the smaller, the earlier it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A headline in the text of the page.
    Story,
    /// Something else in the text.
    Text,
    /// Another day of a calendar.
    Date,
    /// Navigation and the like.
    Around,
}

/// Absolute http(s) links without fragments, each once: stories, then other links of the text, days of
/// a calendar, and what is around the text; in page order within each.
pub(crate) fn links(scanned: &Scanned, layout: &Layout, url: &str) -> Vec<Link> {
    let base = base(scanned.base.as_deref(), url);
    let mut order: Vec<(Rank, Link)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for raw in &scanned.links {
        let Some(address) = absolute(&raw.href, base.as_ref()) else {
            continue;
        };
        let text = one_line(if raw.text.trim().is_empty() { &raw.alt } else { &raw.text }, TEXT_BYTES);
        let rank = rank(raw, &text, &address, layout);
        match known.get(&address) {
            Some(&at) => {
                let (best, link) = &mut order[at];
                *best = rank.min(*best);
                if text.len() > link.text.len() && weight(&link.text) < HEADLINE {
                    link.text = text;
                }
            }
            None => {
                known.insert(address.clone(), order.len());
                order.push((rank, Link { address, text }));
            }
        }
    }
    order.sort_by_key(|(rank, _)| *rank);
    let mut left = ALL_LINKS_BYTES;
    let fits = |link: &Link| {
        let fits = link.address.len() <= left;
        left = left.saturating_sub(link.address.len());
        fits
    };
    order.into_iter().map(|(_, link)| link).take(LINKS).take_while(fits).collect()
}

fn rank(raw: &RawLink, text: &str, address: &str, layout: &Layout) -> Rank {
    if layout.skips_container(raw.container) {
        Rank::Around
    } else if is_day(address) {
        Rank::Date
    } else if weight(text) >= HEADLINE {
        Rank::Story
    } else {
        Rank::Text
    }
}

/// Whether an address ends in a day or month: `/2026-07-19`, `/2026-07`.
pub(crate) fn is_day(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let shape: String = last.chars().map(|one| if one.is_ascii_digit() { '0' } else { one }).collect();
    matches!(shape.as_str(), "0000-00-00" | "0000-00")
}

fn base(base: Option<&str>, url: &str) -> Option<Url> {
    let page = Url::parse(url).ok();
    let base = match (base, &page) {
        (Some(base), Some(page)) => page.join(base.trim()).ok(),
        (Some(base), None) => Url::parse(base.trim()).ok(),
        (None, _) => None,
    };
    base.filter(is_web).or(page)
}

pub(crate) fn absolute(href: &str, base: Option<&Url>) -> Option<String> {
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
    use crate::scan::scan;

    fn read(html: &str) -> Vec<Link> {
        let scanned = scan(html, false);
        links(&scanned, &Layout::of(&scanned.blocks), "https://www.bbc.com/sport/")
    }

    fn addresses(html: &str) -> Vec<String> {
        read(html).into_iter().map(|link| link.address).collect()
    }

    #[test]
    fn links_are_absolute_unique_and_web_only() {
        assert_eq!(
            addresses(
                "<a href=a>1</a><a href='a#x'>2</a><a href=' ../b?c '>3</a><a href=//bbc.com>4</a>\
                 <a href=mailto:x@y.z>5</a><a href='javascript:void(0)'>6</a><a href=data:,x>7</a>\
                 <a href='https://['>8</a><area href=/m><a>9</a><a href=http://x.test/>10</a>",
            ),
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
        assert_eq!(addresses("<a href=x></a><base href=/deep/er/>"), ["https://www.bbc.com/deep/er/x"]);
        assert_eq!(addresses("<base href='data:,x'><a href=x></a>"), ["https://www.bbc.com/sport/x"]);
    }

    #[test]
    fn links_are_bounded() {
        let many: String = (0..300).map(|n| format!("<p>text<a href=/{n}>n</a>")).collect();
        assert_eq!(addresses(&many).len(), LINKS);
        let long = format!("<a href=/{}>x</a>", "x".repeat(3000));
        assert!(addresses(&long).is_empty());
        let many: String = (0..200).map(|n| format!("<a href=/{n}{}>x</a>", "x".repeat(1000))).collect();
        assert!(addresses(&many).concat().len() <= ALL_LINKS_BYTES);
    }

    #[test]
    fn only_words_say_something() {
        let says = |text: &str| Link { address: String::new(), text: text.into() }.says_something();
        assert!(says("Ana") && says("决赛") && says("2-1"));
        assert!(!says("") && !says("n") && !says("›") && !says("- 3"));
    }

    #[test]
    fn stories_come_first_with_what_they_say_and_calendars_and_menus_last() {
        let links = read(
            "<nav><a href=/news>All of the latest news of the day</a></nav><main>\
             <ol><li><a href=/scores/2026-07-18>Saturday the eighteenth of July</a><li><a href=/scores/2026-07-19>Sun</a></ol>\
             <a href=/team>Eastmere</a><a href=/live/c1><img alt='A goal'></a>\
             <a href=/live/c1><span>Northbrook 2 , Eastmere 1</span> <span>at Full time</span></a></main>",
        );
        let said: Vec<_> =
            links.iter().map(|link| (&link.address["https://www.bbc.com".len()..], link.text.as_str())).collect();
        assert_eq!(
            said,
            [
                ("/live/c1", "Northbrook 2 , Eastmere 1 at Full time"),
                ("/team", "Eastmere"),
                ("/scores/2026-07-18", "Saturday the eighteenth of July"),
                ("/scores/2026-07-19", "Sun"),
                ("/news", "All of the latest news of the day"),
            ]
        );
    }
}
