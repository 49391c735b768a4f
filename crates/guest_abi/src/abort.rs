//! Codes with which a guest gives up: the first byte of what it writes to the abort port. The host judges by the code; the
//! text behind it is for people.
use hyperlight_common::flatbuffer_wrappers::guest_error::ErrorCode;

/// Why a guest of ours gave up. Other codes are those of Hyperlight's guest library, in a panic for example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Abort {
    /// An exception that nobody handles, in the runtime or in the shim.
    Exception = 0x41,
    /// No page of scratch is left.
    OutOfScratch = 0x42,
    /// A run printed far more than is kept.
    OutputLimit = 0x43,
}

const _: () =
    assert!((ErrorCode::HostFunctionError as u8) < Abort::Exception as u8, "Hyperlight's own codes are below");

impl Abort {
    /// The byte that is sent.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whose code that is, if it is one of ours.
    #[must_use]
    pub const fn of_code(code: u8) -> Option<Self> {
        Some(match code {
            0x41 => Self::Exception,
            0x42 => Self::OutOfScratch,
            0x43 => Self::OutputLimit,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_known_again() {
        for abort in [Abort::Exception, Abort::OutOfScratch, Abort::OutputLimit] {
            assert_eq!(Abort::of_code(abort.code()), Some(abort));
        }
        assert_eq!((0..=u8::MAX).filter_map(Abort::of_code).count(), 3);
    }
}
