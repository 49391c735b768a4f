//! Redirects against a local TLS server. `cases/redirect.json` has the locations: where each leads, or that it is refused.

#![allow(clippy::expect_used, clippy::panic)]

mod server;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use egress::{FetchPolicy, FetchSession, Network, Status};
use serde_json::Value;
use server::{APEX, Server, WWW, cases, fetch, header, html, quick, redirect, respond};

const START: &str = "https://www.bbc.com/start";

/// One of each kind of address that no page may lead to.
const SPECIAL: [&str; 8] = [
    "127.0.0.1",
    "10.0.0.1",
    "169.254.169.254",
    "::1",
    "::ffff:10.0.0.1",
    "100.64.0.1",
    "fd00:ec2::254",
    "2002:7f00:1::",
];

#[test]
fn every_location_passes_the_whole_chain() {
    let cases = cases(include_str!("cases/redirect.json"));
    assert_eq!(cases.len(), 9);
    for case in &cases {
        locations(case);
    }
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().expect("list");
    list.iter().map(|text| text.as_str().expect("text").to_owned()).collect()
}

fn locations(case: &Value) {
    for location in texts(&case["location"]) {
        let sent = location.clone();
        let server = Server::start(move |request, out| match request.path.as_str() {
            "/start" => redirect(out, &sent),
            _ => html(out, "<title>there</title>"),
        });
        let (session, names) = server.session();
        let reply = fetch(&session, START);
        if let Some(finals) = case.get("final") {
            assert_eq!(reply.page.status, Status::Ok, "{case}: {:?}", reply.page.reason);
            assert_eq!(vec![reply.page.url], texts(finals), "{case}");
            assert_eq!(reply.page.title, "there");
            assert_eq!((reply.audit.redirects, server.connections()), (1, 2));
            assert_eq!(reply.audit.url, START);
        } else {
            assert_eq!(reply.page.status, Status::Blocked, "{location}");
            let reason = reply.page.reason.expect("reason");
            assert!(reason.starts_with("the redirect is refused: "), "{reason}");
            if let Some(host) = case["blocked"].as_str() {
                assert!(reason.contains(host), "{reason}");
                assert_eq!(reply.audit.host.as_deref(), Some(host));
            }
            assert_eq!(names.asked(), ["www.bbc.com"], "{location}");
            assert_eq!(server.connections(), 1, "{location}");
            assert_eq!((reply.page.body.as_str(), reply.page.title.as_str()), ("", ""));
        }
    }
}

#[test]
fn chains_are_bounded() {
    let server = Server::start(|request, out| {
        let left: u32 = request.path.trim_start_matches('/').parse().unwrap_or(0);
        match (request.path.as_str(), left) {
            ("/loop", _) => redirect(out, "/loop"),
            (_, 0) => html(out, "end"),
            _ => redirect(out, &format!("/{}", left - 1)),
        }
    });
    for (path, status, connections) in [("5", Status::Ok, 6), ("6", Status::Error, 6), ("loop", Status::Error, 6)] {
        let before = server.connections();
        let (session, _) = server.session();
        let reply = fetch(&session, &format!("https://bbc.com/{path}"));
        assert_eq!(reply.page.status, status, "{path}");
        assert_eq!(server.connections() - before, connections, "{path}");
        if status == Status::Error {
            assert_eq!(reply.page.reason.as_deref(), Some("there are more than 5 redirects"));
        }
    }
}

#[test]
fn refresh_is_not_followed() {
    let server = Server::start(|_, out| {
        let headers = ["content-type: text/html", "refresh: 0; url=https://www.bbc.com/other"];
        let body = b"<meta http-equiv=refresh content='0; url=/other'><p>here";
        respond(out, "200 OK", &headers, body)
    });
    let (session, _) = server.session();
    let reply = fetch(&session, START);
    assert_eq!((reply.page.url.as_str(), reply.page.body.as_str()), (START, "here"));
    assert_eq!(server.connections(), 1);
}

