//! What holds for a run as a whole: counts, bytes, cache, pauses, `Retry-After`, archive, audit.

#![allow(clippy::expect_used, clippy::panic)]

mod server;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use egress::{FetchLimits, FetchPolicy, FetchRequest, FetchSession, LimitsError, SessionError, Status};
use flate2::Compression;
use flate2::write::GzEncoder;
use server::{Server, fetch, html, quick, redirect, respond};

const URL: &str = "https://www.bbc.com/";

#[test]
fn a_repeated_url_comes_from_the_cache_and_counts() {
    let server = Server::start(|request, out| match request.path.as_str() {
        "/old" => redirect(out, "/new"),
        _ => html(out, "page"),
    });
    let limits = FetchLimits { fetches: 4, ..quick() };
    let (session, names) = server.session_with(limits);
    let first = fetch(&session, "https://www.bbc.com/old");
    assert!(!first.audit.from_cache);
    for url in ["https://www.bbc.com/old", "https://WWW.bbc.com:443/old#x", "https://www.bbc.com/new"] {
        let again = fetch(&session, url);
        assert_eq!(again.page, first.page);
        assert!(again.audit.from_cache);
        assert_eq!(again.audit.sha256, first.audit.sha256);
        assert_eq!(again.audit.address, None);
    }
    let over = fetch(&session, URL);
    assert_eq!(
        (over.page.status, over.page.reason.as_deref()),
        (Status::Blocked, Some("this run has used its 4 fetches"))
    );
    assert_eq!((server.connections(), names.asked().len()), (2, 2));
}

#[test]
fn the_bytes_of_a_run_are_bounded() {
    let server = Server::start(|_, out| html(out, "x".repeat(700)));
    let limits = FetchLimits { total_bytes: 1000, ..quick() };
    let (session, _) = server.session_with(limits);
    let pages: Vec<_> = (0..3).map(|n| fetch(&session, &format!("{URL}{n}"))).collect();
    assert_eq!(pages.iter().map(|reply| reply.audit.bytes).collect::<Vec<_>>(), [700, 300, 0]);
    assert_eq!(pages[1].page.reason.as_deref(), Some("truncated: only the first 300 bytes of the page were read"));
    assert_eq!(
        (pages[2].page.status, pages[2].page.reason.as_deref()),
        (Status::Blocked, Some("this run has used its 1000 bytes of pages"))
    );
}

#[test]
fn what_arrived_counts_also_when_the_page_is_unusable() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&[b'x'; 600]).expect("in memory");
    let mut wire = encoder.finish().expect("in memory");
    let checksum = wire.len() - 8;
    wire[checksum] ^= 1;
    let headers = &["content-type: text/plain", "content-encoding: gzip"];
    let server = Server::start(move |_, out| respond(out, "200 OK", headers, &wire));
    let limits = FetchLimits { total_bytes: 1000, ..quick() };
    let (session, _) = server.session_with(limits);
    for (path, bytes, reason) in [
        ("1", 600, "the page could not be read: "),
        ("2", 400, "truncated: only the first 400 bytes"),
        ("3", 0, "this run has used its 1000 bytes"),
    ] {
        let reply = fetch(&session, &format!("{URL}{path}"));
        let got = reply.page.reason.expect("reason");
        assert!(got.starts_with(reason), "{got}");
        assert_eq!(reply.audit.bytes, bytes);
    }
}

#[test]
fn requests_to_one_host_are_spaced() {
    let server = Server::start(|request, out| match request.path.as_str() {
        "/a" => redirect(out, "/b"),
        _ => html(out, "page"),
    });
    let limits = FetchLimits { pause: Duration::from_millis(500), ..quick() };
    let (session, _) = server.session_with(limits);
    let started = Instant::now();
    fetch(&session, "https://www.bbc.com/a");
    fetch(&session, "https://www.bbc.com/c");
    assert!(started.elapsed() >= Duration::from_secs(1));
    let other_host = Instant::now();
    assert_eq!(fetch(&session, "https://bbc.com/").page.status, Status::Ok);
    assert!(other_host.elapsed() < Duration::from_millis(500));
}

