//! The bounds of a run's fetches. All on by default.

use std::fmt;
use std::time::Duration;

/// Bounds that one [`FetchSession`](crate::FetchSession) keeps over all its fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchLimits {
    /// Fetches per run; blocked, failed and cached ones count too (default 100).
    pub fetches: u32,
    /// Bytes of page content per run, after decompression (default 64 MiB).
    pub total_bytes: u64,
    /// Bytes of one page, after decompression (default 2 MiB). A longer page is cut here.
    pub page_bytes: usize,
    /// Bytes of one response's status line and headers (default 64 KiB).
    pub header_bytes: usize,
    /// Redirects followed in one fetch (default 5).
    pub redirects: u32,
    /// Time for one fetch, from its start to its last byte, waits and redirects included
    /// (default 20 s).
    pub deadline: Duration,
    /// Fetches that may be under way at the same time (default 4).
    pub concurrent: usize,
    /// Pause between two requests to one host, redirects included (default 250 ms).
    pub pause: Duration,
    /// How a site can reach the operator, shown in the user agent: a mail address or a URL,
    /// visible ASCII only. Default: none.
    pub contact: Option<String>,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            fetches: 100,
            total_bytes: 64 * 1024 * 1024,
            page_bytes: 2 * 1024 * 1024,
            header_bytes: 64 * 1024,
            redirects: 5,
            deadline: Duration::from_secs(20),
            concurrent: 4,
            pause: Duration::from_millis(250),
            contact: None,
        }
    }
}

/// A limit that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitsError {
    /// A bound that must be more than 0 is 0.
    Zero {
        /// The field's name.
        field: &'static str,
    },
    /// The contact is empty, longer than 200 bytes, or not visible ASCII without parentheses.
    BadContact,
}

impl fmt::Display for LimitsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { field } => write!(out, "the limit {field} must be more than 0"),
            Self::BadContact => write!(
                out,
                "the contact must be 1 to 200 visible ASCII characters without parentheses, such as \"ops@example.org\""
            ),
        }
    }
}

impl std::error::Error for LimitsError {}

impl FetchLimits {
    /// # Errors
    /// [`LimitsError`] names the first limit that cannot be meant.
    pub(crate) fn validate(&self) -> Result<(), LimitsError> {
        for (field, is_zero) in [
            ("page_bytes", self.page_bytes == 0),
            ("header_bytes", self.header_bytes == 0),
            ("deadline", self.deadline.is_zero()),
            ("concurrent", self.concurrent == 0),
        ] {
            if is_zero {
                return Err(LimitsError::Zero { field });
            }
        }
        let good = |contact: &String| {
            (1..=200).contains(&contact.len())
                && contact.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'(' | b')'))
        };
        if self.contact.as_ref().is_some_and(|contact| !good(contact)) {
            return Err(LimitsError::BadContact);
        }
        Ok(())
    }

    /// The `User-Agent` header: `wcpod/<version>`, and the operator's contact when there is one.
    pub(crate) fn user_agent(&self) -> String {
        let name = concat!("wcpod/", env!("CARGO_PKG_VERSION"));
        match &self.contact {
            Some(contact) => format!("{name} (contact: {contact})"),
            None => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_contact(contact: &str) -> FetchLimits {
        FetchLimits { contact: Some(contact.to_owned()), ..FetchLimits::default() }
    }

    #[test]
    fn the_user_agent_carries_the_contact() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(FetchLimits::default().user_agent(), format!("wcpod/{version}"));
        assert_eq!(with_contact("ops@example.org").user_agent(), format!("wcpod/{version} (contact: ops@example.org)"));
    }

    #[test]
    fn limits_that_cannot_be_meant_are_errors() {
        assert_eq!(FetchLimits::default().validate(), Ok(()));
        let zero = FetchLimits { concurrent: 0, ..FetchLimits::default() };
        assert_eq!(zero.validate(), Err(LimitsError::Zero { field: "concurrent" }));
        for contact in ["", "a\r\nX-Evil: 1", "a b", "ops)", "öps@example.org"] {
            assert_eq!(with_contact(contact).validate(), Err(LimitsError::BadContact), "{contact:?}");
        }
    }
}
