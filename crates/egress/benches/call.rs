//! What a call costs beyond the network: policy, a fetch of a local page, extraction of 500 KB.
//!
//! `cargo bench -p egress` prints the median and the fastest of many runs.

#![allow(clippy::expect_used, clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use egress::{FetchLimits, FetchPolicy, FetchRequest, FetchSession, Status, extract_page};

const URL: &str = "https://www.bbc.com/sport/football/world-cup";

fn main() {
    let policy = FetchPolicy::bbc();
    measure("policy check, allowed", 2000, || policy.check(black_box(URL)).allowed);
    measure("policy check, blocked", 2000, || policy.check(black_box("https://www.bbc.com@evil.com/")).allowed);

    let page = sample_page(500 * 1024);
    let folder = archive_of(&page);
    let fetch = |session: &FetchSession, url: &str| {
        let reply = session.fetch(&FetchRequest::new(url), Instant::now() + Duration::from_secs(60));
        assert_eq!(reply.page.status, Status::Ok);
    };
    let session = || {
        FetchSession::builder(FetchPolicy::bbc())
            .archive(folder.path())
            .limits(FetchLimits { fetches: u32::MAX, total_bytes: u64::MAX, ..FetchLimits::default() })
            .build()
            .expect("session")
    };
    measure("fetch of a 2 KB page from an archive", 200, || {
        fetch(&session(), "https://www.bbc.com/small");
    });
    measure("fetch of a 500 KB page from an archive", 30, || fetch(&session(), URL));
    let warm = session();
    fetch(&warm, URL);
    measure("the same page from the run's cache", 2000, || fetch(&warm, URL));

    measure("extraction of a 500 KB page", 30, || {
        extract_page(black_box(page.as_bytes()), "text/html; charset=utf-8", URL, 8192)
    });
}

/// Prints the median and the fastest of `runs` runs.
fn measure<T>(what: &str, runs: usize, mut run: impl FnMut() -> T) {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let started = Instant::now();
            black_box(run());
            started.elapsed()
        })
        .collect();
    times.sort();
    println!("{what:<42} median {:>10.1?}   fastest {:>10.1?}", times[runs / 2], times[0]);
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

fn archive_of(page: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    let small = sample_page(2048);
    let mut index = String::new();
    for (url, name, page) in [(URL, "large.html", page), ("https://www.bbc.com/small", "small.html", &small)] {
        std::fs::write(folder.path().join(name), page).expect("page");
        index.push_str(&format!(
            "{{\"url\": \"{url}\", \"status\": 200, \"content_type\": \"text/html; charset=utf-8\", \"file\": \"{name}\"}}\n"
        ));
    }
    std::fs::write(folder.path().join("index.jsonl"), index).expect("index");
    folder
}
