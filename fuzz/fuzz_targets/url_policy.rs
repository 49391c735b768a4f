//! Differential: whatever the policy lets pass, two other parsers must read as the same host, and as an allowed path.
#![no_main]

use ada_url::Url as Ada;
use libfuzzer_sys::fuzz_target;

const HOSTS: [&str; 2] = ["example.org", "www.example.org"];

fuzz_target!(|raw: &str| {
    check(raw);
    // The same input where a host, a userinfo or a path would stand, so that most runs get far.
    check(&format!("https://{raw}"));
    check(&format!("https://www.example.org{raw}"));
    check(&format!("https://www.example.org/sport{raw}"));
    check(&format!("https://{raw}@www.example.org/"));
});

fn check(url: &str) {
    let Some(host) = egress::fuzzing::admitted_host(url) else {
        return;
    };
    assert!(HOSTS.contains(&host.as_str()), "{url:?} -> {host}");
    let ada = Ada::parse(url, None).expect("the WHATWG parser of ada refuses what the policy allows");
    assert_eq!(ada.hostname(), host, "{url:?}");
    assert_eq!((ada.protocol(), ada.port()), ("https:", ""), "{url:?}");
    assert_eq!((ada.username(), ada.password()), ("", ""), "{url:?}");
    assert_eq!(rfc3986_host(url).to_ascii_lowercase(), host, "{url:?}");
    if egress::fuzzing::admitted_below_sport(url) {
        assert!(ada.pathname() == "/sport" || ada.pathname().starts_with("/sport/"), "{url:?}");
        assert!(!ada.has_search(), "{url:?}");
    }
}

/// The host by the regular expression of RFC 3986, appendix B, as urllib and many others split.
fn rfc3986_host(url: &str) -> &str {
    let rest = url.split_once("//").map_or("", |(_, rest)| rest);
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.rsplit_once(':').map_or(host, |(host, _)| host)
}
