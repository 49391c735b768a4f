//! One record per fetch, for the operator. It never holds a page's content or a secret: user names
//! and passwords are cut out of URLs.

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::authority;
use crate::page::Status;

/// The longest URL in a record, in characters.
const URL_CHARACTERS: usize = 2048;

/// What happened in one fetch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditRecord {
    /// When it started, RFC 3339 in UTC.
    pub time: String,
    /// Who asked. Empty here; the caller that knows fills it in.
    pub agent: Option<String>,
    /// The URL that was asked for, without user name and password, bounded.
    pub url: String,
    /// The URL that answered, or, when a redirect was refused, the URL that was refused.
    pub final_url: String,
    /// How it ended.
    pub status: Status,
    /// `"allow"`, or `"block"` when a rule refused it.
    pub decision: &'static str,
    /// Why it is not ok, or why the page is not whole.
    pub reason: Option<String>,
    /// The last host that was decided about.
    pub host: Option<String>,
    /// The last address that was dialed, also in vain; none from an archive or the cache.
    pub address: Option<String>,
    /// The status code of the last response; none when the last request got none.
    pub http_status: Option<u16>,
    /// Bytes of the page after decompression.
    pub bytes: u64,
    /// SHA-256 of those bytes, in lower-case hexadecimal.
    pub sha256: Option<String>,
    /// The page's title.
    pub title: Option<String>,
    /// How long it took, waits included, in seconds.
    pub duration: f64,
    /// Whether the page came from this run's cache; then nothing was sent.
    pub from_cache: bool,
    /// Redirects that were followed.
    pub redirects: u32,
    /// Whether the page was cut before its end.
    pub truncated: bool,
    /// Why the page could not be kept in the record folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_error: Option<String>,
}

impl AuditRecord {
    /// The record of a fetch of which nothing is known yet but what was asked for.
    #[must_use]
    pub fn started(url: &str) -> Self {
        let url = loggable(url);
        Self {
            time: Timestamp::now().to_string(),
            agent: None,
            final_url: url.clone(),
            url,
            status: Status::Error,
            decision: "allow",
            reason: None,
            host: None,
            address: None,
            http_status: None,
            bytes: 0,
            sha256: None,
            title: None,
            duration: 0.0,
            from_cache: false,
            redirects: 0,
            truncated: false,
            record_error: None,
        }
    }
}

/// The SHA-256 of `bytes` in lower-case hexadecimal.
pub(crate) fn hex_sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A URL as it may be written down or shown: without credentials, on one line, bounded.
pub(crate) fn loggable(url: &str) -> String {
    let mut text = without_credentials(url);
    if text.chars().nth(URL_CHARACTERS).is_some() {
        text = text.chars().take(URL_CHARACTERS).chain(['…']).collect();
    }
    if text.chars().any(|c| c.is_control()) {
        text = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    }
    text
}

/// A URL in the one accepted shape has none. Of any other, readers disagree about where a user name
/// and password end, so all before an '@' goes: the last one before the path, or else the last.
fn without_credentials(url: &str) -> String {
    if authority::split(url).is_ok() || !url.contains('@') {
        return url.to_owned();
    }
    let start = if authority::strip_https(url).is_some() { "https://".len() } else { 0 };
    let (head, rest) = url.split_at(start);
    let authority = authority::until_any(rest, &['/', '?', '#', '\\']);
    let at = authority.rfind('@').or_else(|| rest.rfind('@')).unwrap_or_default();
    format!("{head}…{}", &rest[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_written_down() {
        for (url, expected) in [
            ("https://user:secret@evil.com/a@b", "https://…@evil.com/a@b"),
            ("https://a@b@evil.com", "https://…@evil.com"),
            ("user:secret@evil.com", "…@evil.com"),
            ("https:user:secret@evil.com//x", "…@evil.com//x"),
            ("https:/user:secret@evil.com//x", "…@evil.com//x"),
            ("https:\\\\user:secret@evil.com//x", "…@evil.com//x"),
            (" https://user:secret@evil.com/", "…@evil.com/"),
            ("http://user:secret@evil.com/", "…@evil.com/"),
            ("https://user:sec/ret@evil.com/", "https://…@evil.com/"),
            ("https://user:sec?ret@evil.com/", "https://…@evil.com/"),
            ("https://user\n:secret@evil.com/", "https://…@evil.com/"),
            ("https://www.bbc.com/@x", "https://www.bbc.com/@x"),
            ("https://a\nb", "https://a\u{fffd}b"),
        ] {
            assert_eq!(loggable(url), expected);
        }
        assert_eq!(loggable(&"x".repeat(10_000)).chars().count(), 2049);
    }

    #[test]
    fn the_hash_is_sha256() {
        assert_eq!(hex_sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
