//! Every HTML case, and pages made to hurt a parser.

#![allow(clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use egress::{Page, extract_page};

fn extract(html: &str, url: &str) -> Page {
    extract_page(html.as_bytes(), "text/html; charset=utf-8", url, 8192)
}

#[test]
fn every_case() {
    let cases: Vec<serde_json::Value> = serde_json::from_str(include_str!("cases/html.json")).expect("cases");
    assert_eq!(cases.len(), 17);
    for case in cases {
        let html = case["html"]
            .as_str()
            .expect("html")
            .replace("{9000 x}", &"x".repeat(9000))
            .replace("{9000 y}", &"y".repeat(9000));
        let page = extract(&html, case["url"].as_str().expect("url"));
        let page = serde_json::to_value(page).expect("page");
        for key in ["TITLE", "DESCRIPTION", "LINKS", "BODY"] {
            if let Some(expected) = case.get(key) {
                assert_eq!(&page[key], expected, "{} {key}", case["id"]);
            }
        }
    }
}

/// The cases that name what BODY must have and must not have.
#[test]
fn every_case_of_text_that_was_lost() {
    let cases: Vec<serde_json::Value> = serde_json::from_str(include_str!("cases/html-2.json")).expect("cases");
    assert_eq!(cases.len(), 7);
    for case in cases {
        let page = extract(case["html"].as_str().expect("html"), case["url"].as_str().expect("url"));
        let pieces = |key: &str| case[key].as_array().cloned().unwrap_or_default();
        for piece in pieces("BODY_has") {
            assert!(page.body.contains(piece.as_str().expect("text")), "{}: {}", case["id"], page.body);
        }
        for piece in pieces("BODY_not") {
            assert!(!page.body.contains(piece.as_str().expect("text")), "{}: {}", case["id"], page.body);
        }
        for link in pieces("LINKS") {
            assert!(page.links.iter().any(|found| Some(found.as_str()) == link.as_str()), "{}", case["id"]);
        }
    }
}

/// Time is linear in the page: a piece of anything takes no more than 25 times as long as plain
/// paragraphs of the same size, where something quadratic would take thousands of times as long.
#[test]
fn hostile_pages_cost_no_more_than_others() {
    let numbered = |piece: fn(usize) -> String, count: usize| (0..count).map(piece).collect::<String>();
    let hostile = [
        ("nested div", "<div>".repeat(200_000) + "deep"),
        ("nested and closed", "<div>".repeat(200_000) + "deep" + &"</div>".repeat(200_000)),
        ("nested nav", "<nav>".repeat(200_000) + "deep"),
        ("nested tables", "<table><tr><td>".repeat(100_000) + "deep"),
        ("nested links", "<a href=/>".repeat(200_000) + "deep"),
        ("unclosed formatting", numbered(|n| format!("<b c={n}>"), 150_000) + &"<p>x".repeat(100_000)),
        ("stray end tags", "<div>".repeat(500) + &"</nav></b></x>".repeat(100_000)),
        ("attributes", "<a ".to_owned() + &numbered(|n| format!("a{n}=1 "), 200_000) + ">x</a>"),
        ("entities", "&amp;&notit;&#x110000;&".repeat(90_000)),
        ("open comment", "<!--".to_owned() + &"-".repeat(2_000_000)),
        ("open tag", "<a href='".to_owned() + &"x".repeat(2_000_000)),
        ("open title", "<title>".to_owned() + &"x".repeat(2_000_000)),
        ("open script", "<script>".to_owned() + &"</scrip".repeat(250_000)),
        ("hidden runs", "<p hidden>x".repeat(180_000)),
        ("nulls", "\0<\0a\0>".repeat(300_000)),
        ("deep json", format!("<script type=application/ld+json>{}", "[".repeat(1_000_000))),
        ("metas", "<meta name=description content=' '>".repeat(50_000)),
        ("classes", format!("<div class='{}'>x</div>", "cookie ".repeat(250_000))),
    ];
    const SIZE: usize = 600_000;
    let plain = "<p class=Paragraph>Nothing of this happened.</p>".repeat(SIZE / 48);
    let started = Instant::now();
    assert!(!extract(&plain, "https://www.bbc.com/").body.is_empty());
    let most = 25 * started.elapsed() + Duration::from_millis(500);
    for (name, mut html) in hostile {
        html.truncate(SIZE);
        let started = Instant::now();
        let page = extract(&html, "https://www.bbc.com/");
        let took = started.elapsed();
        assert!(took < most, "{name}: {took:?}, at most {most:?}");
        assert!(page.body.len() <= 8192 && page.title.len() <= 1024, "{name}");
        assert!(page.links.len() <= 200, "{name}");
    }
}

#[test]
fn what_comes_after_hostile_markup_is_still_read() {
    let html = "<div>".repeat(200_000) + "<p>deep</p><a href=/x>x</a>";
    let page = extract(&html, "https://www.bbc.com/");
    assert_eq!(page.body, "deep\nx");
    assert_eq!(page.links, ["https://www.bbc.com/x"]);
}
