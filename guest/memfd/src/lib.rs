//! Empty on purpose: see Cargo.toml.
#![no_std]
