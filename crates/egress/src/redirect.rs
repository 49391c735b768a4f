//! Where a redirect leads: back through the whole policy, as if it had been asked for.

use crate::authority::is_scheme;
use crate::policy::FetchPolicy;
use crate::stop::Stop;
use crate::target::{Refused, Target};

/// The next target, or the refusal and the URL that was refused.
///
/// A `Location` with a scheme is checked as written, never repaired. One without is joined to the
/// current URL first; it too is refused for a backslash, white space or a control character.
pub(crate) fn follow(policy: &FetchPolicy, from: &Target, location: Option<&str>) -> Result<Target, (Stop, String)> {
    let Some(location) = location.map(str::trim).filter(|location| !location.is_empty()) else {
        let stop = Stop::failed(format!("host {} redirects without saying where", from.host()));
        return Err((stop, from.url().to_string()));
    };
    let next = resolve(from, location).map_err(|refused| blocked(refused, location))?;
    policy.admit(&next).map_err(|refused| blocked(refused, &next))
}

fn resolve(from: &Target, location: &str) -> Result<String, Refused> {
    let has_scheme = location.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme));
    let untouched = |c: char| !(c == '\\' || c.is_control() || c.is_whitespace());
    if has_scheme || !location.chars().all(untouched) {
        return Ok(location.to_owned());
    }
    from.url()
        .join(location)
        .map(String::from)
        .map_err(|error| Refused { reason: format!("its location cannot be read: {error}"), host: None })
}

fn blocked(refused: Refused, url: &str) -> (Stop, String) {
    let stop =
        Stop::Blocked(Refused { reason: format!("the redirect is refused: {}", refused.reason), host: refused.host });
    (stop, url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow_from_bbc(location: &str) -> Result<String, (String, Option<String>)> {
        let policy = FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts");
        let from = policy.admit("https://www.bbc.com/a/b?c").expect("allowed");
        match follow(&policy, &from, Some(location)) {
            Ok(target) => Ok(target.url().to_string()),
            Err((Stop::Blocked(refused), _)) => Err((refused.reason, refused.host)),
            Err((Stop::Failed(reason), _)) => Err((reason, None)),
        }
    }

    #[test]
    fn relative_and_absolute_locations_are_followed() {
        for (location, url) in [
            ("https://bbc.com/x#y", "https://bbc.com/x"),
            (" /relative?x=1 ", "https://www.bbc.com/relative?x=1"),
            ("d", "https://www.bbc.com/a/d"),
            ("?d", "https://www.bbc.com/a/b?d"),
            ("//bbc.com/x", "https://bbc.com/x"),
        ] {
            assert_eq!(follow_from_bbc(location), Ok(url.to_owned()), "{location}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_the_host() {
        for (location, host) in [
            ("https://evil.com/", Some("evil.com")),
            ("http://www.bbc.com/", Some("www.bbc.com")),
            ("//evil.com/", Some("evil.com")),
            ("///evil.com/", None),
            ("\\\\evil.com", None),
            ("/\\evil.com", None),
            ("https://www.bbc.com@evil.com/", Some("evil.com")),
            ("https:evil.com", None),
            ("file:///etc/passwd", None),
            ("data:text/html,x", None),
            ("javascript:alert(1)", None),
            ("/a b", None),
        ] {
            let (reason, refused) = follow_from_bbc(location).expect_err(location);
            assert!(reason.starts_with("the redirect is refused: "), "{reason}");
            assert_eq!(refused.as_deref(), host, "{location}");
        }
    }

    #[test]
    fn no_location_is_an_error() {
        let policy = FetchPolicy::new(["bbc.com", "www.bbc.com"]).expect("hosts");
        let from = policy.admit("https://www.bbc.com/").expect("allowed");
        for location in [None, Some(""), Some("  ")] {
            let (stop, url) = follow(&policy, &from, location).expect_err("nowhere");
            assert_eq!(stop, Stop::failed("host www.bbc.com redirects without saying where"));
            assert_eq!(url, "https://www.bbc.com/");
        }
    }
}
