//! Every case about bytes, encodings and slowness, against a local TLS server.

#![allow(clippy::expect_used, clippy::panic)]

mod server;

use std::io::Write;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use egress::{FetchLimits, FetchPolicy, FetchReply, FetchRequest, FetchSession, Format, Status};
use flate2::Compression;
use flate2::write::GzEncoder;
use server::{Server, cases, fetch, quick, respond};

const URL: &str = "https://www.bbc.com/";

#[test]
fn every_case() {
    let cases = cases(include_str!("cases/bytes.json"));
    assert_eq!(cases.len(), 14);
    for case in &cases {
        match case["id"].as_str().expect("id") {
            "B01" => three_byte_characters(),
            "B02" => one_byte_earlier(),
            "B03" => next_offset(),
            "B04" => valid_utf8_wins(),
            "B05" => gbk_by_meta(),
            "B06" => no_label(),
            "B07" => byte_order_mark(),
            "B08" | "B11" => {} // tests/memory.rs, in a process of its own
            "B09" => broken_gzip(),
            "B10" => drips(),
            "B12" => headers(),
            "B13" => exact_sizes(),
            "B14" => only_text(),
            other => panic!("{other} has no test"),
        }
    }
}

fn serve(headers: &'static [&'static str], body: impl Into<Vec<u8>>) -> FetchReply {
    let body = body.into();
    let server = Server::start(move |_, out| respond(out, "200 OK", headers, &body));
    fetch(&server.session().0, URL)
}

fn html(body: impl Into<Vec<u8>>) -> FetchReply {
    serve(&["content-type: text/html"], body)
}

fn three_byte_characters() {
    for content_type in [&["content-type: text/html"][..], &["content-type: text/plain"]] {
        let page = serve(content_type, "世".repeat(3000)).page;
        assert_eq!((page.body.chars().count(), page.body.len()), (2730, 8190));
        assert!(page.body.chars().all(|character| character == '世'));
        assert_eq!(page.next_offset, Some(8190));
    }
}

fn one_byte_earlier() {
    let page = html(format!("a{}", "世".repeat(3000))).page;
    assert_eq!(page.body.len(), 8191);
    assert!(page.body.ends_with('世'));
}

fn next_offset() {
    let text = "世界é🙂 ".repeat(3000);
    let body = text.clone();
    let server = Server::start(move |_, out| server::html(out, &body));
    let (session, _) = server.session();
    for (format, whole) in [(Format::Text, text.trim()), (Format::Html, text.as_str())] {
        let mut read = String::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let request = FetchRequest { url: URL.into(), offset, format };
            let page = session.fetch(&request, Instant::now() + Duration::from_secs(60)).page;
            read.push_str(&page.body);
            next = page.next_offset;
        }
        assert_eq!(read, whole);
    }
    assert_eq!(server.connections(), 1);
}

fn valid_utf8_wins() {
    let reply =
        serve(&["content-type: text/html; charset=ISO-8859-1"], "<meta charset=utf-8><title>Mbappé</title><p>世界杯");
    assert_eq!((reply.page.title.as_str(), reply.page.body.as_str()), ("Mbappé", "世界杯"));
}

fn gbk_by_meta() {
    let page = "<meta http-equiv=Content-Type content='charset=gbk'><p>家居";
    let (bytes, _, _) = encoding_rs::GBK.encode(page);
    assert_eq!(html(bytes).page.body, "家居");
}

fn no_label() {
    let russian = "<p>Привет, мир! Это обычный русский текст без всякой метки.";
    let (bytes, _, _) = encoding_rs::WINDOWS_1251.encode(russian);
    assert_eq!(html(bytes).page.body, russian[3..]);
}

fn byte_order_mark() {
    let page = html("\u{feff}<html><title>\u{feff}T</title><p>\u{feff}B").page;
    assert_eq!((page.title.as_str(), page.body.as_str()), ("T", "B"));
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("in memory");
    encoder.finish().expect("in memory")
}

fn broken_gzip() {
    const GZIP: &[&str] = &["content-type: text/plain", "content-encoding: gzip"];
    let content: String = (0..20_000).map(|n| format!("{n} ")).collect();
    let wire = gzip(content.as_bytes());
    assert_eq!(serve(GZIP, wire.clone()).page.status, Status::Ok);
    let cut = serve(GZIP, &wire[..wire.len() / 2]);
    assert_eq!(cut.page.status, Status::Ok);
    assert!(cut.audit.truncated && content.starts_with(&cut.page.body));
    let reason = cut.page.reason.expect("reason");
    assert!(reason.starts_with("truncated: the connection ended after "), "{reason}");
    let mut broken = wire;
    broken[40..60].fill(0xff);
    for body in [broken, b"<html>not gzip".to_vec(), Vec::new()] {
        let reply = serve(GZIP, body);
        assert_ne!(reply.page.status, Status::Blocked);
        assert!(reply.page.status == Status::Error || reply.page.body.is_empty());
    }
    let twice = serve(&["content-type: text/plain", "content-encoding: br"], "x");
    assert_eq!(twice.page.reason.as_deref(), Some("the content encoding \"br\" is not supported"));
}

/// The deadline of the drip tests, and what counts as having met it.
const SHORT: Duration = Duration::from_millis(700);

fn meets_the_deadline(session: &FetchSession, status: Status) -> FetchReply {
    let started = Instant::now();
    let reply = fetch(session, URL);
    let took = started.elapsed();
    assert!(took < SHORT + Duration::from_secs(2), "{took:?}");
    assert_eq!(reply.page.status, status, "{:?}", reply.page.reason);
    reply
}

fn short() -> FetchLimits {
    FetchLimits { deadline: SHORT, ..quick() }
}

