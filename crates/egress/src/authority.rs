//! The second reading of a URL: a strict splitter that shares no code with the `url` crate.
//!
//! Two parsers that disagree about where a host ends are the root of most allow-list bypasses.
//! This one knows a single shape, `https://host[:443][/path][?query][#fragment]`, and refuses
//! everything else instead of repairing it.

/// What the strict splitter found in a URL it accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authority {
    /// The host in lower case, letters, digits, hyphens and dots only.
    pub(crate) host: String,
}

/// Why the strict splitter refuses a URL, and the host it would have gone to as far as one shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) reason: String,
    pub(crate) host: Option<String>,
}

impl Malformed {
    fn new(reason: impl Into<String>, host: Option<&str>) -> Self {
        Self { reason: reason.into(), host: host.filter(|host| !host.is_empty()).map(shown) }
    }
}

/// Reads `url` in the one accepted shape.
pub(crate) fn split(url: &str) -> Result<Authority, Malformed> {
    if url.is_empty() {
        return Err(Malformed::new("the URL is empty", None));
    }
    if let Some(name) = url.chars().find_map(forbidden_character) {
        return Err(Malformed::new(format!("the URL contains {name}"), guess_host(url).as_deref()));
    }
    let Some(rest) = strip_https(url) else {
        return Err(not_https(url));
    };
    let authority = until_any(rest, &['/', '?', '#']);
    if let Some((_, host)) = authority.rsplit_once('@') {
        return Err(Malformed::new("the URL has a user name or password before an '@'", Some(without_port(host))));
    }
    if authority.contains('[') || authority.contains(']') {
        return Err(Malformed::new("the host is an IP address, and only host names are allowed", Some(authority)));
    }
    let host = match authority.split_once(':') {
        None => authority,
        Some((host, "443")) => host,
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            return Err(Malformed::new(format!("port {:?} is not allowed, only 443", shown(port)), Some(host)));
        }
        // Not repeated: it may be a password with a '/' in it.
        Some((host, _)) => return Err(Malformed::new("the port is not a number", Some(host))),
    };
    check_host(host)?;
    Ok(Authority { host: host.to_ascii_lowercase() })
}

fn check_host(host: &str) -> Result<(), Malformed> {
    let refuse = |reason: &str| Err(Malformed::new(reason, Some(host)));
    if host.is_empty() {
        return refuse("the URL has no host");
    }
    if host.contains('%') {
        return refuse("the host contains a percent sign");
    }
    if !host.is_ascii() {
        return refuse("the host contains letters that are not ASCII and may imitate another host");
    }
    if host.ends_with('.') {
        return refuse("the host ends with a dot");
    }
    if host.len() > 253 {
        return refuse("the host is longer than 253 bytes");
    }
    let good_label = |label: &str| {
        !label.is_empty() && label.len() <= 63 && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if !host.split('.').all(good_label) {
        return refuse("the host is not a plain host name");
    }
    if looks_like_ipv4(host) {
        return refuse("the host is an IP address, and only host names are allowed");
    }
    Ok(())
}

/// True for every spelling that some parser reads as an IPv4 address: a last label that is all
/// digits or starts with `0x` (WHATWG URL, "ends in a number").
fn looks_like_ipv4(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    let hexadecimal = last.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0x"))
        && last.bytes().skip(2).all(|byte| byte.is_ascii_hexdigit());
    hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit())
}

fn forbidden_character(character: char) -> Option<&'static str> {
    match character {
        '\\' => Some("a backslash"),
        _ if character.is_control() => Some("a control character"),
        _ if character.is_whitespace() => Some("white space"),
        _ => None,
    }
}

pub(crate) fn strip_https(url: &str) -> Option<&str> {
    const SCHEME: &str = "https://";
    let prefix = url.get(..SCHEME.len())?;
    prefix.eq_ignore_ascii_case(SCHEME).then(|| &url[SCHEME.len()..])
}

fn not_https(url: &str) -> Malformed {
    let host = guess_host(url);
    let scheme = url.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme));
    let reason = match scheme {
        Some(scheme) if !scheme.eq_ignore_ascii_case("https") => {
            format!("only https is allowed, not {}", shown(scheme))
        }
        _ => "the URL does not start with https://".to_owned(),
    };
    Malformed::new(reason, host.as_deref())
}

/// True for the letters that RFC 3986 allows in a scheme.
pub(crate) fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// The host that a lenient reader might see, for the answer's text only.
fn guess_host(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("//")?;
    let authority = until_any(rest, &['/', '?', '#', '\\']);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Some(without_port(host).to_owned())
}

fn without_port(host: &str) -> &str {
    host.split_once(':').map_or(host, |(host, _)| host)
}

pub(crate) fn until_any<'a>(text: &'a str, stops: &[char]) -> &'a str {
    text.find(stops).map_or(text, |end| &text[..end])
}

/// A piece of a refused URL that is safe to print: bounded, one line, no invisible characters.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 100;
    let mut shown: String = text
        .chars()
        .take(LONGEST)
        .map(|character| if character.is_control() || character.is_whitespace() { '\u{fffd}' } else { character })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(url: &str) -> String {
        split(url).expect(url).host
    }

    fn reason(url: &str) -> String {
        split(url).expect_err(url).reason
    }

    #[test]
    fn reads_the_one_accepted_shape() {
        for url in [
            "https://www.bbc.com",
            "https://www.bbc.com/",
            "https://www.bbc.com:443/x",
            "HTTPS://WWW.BBC.com?a=b",
            "https://www.bbc.com#@evil.com/",
        ] {
            assert_eq!(host(url), "www.bbc.com", "{url}");
        }
    }

    #[test]
    fn names_what_is_wrong() {
        for (url, expected) in [
            ("", "the URL is empty"),
            ("https://a b.com/", "the URL contains white space"),
            ("https://a\u{0}.com/", "the URL contains a control character"),
            ("https://a.com\\b", "the URL contains a backslash"),
            ("http://a.com/", "only https is allowed, not http"),
            ("www.bbc.com", "the URL does not start with https://"),
            ("https:/a.com/", "the URL does not start with https://"),
            ("https:///a.com/", "the URL has no host"),
            ("https://a.com:/", "port \"\" is not allowed, only 443"),
            ("https://a.com:0443/", "port \"0443\" is not allowed, only 443"),
            ("https://a.com:secret/b@evil.com", "the port is not a number"),
            ("https://a..com/", "the host is not a plain host name"),
            ("https://a_b.com/", "the host is not a plain host name"),
            ("https://a.com./", "the host ends with a dot"),
            ("https://a%2ecom/", "the host contains a percent sign"),
        ] {
            assert_eq!(reason(url), expected, "{url}");
        }
        for url in ["https://[::1]/", "https://1.2.3.4/", "https://0x7f.1/", "https://127.0x/"] {
            assert_eq!(reason(url), "the host is an IP address, and only host names are allowed", "{url}");
        }
    }

    #[test]
    fn names_the_host_a_lenient_reader_would_reach() {
        for (url, expected) in [
            ("https://www.bbc.com@evil.com:8443/", Some("evil.com")),
            ("http://www.bbc.com/", Some("www.bbc.com")),
            ("//evil.com/x", Some("evil.com")),
            ("javascript:alert(1)", None),
        ] {
            let malformed = split(url).expect_err(url);
            assert_eq!(malformed.host.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn a_refused_piece_prints_on_one_bounded_line() {
        assert_eq!(shown("a\nb\u{0}c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), 101);
    }
}
