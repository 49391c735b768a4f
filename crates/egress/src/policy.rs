//! Which URLs a run may fetch. No network, no file, no clock: a pure decision.
//!
//! The rules, in the order in which they are applied:
//!
//! 1. at most [`FetchPolicy::max_url_bytes`] bytes;
//! 2. no control character, white space or backslash anywhere;
//! 3. it starts with `https://` (any case), then a host, then nothing but `:443`;
//!    no user name, no IP address in any spelling, no trailing dot, ASCII letters only;
//! 4. two readings, the strict splitter's and the `url` crate's, name the same host;
//! 5. the host is exactly one of the allowed ones: sub-domains are other hosts;
//! 6. the path starts with one of the allowed prefixes, when there are any;
//! 7. there is no query string, when the operator switched queries off.

use std::collections::BTreeSet;
use std::fmt;

use url::Url;

use crate::authority::{self, Malformed, shown};
use crate::target::{Refused, Target, agree};

/// The default of [`FetchPolicy::max_url_bytes`].
pub const MAX_URL_BYTES: usize = 2048;

/// An allow-list of exact https hosts, with optional narrower rules.
///
/// ```
/// let policy = egress::FetchPolicy::new(["www.example.org"])?;
/// assert!(policy.check("https://www.example.org/sport").allowed);
/// let refused = policy.check("https://www.example.com/sport");
/// assert!(!refused.allowed);
/// assert_eq!(refused.host.as_deref(), Some("www.example.com"));
/// # Ok::<(), egress::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchPolicy {
    hosts: BTreeSet<String>,
    paths: Vec<String>,
    query: bool,
    max_url_bytes: usize,
}

/// The answer of [`FetchPolicy::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether a request for the URL may be made.
    pub allowed: bool,
    /// One sentence a model can act on: why not, or which rule let it pass.
    pub reason: String,
    /// The host the URL names, in lower case; of a malformed URL, the host it seems to name.
    pub host: Option<String>,
}

/// A rule of a [`FetchPolicy`] that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyError {
    /// There is no host at all.
    NoHosts,
    /// A host is not a plain ASCII host name such as `www.example.org`.
    BadHost {
        /// The host as given.
        host: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A path prefix does not start with `/`, or holds what a request path cannot.
    BadPath {
        /// The prefix as given.
        path: String,
    },
    /// The URL bound is 0.
    BadUrlBound,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHosts => write!(out, "a fetch policy needs at least one host"),
            Self::BadHost { host, reason } => write!(
                out,
                "{host:?} cannot be an allowed host ({reason}); give a name such as \"www.example.org\", without scheme, port or path"
            ),
            Self::BadPath { path } => write!(
                out,
                "{path:?} cannot be an allowed path; give a prefix such as \"/sport\", without query, fragment or percent signs"
            ),
            Self::BadUrlBound => write!(out, "the bound on URL length must be more than 0 bytes"),
        }
    }
}

impl std::error::Error for PolicyError {}

impl FetchPolicy {
    /// A policy of exactly these hosts, any path, queries allowed.
    ///
    /// # Errors
    /// [`PolicyError::NoHosts`] and [`PolicyError::BadHost`].
    pub fn new<I>(hosts: I) -> Result<Self, PolicyError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let hosts = hosts.into_iter().map(|host| checked_host(host.as_ref())).collect::<Result<BTreeSet<_>, _>>()?;
        if hosts.is_empty() {
            return Err(PolicyError::NoHosts);
        }
        Ok(Self { hosts, paths: Vec::new(), query: true, max_url_bytes: MAX_URL_BYTES })
    }

    /// Allows only paths that equal one of these prefixes or continue it after a `/`:
    /// `/news` allows `/news` and `/news/today`, not `/newsroom`.
    ///
    /// # Errors
    /// [`PolicyError::BadPath`].
    pub fn with_paths<I>(mut self, paths: I) -> Result<Self, PolicyError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.paths = paths.into_iter().map(|path| checked_path(path.as_ref())).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Whether URLs may carry a query string. A query can carry data out, even to an allowed host.
    #[must_use]
    pub fn with_query(mut self, allowed: bool) -> Self {
        self.query = allowed;
        self
    }

    /// Sets the longest URL, in bytes (default [`MAX_URL_BYTES`]).
    ///
    /// # Errors
    /// [`PolicyError::BadUrlBound`] for 0.
    pub fn with_max_url_bytes(mut self, bytes: usize) -> Result<Self, PolicyError> {
        if bytes == 0 {
            return Err(PolicyError::BadUrlBound);
        }
        self.max_url_bytes = bytes;
        Ok(self)
    }

    /// The allowed hosts, in alphabetical order.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(String::as_str)
    }

    /// The longest URL, in bytes.
    #[must_use]
    pub fn max_url_bytes(&self) -> usize {
        self.max_url_bytes
    }

    /// Decides about `url` without any network access.
    #[must_use]
    pub fn check(&self, url: &str) -> Decision {
        match self.admit(url) {
            Ok(target) => Decision {
                allowed: true,
                reason: format!("host {} is allowed", target.host()),
                host: Some(target.host().to_owned()),
            },
            Err(refused) => Decision { allowed: false, reason: refused.reason, host: refused.host },
        }
    }

    /// The step behind [`FetchPolicy::check`]: the target itself, or the refusal.
    pub(crate) fn admit(&self, raw: &str) -> Result<Target, Refused> {
        if raw.len() > self.max_url_bytes {
            let host = authority::split(raw).ok().map(|strict| strict.host);
            let (length, most) = (raw.len(), self.max_url_bytes);
            return Err(Refused::from(Malformed {
                reason: format!("the URL is {length} bytes long, and at most {most} are allowed"),
                host,
            }));
        }
        let target = agree(raw)?;
        self.admit_host(&target)?;
        self.admit_path(&target)?;
        if !self.query && target.url().query().is_some() {
            return Err(target.refused("query strings are not allowed"));
        }
        Ok(target)
    }

    fn admit_host(&self, target: &Target) -> Result<(), Refused> {
        if self.hosts.contains(target.host()) {
            return Ok(());
        }
        let mut allowed: Vec<&str> = self.hosts().take(10).collect();
        if self.hosts.len() > allowed.len() {
            allowed.push("…");
        }
        Err(Refused {
            reason: format!("host {} is not allowed; allowed: {}", shown(target.host()), allowed.join(", ")),
            host: Some(target.host().to_owned()),
        })
    }

    fn admit_path(&self, target: &Target) -> Result<(), Refused> {
        if self.paths.is_empty() {
            return Ok(());
        }
        let path = target.url().path();
        if hides_segments(path) {
            return Err(target.refused("the path hides a '/', a '.' or a '%' behind a percent sign"));
        }
        if self.paths.iter().any(|prefix| continues(path, prefix)) {
            return Ok(());
        }
        Err(target.refused(&format!("the path is not allowed; allowed: {}", self.paths.join(", "))))
    }
}