fn drips() {
    let drip = |head: &'static str, piece: &'static str| {
        Server::start(move |_, out| {
            out.write_all(head.as_bytes())?;
            loop {
                out.write_all(piece.as_bytes())?;
                out.flush()?;
                thread::sleep(Duration::from_millis(50));
            }
        })
    };
    for (head, piece) in [
        ("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100000\r\n\r\n", "x"),
        ("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
        ("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n", "x"),
        ("HTTP/1.1 200 OK\r\n", "x"),
        ("HTTP/1.1 200 OK\r\n", "x: y\r\n"),
        ("", ""),
    ] {
        let server = drip(head, piece);
        let reply = meets_the_deadline(&server.session_with(short()).0, Status::Error);
        let reason = reply.page.reason.expect("reason");
        assert!(reason.starts_with("the deadline passed while "), "{reason}");
        assert_eq!(reply.page.body, "");
        assert_eq!(reply.audit.address.as_deref(), Some(server::WWW));
    }
    silent_handshake();
    endless_chunks();
}

/// A server that accepts the connection and never speaks TLS.
fn silent_handshake() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("listener");
    let address = silent.local_addr().expect("address");
    let server = Server::start(|_, out| server::html(out, "never"));
    let (network, _) = server.network();
    let session = FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts"))
        .limits(short())
        .network(network.with_dial_map(move |_| address))
        .build()
        .expect("session");
    meets_the_deadline(&session, Status::Error);
    drop(silent);
}

/// A body that never ends but comes fast is cut at the page bound.
fn endless_chunks() {
    let server = Server::start(|_, out| {
        write!(out, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n")?;
        let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
        loop {
            out.write_all(chunk.as_bytes())?;
        }
    });
    let reply = fetch(&server.session().0, URL);
    assert_eq!(reply.page.status, Status::Ok);
    assert_eq!(reply.page.reason.as_deref(), Some("truncated: only the first 2097152 bytes of the page were read"));
    assert_eq!((reply.audit.bytes, reply.audit.truncated), (2_097_152, true));
}

fn headers() {
    let server = Server::start(|_, out| {
        write!(out, "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nx: ")?;
        loop {
            out.write_all(&[b'y'; 4096])?;
        }
    });
    let reply = fetch(&server.session().0, URL);
    assert_eq!(
        (reply.page.status, reply.page.reason.as_deref()),
        (Status::Error, Some("host www.bbc.com sent more than 65536 bytes of headers"))
    );
    let server = Server::start(|_, out| {
        write!(out, "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n")?;
        (0..5000).try_for_each(|_| out.write_all(b"a: b\r\n"))?;
        write!(out, "\r\n")
    });
    assert_eq!(fetch(&server.session().0, URL).page.status, Status::Error);
    for nonsense in [
        "",
        "\r\n\r\n",
        "SSH-2.0-x\r\n\r\n",
        "HTTP/1.1 999999 x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nx",
        "HTTP/1.1 200 OK\r\n\u{0}: x\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        let server = Server::start(move |_, out| out.write_all(nonsense.as_bytes()));
        let reply = fetch(&server.session_with(short()).0, URL);
        assert_ne!(reply.page.status, Status::Ok, "{nonsense:?}");
        assert!(reply.page.reason.is_some_and(|reason| !reason.is_empty()));
    }
}

fn exact_sizes() {
    for (size, body, next) in [(0, 0, None), (8192, 8192, None), (8193, 8192, Some(8192))] {
        let page = html("a".repeat(size)).page;
        assert_eq!((page.body.len(), page.next_offset), (body, next));
        assert_eq!((page.status, page.reason), (Status::Ok, None));
    }
    let bound = 2 * 1024 * 1024;
    for (size, truncated) in [(bound, false), (bound + 1, true)] {
        let reply = html("a".repeat(size));
        assert_eq!(reply.audit.truncated, truncated);
        assert_eq!(reply.audit.bytes, bound as u64);
    }
}

fn only_text() {
    let reply = serve(&["content-type: image/png"], b"\x89PNG".to_vec());
    assert_eq!(
        (reply.page.status, reply.page.reason.as_deref()),
        (Status::Blocked, Some("host www.bbc.com sent image/png, and only text may come in"))
    );
    let unnamed = serve(&[], b"\x89PNG\r\n\x1a\n\0\0".to_vec());
    assert_eq!(
        unnamed.page.reason.as_deref(),
        Some("host www.bbc.com sent content of an unnamed type, and only text may come in")
    );
    for headers in [
        &[][..],
        &["content-type: text / html"],
        &["content-type: text/html", "content-type: text/html; charset=utf-8"],
    ] {
        let page = serve(headers, "<title>T</title><p>x").page;
        assert_eq!((page.title.as_str(), page.body.as_str()), ("T", "x"), "{headers:?}");
    }
    assert_eq!(serve(&[], "x < y").page.body, "x < y");
    for content_type in [&["content-type: text/markdown"], &["content-type: text/csv"]] {
        assert_eq!(serve(content_type, "a,b\n# c\n").page.body, "a,b\n# c\n");
    }
    let json = serve(&["content-type: application/json"], "{\"a\": 1}").page;
    assert_eq!((json.body.as_str(), json.title.as_str()), ("{\"a\": 1}", ""));
}

#[test]
fn a_server_that_ends_early_gives_a_page_that_says_so() {
    let server = Server::start(|_, out| {
        write!(out, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nhalf")
    });
    let reply = fetch(&server.session().0, URL);
    assert_eq!((reply.page.status, reply.page.body.as_str()), (Status::Ok, "half"));
    assert_eq!(reply.page.reason.as_deref(), Some("truncated: the connection ended after 4 bytes of the page"));
}