#[test]
fn at_most_so_many_fetches_are_under_way() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (inside, peak) = (Arc::clone(&now), Arc::clone(&most));
    let server = Server::start(move |_, out| {
        peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(50));
        inside.fetch_sub(1, Ordering::SeqCst);
        html(out, "page")
    });
    let limits = FetchLimits { concurrent: 2, ..quick() };
    let (session, _) = server.session_with(limits);
    thread::scope(|scope| {
        for n in 0..6 {
            let session = &session;
            scope.spawn(move || assert_eq!(fetch(session, &format!("{URL}{n}")).page.status, Status::Ok));
        }
    });
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[test]
fn retry_after_is_honoured_once_within_the_deadline() {
    let busy =
        |status: &'static str, wait: &'static str, times: usize| {
            Server::start(move |request, out| {
                if request.number < times { respond(out, status, &[wait], b"busy") } else { html(out, "page") }
            })
        };
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let server = busy(status, "retry-after: 1", 1);
        let (session, names) = server.session();
        let started = Instant::now();
        assert_eq!(fetch(&session, URL).page.body, "page");
        assert!(started.elapsed() >= Duration::from_secs(1));
        assert_eq!(names.asked().len(), 1);
    }
    for (wait, times, requests, reason) in [
        ("retry-after: 0", 2, 2, "host www.bbc.com answered 503"),
        ("x: y", 1, 1, "host www.bbc.com answered 503"),
        ("retry-after: 3600", 1, 1, "host www.bbc.com asks to wait 3600 s, which is longer than this fetch may take"),
    ] {
        let server = busy("503 Service Unavailable", wait, times);
        let reply = fetch(&server.session().0, URL);
        assert_eq!((reply.page.status, reply.page.reason.as_deref()), (Status::Error, Some(reason)));
        assert_eq!((server.requests().len(), reply.audit.http_status), (requests, Some(503)));
    }
}

#[test]
fn a_host_that_asks_to_wait_is_left_alone_by_other_fetches_too() {
    let server = Server::start(|request, out| match request.number {
        0 => respond(out, "503 Service Unavailable", &["retry-after: 3600"], b"busy"),
        _ => html(out, "page"),
    });
    let limits = FetchLimits { deadline: Duration::from_secs(1), ..quick() };
    let (session, _) = server.session_with(limits);
    let started = Instant::now();
    assert_eq!(fetch(&session, URL).page.status, Status::Error);
    let soon = session.fetch(&FetchRequest::new(format!("{URL}soon")), started + Duration::from_millis(500));
    assert_eq!(soon.page.reason.as_deref(), Some("the deadline passed while waiting to ask www.bbc.com again"));
    assert_eq!(server.requests().len(), 1);
    thread::sleep(Duration::from_millis(200));
    assert_eq!(fetch(&session, &format!("{URL}later")).page.body, "page");
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[test]
fn other_statuses_are_errors_without_a_body() {
    for status in ["404 Not Found", "500 Oops", "204 No Content", "304 Not Modified"] {
        let server = Server::start(move |_, out| respond(out, status, &["content-type: text/html"], b""));
        let reply = fetch(&server.session().0, URL);
        if status.starts_with("204") {
            assert_eq!((reply.page.status, reply.page.body.as_str()), (Status::Ok, ""));
        } else {
            let code = &status[..3];
            assert_eq!(reply.page.status, Status::Error);
            assert_eq!(reply.page.reason, Some(format!("host www.bbc.com answered {code}")));
        }
    }
}

#[test]
fn the_caller_s_deadline_counts_too() {
    let server = Server::start(|_, out| {
        thread::sleep(Duration::from_secs(30));
        html(out, "late")
    });
    let (session, _) = server.session();
    let started = Instant::now();
    let reply = session.fetch(&FetchRequest::new(URL), started + Duration::from_millis(200));
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!(reply.page.reason.as_deref(), Some("the deadline passed while talking to www.bbc.com"));
    let past = session.fetch(&FetchRequest::new(URL), started);
    assert_eq!(past.page.status, Status::Error);
}

#[test]
fn a_recorded_run_replays_without_a_network() {
    let server = Server::start(|request, out| match request.path.as_str() {
        "/old" => redirect(out, "https://bbc.com/new"),
        "/new" => respond(
            out,
            "200 OK",
            &["content-type: text/html; charset=gbk"],
            &encoding_rs::GBK.encode("<title>家居</title><p>世界").0,
        ),
        "/away" => redirect(out, "https://evil.com/"),
        "/long" => html(out, "x".repeat(3_000_000)),
        "/lost" => write!(out, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nhalf"),
        _ => respond(out, "404 Not Found", &["content-type: text/html"], b"gone"),
    });
    let urls = ["old", "new", "away", "long", "lost", "gone"].map(|path| format!("{URL}{path}"));
    let folder = tempfile::tempdir().expect("folder");
    let (network, _) = server.network();
    let live = FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts"))
        .limits(quick())
        .network(network)
        .record(folder.path())
        .build()
        .expect("session");
    let replay = FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts"))
        .archive({
            for url in &urls {
                fetch(&live, url);
            }
            folder.path()
        })
        .build()
        .expect("session");
    let connections = server.connections();
    for url in &urls {
        let (recorded, replayed) = (fetch(&live, url), fetch(&replay, url));
        assert_eq!(recorded.page, replayed.page, "{url}");
        assert_eq!(recorded.audit.sha256, replayed.audit.sha256, "{url}");
        assert_eq!(recorded.audit.record_error, None);
    }
    assert_eq!(fetch(&replay, &urls[0]).page.title, "家居");
    assert!(server.connections() >= connections);
    let other = fetch(&replay, "https://www.bbc.com/other");
    assert_eq!(
        (other.page.status, other.page.reason.as_deref()),
        (Status::Error, Some("https://www.bbc.com/other is not in the archive"))
    );
}

#[test]
fn an_archive_does_not_soften_the_policy() {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("evil.html"), "secret").expect("page");
    let line = r#"{"url": "https://evil.com/", "status": 200, "content_type": "text/html", "file": "evil.html"}"#;
    std::fs::write(folder.path().join("index.jsonl"), line).expect("index");
    let session = FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts"))
        .archive(folder.path())
        .build()
        .expect("session");
    assert_eq!(fetch(&session, "https://evil.com/").page.status, Status::Blocked);
}

#[test]
fn an_archived_page_that_was_changed_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("a.html"), "changed").expect("page");
    let hash = "0".repeat(64);
    let line = format!(
        r#"{{"url": "{URL}", "status": 200, "content_type": "text/html", "file": "a.html", "sha256": "{hash}"}}"#
    );
    std::fs::write(folder.path().join("index.jsonl"), line).expect("index");
    let builder =
        FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts")).archive(folder.path());
    let reply = fetch(&builder.build().expect("session"), URL);
    assert_eq!(
        (reply.page.status, reply.page.reason.as_deref()),
        (Status::Error, Some("the archived page is not the one that was recorded"))
    );
}

