//! What a call costs beyond the network: policy, a fetch of a local page, extraction of 500 KB.
//!
//! `cargo bench -p egress --bench call` prints a table; `make bench` puts it into SPECIFICATION.md.

#![allow(clippy::expect_used, clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use egress::{FetchLimits, FetchPolicy, FetchRequest, FetchSession, Status, extract_page};

const PAGES: [(&str, usize); 2] = [("small", 2 * 1024), ("large", 500 * 1024)];
/// Fetches of each page; every one has a URL of its own, so that none comes from the cache.
const FETCHES: usize = 200;

fn main() {
    let policy = FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts");
    measure("policy: a URL that is allowed", 10_000, |_| policy.check(black_box(&url("large", 0))).allowed);
    measure("policy: a URL that is refused", 10_000, |_| {
        policy.check(black_box("https://www.bbc.com@evil.com/")).allowed
    });

    let folder = archive();
    let limits = FetchLimits { fetches: u32::MAX, total_bytes: u64::MAX, ..FetchLimits::default() };
    let builder = FetchSession::builder(policy).archive(folder.path()).limits(limits);
    let session = builder.build().expect("session");
    let fetch = |url: String| {
        let reply = session.fetch(&FetchRequest::new(url), Instant::now() + Duration::from_secs(60));
        assert_eq!(reply.page.status, Status::Ok);
        reply.audit.from_cache
    };
    measure("fetch of a page of 2 KB from a local archive", FETCHES, |n| assert!(!fetch(url("small", n))));
    measure("fetch of a page of 500 KB from a local archive", FETCHES, |n| assert!(!fetch(url("large", n))));
    measure("fetch of the same page of 500 KB again, from the run's cache", 2000, |_| assert!(fetch(url("large", 0))));

    let page = sample_page(500 * 1024);
    measure("extraction alone of a page of 500 KB", FETCHES, |n| {
        extract_page(black_box(page.as_bytes()), "text/html; charset=utf-8", &url("large", n), 8192)
    });
}

/// Prints a row of a table: median, 99th percentile and number of runs.
fn measure<T>(what: &str, runs: usize, mut run: impl FnMut(usize) -> T) {
    let mut times: Vec<Duration> = (0..runs)
        .map(|number| {
            let started = Instant::now();
            black_box(run(number));
            started.elapsed()
        })
        .collect();
    times.sort();
    let milliseconds = |at: usize| format!("{:.4}", times[at].as_secs_f64() * 1e3);
    println!("| {what} | {} | {} | {runs} |", milliseconds(runs / 2), milliseconds(runs * 99 / 100));
}

fn url(page: &str, number: usize) -> String {
    format!("https://www.bbc.com/{page}/{number}")
}

/// A page of `size` bytes in the shape of a topic index: a large head, then many stories.
fn sample_page(size: usize) -> String {
    let mut page = String::from("<!doctype html><title>Sample</title><script>");
    page.push_str(&"{\"state\":\"sample\"},".repeat(size / 4 / 19));
    page.push_str("</script><body><nav><a href=/>Home</a></nav><main>");
    for number in 0.. {
        if page.len() >= size {
            break;
        }
        page.push_str(&format!(
            "<div class=\"Promo\" data-testid=\"promo\"><a href=\"/sport/{number}\"><h3>Story {number} &amp; more</h3></a>\
             <p class=\"Paragraph\">Nothing of this happened: 世界杯 is a sample.</p></div>"
        ));
    }
    page
}

fn archive() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    let mut index = String::new();
    for (name, size) in PAGES {
        std::fs::write(folder.path().join(name), sample_page(size)).expect("page");
        for url in (0..FETCHES).map(|number| url(name, number)) {
            index.push_str(&format!(
                "{{\"url\": \"{url}\", \"status\": 200, \"content_type\": \"text/html; charset=utf-8\", \"file\": \"{name}\"}}\n"
            ));
        }
    }
    std::fs::write(folder.path().join("index.jsonl"), index).expect("index");
    folder
}