#[test]
fn special_addresses_are_blocked_before_connecting() {
    let server = Server::start(|_, out| html(out, "never"));
    for address in SPECIAL {
        for addresses in [vec![address], vec![WWW, address]] {
            let (network, names) = server.network_with(&[("www.bbc.com", &addresses)]);
            let builder =
                FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts")).network(network);
            let reply = fetch(&builder.build().expect("session"), START);
            assert_eq!(reply.page.status, Status::Blocked, "{address}");
            let reason = reply.page.reason.expect("reason");
            assert!(reason.starts_with("host www.bbc.com resolves to "), "{reason}");
            assert!(reason.ends_with(" address, not a public one"), "{reason}");
            assert_eq!(names.asked().len(), 1);
        }
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_host_is_resolved_once_and_the_checked_address_connects() {
    let server = Server::start(|request, out| match request.host.as_str() {
        "www.bbc.com" => redirect(out, "https://bbc.com/"),
        _ => html(out, "apex"),
    });
    let dialed = Arc::new(Mutex::new(Vec::new()));
    let names = server::Names::new(&[("www.bbc.com", &[WWW]), ("bbc.com", &[APEX])]);
    let (log, address) = (Arc::clone(&dialed), server.address);
    let network = Network::system()
        .with_resolver(names.clone())
        .with_only_roots(vec![server.root.clone()])
        .with_dial_map(move |checked: SocketAddr| {
            log.lock().expect("log").push(checked.to_string());
            address
        });
    let builder = FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts"))
        .limits(quick())
        .network(network);
    let reply = fetch(&builder.build().expect("session"), START);
    assert_eq!(reply.page.body, "apex");
    assert_eq!(names.asked(), ["www.bbc.com", "bbc.com"]);
    assert_eq!(*dialed.lock().expect("log"), [format!("{WWW}:443"), format!("{APEX}:443")]);
    assert_eq!(reply.audit.address.as_deref(), Some(APEX));
}

#[test]
fn certificates_are_verified() {
    let other = Server::start_as(&["evil.com"], |_, out| html(out, "secret"));
    let (session, _) = other.session();
    let wrong_name = fetch(&session, START);
    let trusted = Server::start(|_, out| html(out, "x"));
    let unknown = Server::start(|_, out| html(out, "secret"));
    let (network, _) = unknown.network();
    let network = network.with_only_roots(vec![trusted.root.clone()]);
    let builder = FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts")).network(network);
    let self_signed = fetch(&builder.build().expect("session"), START);
    for reply in [wrong_name, self_signed] {
        assert_eq!(reply.page.status, Status::Error);
        assert_eq!(reply.page.body, "");
        assert_eq!(reply.audit.address.as_deref(), Some(WWW));
        let reason = reply.page.reason.expect("reason");
        assert!(reason.starts_with("the certificate of host www.bbc.com is not valid for it: "), "{reason}");
    }
    assert_eq!(other.requests().len() + unknown.requests().len(), 0);
}

#[test]
fn a_request_carries_nothing_but_what_it_must() {
    let server = Server::start(|request, out| match request.path.as_str() {
        "/start?q=1" => {
            let headers = ["location: https://bbc.com/next", "set-cookie: a=b; Domain=bbc.com"];
            respond(out, "302 Found", &headers, b"")
        }
        _ => html(out, "end"),
    });
    let (session, _) = server.session_with(egress::FetchLimits { contact: Some("ops@example.org".into()), ..quick() });
    assert_eq!(fetch(&session, "https://www.bbc.com/start?q=1#secret").page.status, Status::Ok);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for (head, (line, host)) in
        requests.iter().zip([("GET /start?q=1 HTTP/1.1", "www.bbc.com"), ("GET /next HTTP/1.1", "bbc.com")])
    {
        assert_eq!(head.lines().next(), Some(line));
        assert_eq!(header(head, "host"), host);
        assert!(header(head, "user-agent").ends_with(" (contact: ops@example.org)"));
        let mut names: Vec<String> =
            head.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0.to_ascii_lowercase())).collect();
        names.sort();
        assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"]);
    }
}

#[test]
fn a_second_address_is_tried_when_the_first_does_not_answer() {
    let server = Server::start(|_, out| html(out, "second"));
    let (network, _) = server.network_with(&[("www.bbc.com", &["2a04:4e42::81", WWW])]);
    let (address, closed) = (server.address, {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listener");
        listener.local_addr().expect("address")
    });
    let network = network.with_dial_map(move |checked| if checked.is_ipv6() { closed } else { address });
    let builder = FetchSession::builder(FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts")).network(network);
    let reply = fetch(&builder.build().expect("session"), START);
    assert_eq!(reply.page.body, "second");
    assert_eq!(reply.audit.address.as_deref(), Some(WWW));
}

#[test]
fn a_redirect_without_a_location_is_an_error() {
    let server = Server::start(|_, out| write!(out, "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n"));
    let (session, _) = server.session();
    let reply = fetch(&session, START);
    assert_eq!(reply.page.reason.as_deref(), Some("host www.bbc.com redirects without saying where"));
    assert_eq!(reply.page.status, Status::Error);
}
