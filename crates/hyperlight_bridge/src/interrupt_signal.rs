//! The signal with which Hyperlight interrupts a run, in this process and in the threads that run guests.
//!
//! `InterruptHandle::kill` sends `SIGRTMIN` to the thread that runs the virtual CPU. That works only where the thread does
//! not block it, and while the process has a handler for it: an ignored signal interrupts nothing, and the default action
//! ends the process. Signal masks are inherited from whoever starts a thread, and servers often start theirs with all
//! signals blocked. So a thread that runs guests sets its own mask, and the handler is looked at before every run.
use std::{io, mem, ptr};

use crate::error::BridgeError;

/// Faults of a thread itself. Blocking them would turn a handler for them, such as Python's faulthandler, off.
const FAULTS: [libc::c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// Blocks every signal in the calling thread but the interrupt's and faults: signals of the process go to threads that
/// are there for them, and interrupt their waiting.
pub(crate) fn only_interrupts() -> io::Result<()> {
    // SAFETY: a signal set is plain data, for which zeros are a valid value; it is filled before it is used. The mask of
    // the calling thread is all that changes.
    let failed = unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut set);
        for signal in FAULTS.into_iter().chain([libc::SIGRTMIN()]) {
            libc::sigdelset(&raw mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut())
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failed)) }
}

/// Makes sure that an interrupt would be one.
pub(crate) fn check_handler() -> Result<(), BridgeError> {
    // SAFETY: without a new action the call only writes the present one, to a place of its type.
    let handler = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        (libc::sigaction(libc::SIGRTMIN(), ptr::null(), &raw mut action) == 0).then_some(action.sa_sigaction)
    };
    let what = match handler {
        Some(libc::SIG_IGN) => "ignored",
        Some(libc::SIG_DFL) => "left to its default action, which ends the process",
        Some(_) => return Ok(()),
        None => "not known",
    };
    Err(BridgeError::NoInterrupt { signal: libc::SIGRTMIN(), what })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn a_thread_of_a_guest_lets_the_interrupt_and_faults_through() {
        let mask = thread::spawn(|| {
            only_interrupts().unwrap();
            blocked()
        });
        let mask = mask.join().unwrap();
        let is_blocked = |signal: libc::c_int| mask >> (signal - 1) & 1 == 1;
        assert!(is_blocked(libc::SIGINT) && is_blocked(libc::SIGTERM) && is_blocked(libc::SIGALRM));
        assert!(!is_blocked(libc::SIGRTMIN()) && !is_blocked(libc::SIGSEGV));
    }

    #[test]
    fn without_a_handler_there_is_no_interrupt() {
        // Nothing in this test process makes a sandbox, so nobody has installed one.
        let error = check_handler().unwrap_err().to_string();
        let expected =
            format!("signal {}, which ends a run at its limit, is left to its default action", libc::SIGRTMIN());
        assert!(error.contains(&expected), "{error}");
    }
}
