//! B08 and B11: what a lying server, or a large script, can make this process allocate. One test, so that nothing else
//! in the process moves its peak.

#![allow(clippy::expect_used, clippy::panic)]

mod server;

use std::io::Write;

use egress::Status;
use flate2::{Compress, Compression, FlushCompress};
use server::{Server, fetch};

const URL: &str = "https://www.bbc.com/";
const BOMB: usize = 200 * 1024 * 1024;

#[test]
fn a_bomb_and_a_lying_length_stay_within_32_mib() {
    let bomb = bomb();
    let data = format!("<script type=application/ld+json>[{}]</script>", "{\"a\":1},".repeat(230_000));
    assert!(bomb.len() < 512 * 1024);
    let server = Server::start(move |request, out| match request.number {
        0 => server::html(out, "warm"),
        1 => {
            let headers = ["content-type: text/html", "content-encoding: gzip"];
            server::respond(out, "200 OK", &headers, &bomb)
        }
        2 => server::html(out, &data),
        _ => write!(out, "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 10737418240\r\n\r\nsmall"),
    });
    let get = || fetch(&server.session().0, URL);
    assert_eq!(get().page.status, Status::Ok);

    let before = peak_kib();
    let reply = get();
    let growth = peak_kib() - before;
    assert!(growth < 32 * 1024, "{growth} KiB");
    assert_eq!(reply.page.status, Status::Ok);
    assert_eq!(reply.page.reason.as_deref(), Some("truncated: only the first 2097152 bytes of the page were read"));
    assert!(reply.audit.truncated);

    // A script of two megabytes: the page, its source and the script, and no tree of its objects.
    let before = peak_kib();
    assert_eq!(get().page.status, Status::Ok);
    let growth = peak_kib() - before;
    assert!(growth < 16 * 1024, "{growth} KiB");

    let before = peak_kib();
    let reply = get();
    let growth = peak_kib() - before;
    assert!(growth < 4 * 1024, "{growth} KiB");
    assert_eq!(reply.page.body, "small");
    assert_eq!(reply.page.reason.as_deref(), Some("truncated: the connection ended after 5 bytes of the page"));
}

/// Gzip of 200 MiB of spaces: one compressed MiB, repeated. The checksum at the end is not reached.
fn bomb() -> Vec<u8> {
    let mebibyte = vec![b'a'; 1024 * 1024];
    let mut block = Vec::with_capacity(64 * 1024);
    let mut deflate = Compress::new(Compression::best(), false);
    deflate.compress_vec(&mebibyte, &mut block, FlushCompress::Full).expect("in memory");
    assert_eq!(deflate.total_in() as usize, mebibyte.len());
    let mut bomb = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];
    for _ in 0..BOMB / mebibyte.len() {
        bomb.extend_from_slice(&block);
    }
    bomb
}

/// The most memory this process has had resident, in KiB.
fn peak_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    line.split_whitespace().nth(1).expect("number").parse().expect("number")
}
