//! The only place that makes Python exceptions of this crate's errors.
use egress::{PolicyError, SessionError};
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;

use crate::error::BridgeError;

/// An exception of `wcpod.exceptions`, by name.
pub fn named(class: &str, message: String) -> PyErr {
    Python::attach(|py| match py.import("wcpod.exceptions").and_then(|module| module.getattr(class)) {
        Ok(class) => match class.call1((message,)) {
            Ok(instance) => PyErr::from_value(instance),
            Err(error) => error,
        },
        Err(error) => error,
    })
}

/// The exception for an error of the sandbox.
pub fn to_python(error: BridgeError) -> PyErr {
    let class = match &error {
        BridgeError::NoHypervisor { .. } | BridgeError::NoPermission { .. } => "HypervisorUnavailable",
        BridgeError::ImageUnreadable { .. }
        | BridgeError::ImageInvalid { .. }
        | BridgeError::ImageVersion { .. }
        | BridgeError::BootFailed { .. } => "GuestImageError",
        BridgeError::SnapshotFailed { .. }
        | BridgeError::SnapshotRefused { .. }
        | BridgeError::RestoreFailed { .. } => "SnapshotError",
        BridgeError::CodeTooLong { .. }
        | BridgeError::InputName { .. }
        | BridgeError::InputNameTooLong { .. }
        | BridgeError::InputBelowFile { .. }
        | BridgeError::InputsTooLarge { .. } => {
            return PyValueError::new_err(error.to_string());
        }
        BridgeError::NoTurn { .. } => return PyTimeoutError::new_err(error.to_string()),
        BridgeError::Closed => "SandboxClosed",
        BridgeError::OutputUnreadable { .. }
        | BridgeError::NoInterrupt { .. }
        | BridgeError::NoThread { .. }
        | BridgeError::CancelledInLine => "SandboxError",
    };
    named(class, error.to_string())
}

/// The exception for a policy that makes no sense.
pub fn policy(error: PolicyError) -> PyErr {
    named("FetchPolicyError", error.to_string())
}

/// The exception for a fetch session that cannot be set up.
pub fn session(error: SessionError) -> PyErr {
    named("FetchPolicyError", error.to_string())
}
