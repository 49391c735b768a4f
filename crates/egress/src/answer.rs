//! What a source, the network or an archive, gives back for one request.

use std::io::Read;
use std::time::{Duration, SystemTime};

use crate::decompress::Cut;

/// One response. The body is not read yet.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) location: Option<String>,
    pub(crate) retry_after: Option<String>,
    /// Why an archived page was already cut when it was recorded.
    pub(crate) cut: Option<Cut>,
    /// The hash that an archive gives for the body, in lower-case hexadecimal.
    pub(crate) sha256: Option<String>,
    pub(crate) body: Box<dyn Read>,
}

impl Answer {
    /// True for the statuses whose `Location` is followed.
    pub(crate) fn is_redirect(&self) -> bool {
        matches!(self.status, 301 | 302 | 303 | 307 | 308)
    }

    /// The wait that a 429 or 503 asks for, when it does so readably.
    pub(crate) fn asks_to_wait(&self, now: SystemTime) -> Option<Duration> {
        if !matches!(self.status, 429 | 503) {
            return None;
        }
        let value = self.retry_after.as_deref()?.trim();
        if let Ok(seconds) = value.parse::<u32>() {
            return Some(Duration::from_secs(seconds.into()));
        }
        let at = httpdate::parse_http_date(value).ok()?;
        Some(at.duration_since(now).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn answer(status: u16, retry_after: &str) -> Answer {
        Answer {
            status,
            content_type: None,
            content_encoding: None,
            location: None,
            retry_after: Some(retry_after.to_owned()),
            cut: None,
            sha256: None,
            body: Box::new(io::empty()),
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 29 Nov 2026 08:00:00 GMT").expect("date");
        let wait = |status, value| answer(status, value).asks_to_wait(now);
        assert_eq!(wait(503, "7"), Some(Duration::from_secs(7)));
        assert_eq!(wait(429, "Sun, 29 Nov 2026 08:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(wait(429, "Sun, 29 Nov 2026 07:00:00 GMT"), Some(Duration::ZERO));
        for (status, value) in [(500, "7"), (503, "soon"), (503, "-1"), (503, "")] {
            assert_eq!(wait(status, value), None, "{status} {value}");
        }
    }
}
