//! The object that was checked is the object that connects, and how two readings agree on it.

use url::{Host, Url};

use crate::authority::{self, Malformed};

/// A URL that passed the whole policy. The connection is made from this object and no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    url: Url,
    host: String,
}

impl Target {
    /// The URL as it is requested, without fragment.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The checked host, in lower case.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

/// Why a URL is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: String,
    pub(crate) host: Option<String>,
}

impl From<Malformed> for Refused {
    fn from(malformed: Malformed) -> Self {
        let reason = match &malformed.host {
            Some(host) => format!("{} (host {host})", malformed.reason),
            None => malformed.reason,
        };
        Self { reason, host: malformed.host }
    }
}

impl Target {
    /// A refusal that names this target's host.
    pub(crate) fn refused(&self, reason: &str) -> Refused {
        Refused { reason: format!("{reason} (host {})", self.host), host: Some(self.host.clone()) }
    }
}

/// Reads `raw` twice, with the strict splitter and the `url` crate, and gives the target only when
/// both readings agree on it.
pub(crate) fn agree(raw: &str) -> Result<Target, Refused> {
    let strict = authority::split(raw).map_err(|malformed| with_ascii_form(malformed, raw))?;
    let disagree = || Refused {
        reason: format!("two readings of the URL disagree, so it is refused (host {})", strict.host),
        host: Some(strict.host.clone()),
    };
    let mut url = Url::parse(raw).map_err(|_| disagree())?;
    url.set_fragment(None);
    let same_host = matches!(url.host(), Some(Host::Domain(host)) if host == strict.host);
    let plain =
        url.scheme() == "https" && url.port().is_none() && url.username().is_empty() && url.password().is_none();
    if !(same_host && plain) {
        return Err(disagree());
    }
    Ok(Target { url, host: strict.host })
}

/// A host in other letters is refused; that it has an ASCII form helps whoever meant it.
fn with_ascii_form(mut malformed: Malformed, raw: &str) -> Malformed {
    if malformed.host.as_ref().is_some_and(|host| !host.is_ascii())
        && let Ok(url) = Url::parse(raw)
        && let Some(host) = url.host_str().filter(|host| host.split('.').any(|label| label.starts_with("xn--")))
    {
        malformed.reason = format!("{}; its ASCII form is {host}", malformed.reason);
    }
    malformed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_has_no_fragment_and_a_lower_case_host() {
        let target = agree("https://WWW.BBC.com:443/a/../b?c#d").expect("agreed");
        assert_eq!(target.url().as_str(), "https://www.bbc.com/b?c");
        assert_eq!(target.host(), "www.bbc.com");
    }

    #[test]
    fn a_host_that_only_the_strict_splitter_accepts_is_refused() {
        for url in ["https://xn--/", "https://a.xn--0/"] {
            let refused = agree(url).expect_err(url);
            let reason = "two readings of the URL disagree, so it is refused";
            assert!(refused.reason.starts_with(reason), "{}", refused.reason);
            assert!(refused.host.is_some());
        }
    }
}
