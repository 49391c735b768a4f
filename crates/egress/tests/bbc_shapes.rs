//! Pages of our own in the shape of BBC's of 2026, and what a reader must find in each.

#![allow(clippy::expect_used, clippy::panic)]

use egress::{Page, extract_page};

fn read(html: &str, content_type: &str, path: &str) -> Page {
    extract_page(html.as_bytes(), content_type, &format!("https://www.bbc.com{path}"), 8192)
}

fn has_in_order(page: &Page, lines: &[&str]) {
    let mut rest = page.body.as_str();
    for line in lines {
        let at = rest.find(line).unwrap_or_else(|| panic!("{line}\n{}", page.body));
        rest = &rest[at + line.len()..];
    }
}

fn has_none(page: &Page, pieces: &[&str]) {
    for piece in pieces {
        assert!(!page.body.contains(piece), "{piece}\n{}", page.body);
    }
}

const AROUND: [&str; 8] =
    ["cookies", "Weather", "More menu", "Terms of Use", "Copyright", "turn on scripts", "Most read", "mascots"];

#[test]
fn an_index_is_every_story_once_with_its_link() {
    let page = read(include_str!("pages/index.html"), "text/html; charset=utf-8", "/sport/football");
    assert_eq!(page.title, "Football");
    has_none(&page, &AROUND);
    has_none(&page, &["Posted", "Attribution"]);
    has_in_order(
        &page,
        &[
            "River Football",
            "Top stories",
            "Final build-up: Northbrook v Eastmere",
            "Northbrook reach the final after extra time",
            "2 hours ago",
            "'We never stopped believing' - Quill on the comeback",
            "Rain ends play early at the Meadow",
            "More from football",
            "Fell signs new deal as Westvale coach",
            "Brook wins stage nine in the hills",
        ],
    );
    let first: Vec<_> =
        page.link_texts.iter().take(3).map(|link| (link.address.as_str(), link.text.as_str())).collect();
    assert_eq!(
        first,
        [
            ("https://www.bbc.com/sport/football/live/c100", "Live. Final build-up: Northbrook v Eastmere"),
            ("https://www.bbc.com/sport/football/articles/c101", "Northbrook reach the final after extra time"),
            (
                "https://www.bbc.com/sport/football/articles/c102",
                "'We never stopped believing' - Quill on the comeback"
            ),
        ]
    );
    let addresses: Vec<_> = first.iter().map(|(address, _)| *address).collect();
    assert_eq!(page.links[..3], addresses);
}

#[test]
fn a_score_page_is_a_line_a_match_with_its_scorers() {
    let page = read(include_str!("pages/scores.html"), "text/html", "/sport/football/scores-fixtures");
    assert_eq!(page.title, "Scores & Fixtures - Football");
    has_none(&page, &AROUND);
    assert_eq!(
        page.body.lines().collect::<Vec<_>>(),
        [
            "Football Scores & Fixtures",
            "November 2026",
            "The Weir Cup",
            "Final",
            "Northbrook 2, Eastmere 1 at Full time (A. Quill 21', 90' penalty; T. Hale 55')",
            "Valley League",
            "Round 12",
            "Westvale United 0, Southmark 0 at Half time, in progress",
            "Hillcombe versus Riverton Town kick off 19:30",
            "Aldermoor 3, Fenwick 2 at 79 minutes, in progress (B. Stone 4', 30', 61'; K. Ash 12'; O. Lund 70' own goal)",
        ]
    );
    assert_eq!(page.links[0], "https://www.bbc.com/sport/football/live/l1");
    let last_match = page.links.iter().position(|link| link.ends_with("/live/l4"));
    let first_day = page.links.iter().position(|link| link.contains("scores-fixtures/2026-11-01"));
    assert!(last_match < first_day, "{:?}", page.links);
}

#[test]
fn an_article_is_its_text_and_not_what_is_around_it() {
    let page = read(include_str!("pages/article.html"), "text/html", "/sport/football/articles/c200");
    assert_eq!(page.title, "Northbrook win the Weir Cup at last");
    assert_eq!(page.description, "Ada Quill scores twice as Northbrook beat Eastmere 2-1 in an invented final");
    has_none(&page, &AROUND);
    has_none(
        &page,
        &["More on this story", "the captain nobody wanted", "Related topics", "Join the conversation", "Top stories"],
    );
    has_in_order(
        &page,
        &[
            "Northbrook needed extra time, a penalty and a long look at the screen",
            "Captain Ada Quill put them ahead after 21 minutes",
            "Tom Hale made it 1-1",
            "A penalty at the very end",
            "“We talked about staying calm",
            "The penalty came in the last minute.",
            "would be asked to do it all again.",
        ],
    );
}

#[test]
fn a_feed_is_title_description_link_and_date() {
    let page = read(include_str!("pages/feed.xml"), "text/xml", "/sport/football/rss.xml");
    assert_eq!(page.title, "River Sport - Football");
    assert_eq!(page.description, "River Sport - Football, all of it invented");
    assert_eq!(
        page.body.lines().take(3).collect::<Vec<_>>(),
        [
            "Northbrook reach the final after extra time",
            "What happened in story c101, which nobody lived through.",
            "https://www.bbc.com/sport/football/articles/c101?at_medium=RSS Sun, 29 Nov 2026 20:00:00 GMT",
        ]
    );
    assert_eq!(page.body.lines().count(), 24);
    assert_eq!(page.links.len(), 8);
    assert_eq!(page.link_texts[7].text, "Brook wins stage nine in the hills");
}