fn checked_host(host: &str) -> Result<String, PolicyError> {
    let bad = |reason: &str| PolicyError::BadHost { host: host.to_owned(), reason: reason.to_owned() };
    if host.contains(['/', '?', '#', '@', ':']) {
        return Err(bad("it is more than a host name"));
    }
    let target = agree(&format!("https://{host}/")).map_err(|refused| bad(&refused.reason))?;
    Ok(target.host().to_owned())
}

fn checked_path(path: &str) -> Result<String, PolicyError> {
    let as_requested =
        Url::parse("https://host.invalid/").and_then(|base| base.join(path)).map(|url| url.path().to_owned());
    match as_requested {
        Ok(parsed) if parsed == path && !hides_segments(path) && !path.starts_with("//") => Ok(path.to_owned()),
        _ => Err(PolicyError::BadPath { path: path.to_owned() }),
    }
}

fn continues(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
}

/// True when a server that decodes once more, strips `;` parameters, or takes other characters for dots and slashes, might
/// see other segments.
fn hides_segments(path: &str) -> bool {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(bytes.next()), digit(bytes.next())) else { return true };
        match u8::try_from(high * 16 + low) {
            Ok(b'/' | b'\\' | b'.' | b'%' | 0..0x20 | 0x7f) | Err(_) => return true,
            Ok(byte) => decoded.push(byte),
        }
    }
    // Bytes that are not UTF-8 may be an overlong dot.
    let Ok(decoded) = String::from_utf8(decoded) else { return true };
    let imitation = |character| {
        matches!(character, '\u{ff0e}' | '\u{ff0f}' | '\u{ff3c}' | '\u{2024}' | '\u{2025}' | '\u{2215}' | '\u{2044}')
    };
    decoded.contains(imitation) || decoded.split('/').any(|segment| segment.trim_start().starts_with(".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(policy: &FetchPolicy, url: &str) -> String {
        let decision = policy.check(url);
        assert!(!decision.allowed, "{url}");
        decision.reason
    }

    #[test]
    fn a_refusal_names_the_host_and_the_allowed_ones() {
        let decision =
            FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts").check("https://www.bbc.co.uk/sport");
        assert_eq!(
            decision,
            Decision {
                allowed: false,
                reason: "host www.bbc.co.uk is not allowed; allowed: bbc.com, www.bbc.com".into(),
                host: Some("www.bbc.co.uk".into()),
            }
        );
    }

    #[test]
    fn sub_domains_and_parents_are_other_hosts() {
        let policy = FetchPolicy::new(["b.c.com"]).expect("policy");
        assert!(policy.check("https://b.c.com/").allowed);
        for url in ["https://a.b.c.com/", "https://c.com/", "https://bc.com/"] {
            assert!(!policy.check(url).allowed, "{url}");
        }
    }

    #[test]
    fn a_long_list_of_hosts_is_cut_in_the_reason() {
        let hosts: Vec<String> = (0..12).map(|n| format!("h{n:02}.com")).collect();
        let policy = FetchPolicy::new(hosts).expect("policy");
        assert!(reason(&policy, "https://evil.com/").ends_with("h09.com, …"));
    }

    #[test]
    fn paths_match_whole_segments() {
        let policy = FetchPolicy::new(["bbc.com", "www.bbc.com"])
            .expect("hosts")
            .with_paths(["/sport", "/news/"])
            .expect("paths");
        for url in ["/sport", "/sport/", "/sport/football", "/news/", "/news/x"] {
            assert!(policy.check(&format!("https://bbc.com{url}")).allowed, "{url}");
        }
        for url in ["/sport/world%20cup", "/sport/%E4%B8%96;x=1", "/sport/a..b/.x"] {
            assert!(policy.check(&format!("https://bbc.com{url}")).allowed, "{url}");
        }
        for url in ["/", "/sports", "/news", "/sport/../x", "/sport/%2e%2e/x", "/SPORT"] {
            assert_eq!(
                reason(&policy, &format!("https://bbc.com{url}")),
                "the path is not allowed; allowed: /sport, /news/ (host bbc.com)",
                "{url}"
            );
        }
        for url in [
            "/sport/..%2fx",
            "/sport/%252e/x",
            "/sport/..;/x",
            "/sport/%5cx",
            "/sport/..%3b/news",
            "/sport/%c0%ae%c0%ae/news",
            "/sport/\u{ff0e}\u{ff0e}/news",
            "/sport/%ef%bc%8e%ef%bc%8e/news",
            "/sport/..%20/news",
            "/sport/%20../news",
            "/sport/..%09/news",
            "/sport/%%32%65/news",
            "/sport/%0a",
            "/sport/%",
        ] {
            assert_eq!(
                reason(&policy, &format!("https://bbc.com{url}")),
                "the path hides a '/', a '.' or a '%' behind a percent sign (host bbc.com)",
                "{url}"
            );
        }
    }

    #[test]
    fn queries_can_be_switched_off() {
        let policy = FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts").with_query(false);
        assert!(policy.check("https://bbc.com/x#a?b").allowed);
        for url in ["https://bbc.com/?", "https://bbc.com/x?a=1"] {
            assert_eq!(reason(&policy, url), "query strings are not allowed (host bbc.com)");
        }
    }

    #[test]
    fn the_bound_on_length_is_exact() {
        let policy =
            FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts").with_max_url_bytes(20).expect("bound");
        assert!(policy.check("https://bbc.com/1234").allowed);
        assert_eq!(
            reason(&policy, "https://bbc.com/12345"),
            "the URL is 21 bytes long, and at most 20 are allowed (host bbc.com)"
        );
    }

    #[test]
    fn rules_that_cannot_be_meant_are_errors() {
        assert_eq!(FetchPolicy::new([] as [&str; 0]), Err(PolicyError::NoHosts));
        for host in [
            "",
            "https://bbc.com",
            "bbc.com/",
            "bbc.com:443",
            "a@b.com",
            "*.bbc.com",
            "127.0.0.1",
            "[::1]",
            "bbc.com.",
            "bbс.com",
            "b bc.com",
            "xn--",
            "0x7f",
        ] {
            assert!(matches!(FetchPolicy::new([host]), Err(PolicyError::BadHost { .. })), "{host}");
        }
        for path in ["", "sport", "/a?b", "/a#b", "/a/../b", "/a%2fb", "//a", "/a b", "https://x/"] {
            assert!(
                matches!(
                    FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts").with_paths([path]),
                    Err(PolicyError::BadPath { .. })
                ),
                "{path}"
            );
        }
        assert_eq!(
            FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts").with_max_url_bytes(0),
            Err(PolicyError::BadUrlBound)
        );
    }

    #[test]
    fn a_host_in_other_letters_is_refused_with_its_ascii_form() {
        let policy = FetchPolicy::new(["xn--r8jz45g.jp"]).expect("policy");
        assert!(policy.check("https://xn--r8jz45g.jp/").allowed);
        let why = "the host contains letters that are not ASCII and may imitate another host";
        assert_eq!(
            reason(&policy, "https://\u{4f8b}\u{3048}.jp/"),
            format!("{why}; its ASCII form is xn--r8jz45g.jp (host \u{4f8b}\u{3048}.jp)")
        );
        // No form is named that a reader would take for another host.
        assert_eq!(reason(&policy, "https://\u{ff42}bc.com/"), format!("{why} (host \u{ff42}bc.com)"));
        let error = FetchPolicy::new(["\u{4f8b}\u{3048}.jp"]).expect_err("not ASCII").to_string();
        assert!(error.contains("its ASCII form is xn--r8jz45g.jp"), "{error}");
    }

    #[test]
    fn hosts_are_lower_cased_and_listed_once() {
        let policy = FetchPolicy::new(["WWW.BBC.com", "www.bbc.com"]).expect("policy");
        assert_eq!(policy.hosts().collect::<Vec<_>>(), ["www.bbc.com"]);
    }
}
