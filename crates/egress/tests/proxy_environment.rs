//! The host's proxy variables and `.netrc` are not used. The fetch runs in a process of its
//! own, because an environment belongs to a process.

#![allow(clippy::expect_used, clippy::panic)]

mod server;

use std::io::Read;
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use egress::Status;
use server::{Server, fetch, header, html};

const INSIDE: &str = "EGRESS_TEST_INSIDE";
const PROXY_VARIABLES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

#[test]
fn proxies_and_netrc_are_ignored() {
    if std::env::var_os(INSIDE).is_some() {
        return fetch_with_the_environment();
    }
    let proxy = TcpListener::bind("127.0.0.1:0").expect("listener");
    let address = proxy.local_addr().expect("address");
    let used = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&used);
    thread::spawn(move || {
        for mut stream in proxy.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 64]);
        }
    });
    let home = tempfile::tempdir().expect("home");
    std::fs::write(home.path().join(".netrc"), "machine www.bbc.com login a password b").expect("netrc");
    let mut inside = Command::new(std::env::current_exe().expect("test"));
    inside.args(["--exact", "proxies_and_netrc_are_ignored"]);
    inside.env(INSIDE, "1").env("HOME", home.path());
    for variable in PROXY_VARIABLES {
        inside.env(variable, format!("http://{address}"));
    }
    let output = inside.output().expect("run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(used.load(Ordering::SeqCst), 0);
}

fn fetch_with_the_environment() {
    assert!(PROXY_VARIABLES.iter().all(|variable| std::env::var_os(variable).is_some()));
    let server = Server::start(|_, out| html(out, "direct"));
    let (session, _) = server.session();
    let reply = fetch(&session, "https://www.bbc.com/");
    assert_eq!((reply.page.status, reply.page.body.as_str()), (Status::Ok, "direct"));
    assert_eq!(header(&server.requests()[0], "authorization"), "");
}
