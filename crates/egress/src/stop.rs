//! Why a fetch ended without a page. One type for the whole chain; the reply is made from it.

use crate::target::Refused;

/// The end of a fetch that gives no page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A rule of ours refused it: `STATUS` is `blocked`.
    Blocked(Refused),
    /// It was tried and failed: `STATUS` is `error`.
    Failed(String),
}

impl Stop {
    pub(crate) fn blocked(reason: impl Into<String>, host: Option<&str>) -> Self {
        Self::Blocked(Refused { reason: reason.into(), host: host.map(str::to_owned) })
    }

    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }

    /// The deadline passed while `doing` something, e.g. `"resolving www.example.org"`.
    pub(crate) fn deadline(doing: &str) -> Self {
        Self::Failed(format!("the deadline passed while {doing}"))
    }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Self::Blocked(refused)
    }
}
