//! How a run's fetches are set up: policy, limits, and where pages come from and go to.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::archive::{Archive, ArchiveError, Recorder};
use crate::client::Client;
use crate::fetch::{FetchSession, Source};
use crate::limits::{FetchLimits, LimitsError};
use crate::policy::FetchPolicy;
use crate::resolve::Network;

/// A session that cannot be set up.
#[derive(Debug)]
pub enum SessionError {
    /// A limit cannot be meant.
    Limits(LimitsError),
    /// The archive cannot be read, or the record folder cannot be written.
    Archive(ArchiveError),
}

impl fmt::Display for SessionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limits(error) => error.fmt(out),
            Self::Archive(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for SessionError {}

/// How a [`FetchSession`] is set up.
#[derive(Debug, Clone)]
pub struct SessionBuilder {
    policy: FetchPolicy,
    limits: FetchLimits,
    network: Network,
    archive: Option<PathBuf>,
    record: Option<PathBuf>,
}

impl SessionBuilder {
    /// Sets the bounds of the run.
    #[must_use]
    pub fn limits(mut self, limits: FetchLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Replays pages from this folder instead of the network, behind the same policy.
    #[must_use]
    pub fn archive(mut self, folder: impl AsRef<Path>) -> Self {
        self.archive = Some(folder.as_ref().to_owned());
        self
    }

    /// Keeps every response in this folder, in the archive's format.
    #[must_use]
    pub fn record(mut self, folder: impl AsRef<Path>) -> Self {
        self.record = Some(folder.as_ref().to_owned());
        self
    }

    /// Puts another network below the policy, for tests.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Opens the session. No network access.
    ///
    /// # Errors
    /// [`SessionError`]: a limit that cannot be meant, an archive or record folder that cannot be
    /// used.
    pub fn build(self) -> Result<FetchSession, SessionError> {
        self.limits.validate().map_err(SessionError::Limits)?;
        let source = match &self.archive {
            Some(folder) => Source::Archive(Archive::open(folder).map_err(SessionError::Archive)?),
            None => Source::Network(Client::new(self.network, &self.limits)),
        };
        let recorder = self.record.as_deref().map(Recorder::open).transpose();
        let recorder = recorder.map_err(SessionError::Archive)?;
        Ok(FetchSession::over(source, self.policy, self.limits, recorder))
    }
}

impl FetchSession {
    /// Starts the set-up of a session over the system's network with the default limits.
    #[must_use]
    pub fn builder(policy: FetchPolicy) -> SessionBuilder {
        SessionBuilder {
            policy,
            limits: FetchLimits::default(),
            network: Network::system(),
            archive: None,
            record: None,
        }
    }
}
