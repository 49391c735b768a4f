//! The pages of `tests/pages`, served as an archive and read the way a model reads them.

#![allow(clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::time::{Duration, Instant};

use egress::{FetchPolicy, FetchRequest, FetchSession, Format, Page, Status};

fn fetch(path: &str, offset: usize, format: Format) -> Page {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pages");
    let session = FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts"))
        .archive(pages)
        .build()
        .expect("session");
    let request = FetchRequest { url: format!("https://www.bbc.com{path}"), offset, format };
    session.fetch(&request, Instant::now() + Duration::from_secs(60)).page
}

fn read(path: &str) -> Page {
    let page = fetch(path, 0, Format::Text);
    assert_eq!((page.status, page.reason.as_deref()), (Status::Ok, None), "{path}");
    for boilerplate in
        ["cookies", "JavaScript", "iPlayer", "Sign in", "Most read", "Terms of Use", "Hidden state", "BBC logo"]
    {
        assert!(!page.body.contains(boilerplate), "{path}: {boilerplate}");
    }
    page
}

#[test]
fn the_front_page_gives_stories_and_links() {
    let page = read("/sport");
    assert_eq!(page.title, "Home of sport");
    assert_eq!(page.description, "Sample front page: scores, fixtures & stories");
    assert!(
        page.body
            .starts_with("BBC Sport (sample)\nTop stories\nSample story 1: Northshire reach the last 16\nSummary 1"),
        "{}",
        page.body
    );
    assert!(
        page.body.ends_with("Home Time Away\nNorthshire 19:00 Southmark\nEastvale 21:00 Westmoor"),
        "{}",
        page.body
    );
    assert!(page.links.contains(&"https://www.bbc.com/sport/football/articles/s012".to_owned()));
    assert!(!page.links.iter().any(|link| link.contains("hidden")));
}

#[test]
fn the_topic_index_lists_every_story_once() {
    let page = read("/sport/football/world-cup");
    assert_eq!(page.title, "World Cup 2026");
    assert_eq!(page.body.matches("Sample report").count(), 25);
    let stories = page.links.iter().filter(|link| link.contains("/articles/s0")).count();
    assert_eq!(stories, 25);
    assert!(page.links.contains(&"https://www.bbc.com/sport/football/world-cup?page=2".to_owned()));
}

#[test]
fn the_live_page_keeps_posts_in_order() {
    let page = read("/sport/football/live/cs4mpl3");
    let at = |text: &str| page.body.find(text).unwrap_or_else(|| panic!("{text}\n{}", page.body));
    assert!(at("Post 1:") < at("Post 2:") && at("Post 29:") < at("Post 30:"));
    assert!(page.body.contains("85' GOAL! Ada Quill makes it\nPost 5: nothing here happened."));
    assert!(!page.body.contains("Share"));
}

#[test]
fn the_article_is_its_text() {
    let page = read("/sport/football/articles/s001");
    assert_eq!(page.title, "Quill double sends Northshire through");
    assert_eq!(
        page.body.lines().take(5).collect::<Vec<_>>(),
        [
            "Quill double sends Northshire through",
            "By A Sample Writer",
            "Ada Quill is made up",
            "Northshire beat Southmark 2-1 in an invented match to reach the last eight of a World Cup that exists only on this page.",
            "Captain Ada Quill scored twice, the second from 25 yards, before 世界杯 flags in the stand.",
        ]
    );
    assert!(page.body.contains("“We were brilliant today,” said coach Tomas Fell. “It’s a sample, of course.”"));
    assert_eq!(page.next_offset, None);
}

#[test]
fn the_video_page_has_what_is_said_about_it() {
    let page = read("/sport/football/videos/v001");
    assert_eq!(
        page.body,
        "Watch: Quill's second goal (sample)\nAda Quill scores from 25 yards in a match that was never played.\nAvailable where samples are."
    );
    assert_eq!(page.description, "Watch a goal that was never scored");
}

#[test]
fn broken_markup_is_still_read() {
    let page = read("/sport/broken");
    assert_eq!(page.title, "Broken sample & all<base href=/sport/>");
    assert_eq!(
        page.body,
        "A page nobody closed\nFirst line\nSecond bold both italic line\noneagain\ncell cell two\nLast line © &notanentity; 2026"
            .replace("&notanentity;", "¬anentity;")
    );
    assert_eq!(page.links, ["https://www.bbc.com/sport/one", "https://www.bbc.com/news", "https://www.bbc.com/sport"]);
}

#[test]
fn the_source_is_there_too_and_starts_before_the_head() {
    let first = fetch("/sport", 0, Format::Html);
    assert!(first.body.starts_with("<!DOCTYPE html>"));
    let next = fetch("/sport", first.next_offset.expect("more"), Format::Html);
    assert_eq!((next.title.as_str(), next.body.len()), ("Home of sport", 8192));
}

#[test]
fn redirects_in_an_archive_pass_the_policy() {
    assert_eq!(read("/sport/football").url, "https://www.bbc.com/sport/football/world-cup");
    let refused = fetch("/sport/uk", 0, Format::Text);
    assert_eq!(
        (refused.status, refused.reason.as_deref()),
        (
            Status::Blocked,
            Some("the redirect is refused: host www.bbc.co.uk is not allowed; allowed: bbc.com, www.bbc.com")
        )
    );
}