#[test]
fn limits_without_end_do_not_overflow() {
    let server = Server::start(|_, out| html(out, "page"));
    let (session, _) = server.session_with(FetchLimits {
        deadline: Duration::MAX,
        total_bytes: u64::MAX,
        fetches: u32::MAX,
        ..quick()
    });
    assert_eq!(fetch(&session, URL).page.body, "page");
    let (session, _) = server.session_with(FetchLimits { pause: Duration::MAX, ..quick() });
    assert_eq!(fetch(&session, URL).page.body, "page");
}

#[test]
fn the_audit_tells_what_happened_and_no_secret() {
    let server = Server::start(|_, out| html(out, "<title>T</title><p>body"));
    let (session, _) = server.session();
    let ok = serde_json::to_value(fetch(&session, "https://www.bbc.com/a?b#c").audit).expect("json");
    for (key, expected) in [
        ("url", "https://www.bbc.com/a?b#c"),
        ("final_url", "https://www.bbc.com/a?b"),
        ("status", "ok"),
        ("decision", "allow"),
        ("host", "www.bbc.com"),
        ("address", server::WWW),
        ("title", "T"),
        ("sha256", "666394b6975f9d3d57942eb5d84468492c317f7c62c6ada4472ea4153bcf70f7"),
    ] {
        assert_eq!(ok[key], expected, "{key}");
    }
    assert_eq!((ok["http_status"].as_u64(), ok["bytes"].as_u64()), (Some(200), Some(23)));
    assert!(ok["time"].as_str().is_some_and(|time| time.ends_with('Z')));
    for url in [
        "https://user:hunter2@www.bbc.com/",
        "https:user:hunter2@www.bbc.com//x",
        "https://user:hunter2/x@www.bbc.com/",
        "\thttps://user:hunter2@www.bbc.com/",
    ] {
        let blocked = fetch(&session, url);
        assert_eq!(blocked.audit.decision, "block");
        let everything = format!("{blocked:?}");
        assert!(!everything.contains("hunter2"), "{everything}");
    }
}

#[test]
fn what_cannot_be_set_up_is_an_error() {
    let builder = || FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts"));
    let zero = FetchLimits { page_bytes: 0, ..FetchLimits::default() };
    assert!(matches!(
        builder().limits(zero).build(),
        Err(SessionError::Limits(LimitsError::Zero { field: "page_bytes" }))
    ));
    let error = builder().archive("/nowhere").build().expect_err("no archive").to_string();
    assert!(error.starts_with("/nowhere/index.jsonl: "), "{error}");
}
