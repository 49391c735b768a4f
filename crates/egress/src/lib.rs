//! The one way out of a wcpod sandbox.
