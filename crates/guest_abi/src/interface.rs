//! The version of everything in this crate. An image carries it as text, so that the host can tell before it boots one.
macro_rules! mark {
    () => {
        "wcpod-guest-interface="
    };
}

macro_rules! version {
    ($number:literal) => {
        /// To be raised whenever host and guest of different builds would misunderstand each other.
        pub const VERSION: u32 = $number;
        /// What an image carries.
        pub const MARKED: &str = concat!(mark!(), $number, "\0");
    };
}

/// Stands before the version in an image.
pub const MARK: &str = mark!();
version!(4);
