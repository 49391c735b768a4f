//! A sandbox: a thread of its own that owns a micro-VM, and the messages that others send it.
//!
//! The thread's signal mask is known, and nobody else calls the hypervisor. A message waits for its turn; whoever sent it can
//! take it back, and gets the answer on the sandbox's thread, which it must not hold up.
use std::collections::VecDeque;
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::boot::StartTimes;
use crate::error::BridgeError;
use crate::interrupt_signal;
use crate::micro_vm::{Counters, MicroVm};
use crate::run::{RunReport, RunRequest, Services};
use crate::snapshot::{Facts, Snapshot};
use crate::stop::{Stop, StopReason};

/// Takes an answer, once.
pub type Reply<T> = Box<dyn FnOnce(Result<T, BridgeError>) + Send>;

/// What a sandbox can be asked.
pub enum Message {
    /// To run code from the clean state.
    Run(Box<RunRequest>, Reply<RunReport>),
    /// To run code in the state that the last run left, to measure what a restore costs.
    #[cfg(feature = "bench")]
    RunWithoutRestore(Box<RunRequest>, Reply<RunReport>),
    /// To bring the clean state back; how long that took.
    Restore(Reply<Duration>),
    /// For a snapshot of what the last run left.
    Capture(Reply<Snapshot>),
    /// To start every run from another state.
    Adopt(Snapshot, Reply<()>),
}

impl Message {
    fn stop(&self) -> Option<&Arc<Stop>> {
        match self {
            Self::Run(request, _) => Some(&request.stop),
            #[cfg(feature = "bench")]
            Self::RunWithoutRestore(request, _) => Some(&request.stop),
            Self::Restore(_) | Self::Capture(_) | Self::Adopt(..) => None,
        }
    }

    fn refuse(self, error: BridgeError) {
        match self {
            Self::Run(request, reply) => refuse_run(&request, reply, error),
            #[cfg(feature = "bench")]
            Self::RunWithoutRestore(request, reply) => refuse_run(&request, reply, error),
            Self::Restore(reply) => reply(Err(error)),
            Self::Capture(reply) => reply(Err(error)),
            Self::Adopt(_, reply) => reply(Err(error)),
        }
    }

    /// Does it, calls `done`, and answers: whoever gets the answer finds the sandbox free.
    fn carry_out(self, vm: &mut MicroVm, done: impl FnOnce(&MicroVm)) {
        match self {
            Self::Run(request, reply) => {
                let ended = run(*request, |request| vm.run(request));
                done(vm);
                reply(ended);
            }
            #[cfg(feature = "bench")]
            Self::RunWithoutRestore(request, reply) => {
                let ended = run(*request, |request| vm.run_without_restore(request));
                done(vm);
                reply(ended);
            }
            Self::Restore(reply) => {
                let took = vm.restore();
                done(vm);
                reply(took);
            }
            Self::Capture(reply) => {
                let taken = vm.capture();
                done(vm);
                reply(taken);
            }
            Self::Adopt(snapshot, reply) => {
                let adopted = vm.adopt(&snapshot);
                done(vm);
                reply(adopted);
            }
        }
    }
}

fn run(
    request: RunRequest,
    run: impl FnOnce(RunRequest) -> Result<RunReport, BridgeError>,
) -> Result<RunReport, BridgeError> {
    let _served = Served(request.services.clone());
    run(request)
}

/// Lets the threads go that serve a run, also where it panics.
struct Served(Services);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn refuse_run(request: &RunRequest, reply: Reply<RunReport>, error: BridgeError) {
    request.services.end();
    reply(Err(error));
}

/// Names a message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

impl Ticket {
    /// Its number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

impl From<u64> for Ticket {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

struct Waiting {
    ticket: Ticket,
    message: Message,
}

#[derive(Default)]
struct State {
    sent: u64,
    waiting: VecDeque<Waiting>,
    /// The stop signal of the run that is under way, and its ticket.
    current: Option<(Ticket, Option<Arc<Stop>>)>,
    closing: bool,
    ended: bool,
}

#[derive(Default)]
struct Mailbox {
    state: Mutex<State>,
    changed: Condvar,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next message; `None` once the sandbox is to close.
    fn next(&self) -> Option<Message> {
        let mut state = self.lock();
        loop {
            if state.closing {
                return None;
            }
            if let Some(Waiting { ticket, message }) = state.waiting.pop_front() {
                state.current = Some((ticket, message.stop().cloned()));
                return Some(message);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What is known of a sandbox from its start on.
#[derive(Debug, Clone)]
pub struct Start {
    /// Of the state that its runs started from at first.
    pub facts: Facts,
    /// How long it took.
    pub times: StartTimes,
    /// Numbers that stay readable.
    pub counters: Arc<Counters>,
}

/// A sandbox, seen from other threads.
pub struct SandboxThread {
    mailbox: Arc<Mailbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
    clean: Arc<Mutex<Option<Snapshot>>>,
    process: u32,
}

impl SandboxThread {
    /// Starts the thread, on which `make` makes the micro-VM. `started` gets what became known, or why there is none.
    ///
    /// # Errors
    /// [`BridgeError::NoThread`].
    pub fn start(
        make: impl FnOnce() -> Result<MicroVm, BridgeError> + Send + 'static,
        started: Reply<Start>,
    ) -> Result<Self, BridgeError> {
        let (mailbox, clean) = (Arc::new(Mailbox::default()), Arc::new(Mutex::new(None)));
        let (own, own_clean) = (Arc::clone(&mailbox), Arc::clone(&clean));
        let serve = move || {
            let ending = Ending(own);
            let made = interrupt_signal::only_interrupts()
                .map_err(|source| BridgeError::NoThread { source })
                .and_then(|()| make());
            match made {
                Ok(mut vm) => {
                    note_clean(&own_clean, &vm);
                    let (facts, times) = (vm.clean().facts().clone(), vm.start_times());
                    started(Ok(Start { facts, times, counters: vm.counters() }));
                    while let Some(message) = ending.0.next() {
                        let adopts = matches!(message, Message::Adopt(..));
                        message.carry_out(&mut vm, |vm| {
                            if adopts {
                                note_clean(&own_clean, vm);
                            }
                            ending.0.lock().current = None;
                        });
                    }
                }
                Err(error) => started(Err(error)),
            }
        };
        let thread = thread::Builder::new().name("wcpod-sandbox".into()).spawn(serve);
        let thread = thread.map_err(|source| BridgeError::NoThread { source })?;
        Ok(Self { mailbox, thread: Mutex::new(Some(thread)), clean, process: process::id() })
    }

    /// Whether this is the process that it was made in. After a fork nothing else may be asked of it.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.process == process::id()
    }

    /// The state that runs start from.
    #[must_use]
    pub fn clean(&self) -> Option<Snapshot> {
        self.clean.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`BridgeError::Closed`]; the message's own reply gets nothing then.
    pub fn send(&self, message: Message) -> Result<Ticket, BridgeError> {
        let mut state = self.mailbox.lock();
        if state.closing {
            return Err(BridgeError::Closed);
        }
        state.sent += 1;
        let ticket = Ticket(state.sent);
        state.waiting.push_back(Waiting { ticket, message });
        drop(state);
        self.mailbox.changed.notify_all();
        Ok(ticket)
    }

    /// Takes a message back that waits for its turn, and has it answered with `error`; stops the run that it began.
    pub fn cancel(&self, ticket: Ticket, error: BridgeError) {
        let (taken, stop) = {
            let mut state = self.mailbox.lock();
            let place = state.waiting.iter().position(|waiting| waiting.ticket == ticket);
            let taken = place.and_then(|place| state.waiting.remove(place));
            let stop =
                state.current.as_ref().filter(|(current, _)| *current == ticket).and_then(|(_, stop)| stop.clone());
            (taken, stop)
        };
        if let Some(Waiting { message, .. }) = taken {
            message.refuse(error);
        }
        if let Some(stop) = stop {
            stop.request(StopReason::Cancelled);
        }
    }

    /// As [`Self::cancel`], but what has begun goes on, also what is about to: the thread may only need a moment to wake.
    /// Whether the message was taken back.
    pub fn take_back(&self, ticket: Ticket, error: BridgeError) -> bool {
        let taken = {
            let mut state = self.mailbox.lock();
            let place = state.waiting.iter().position(|waiting| waiting.ticket == ticket);
            let waits = place.filter(|place| *place > 0 || state.current.is_some());
            waits.and_then(|place| state.waiting.remove(place))
        };
        taken.map(|waiting| waiting.message.refuse(error)).is_some()
    }

    /// Cancels the run under way, refuses what waits, and has the thread give the micro-VM back. Does not wait for that.
    pub fn close(&self) {
        let (waiting, stop) = {
            let mut state = self.mailbox.lock();
            state.closing = true;
            let stop = state.current.as_ref().and_then(|(_, stop)| stop.clone());
            (std::mem::take(&mut state.waiting), stop)
        };
        self.mailbox.changed.notify_all();
        for Waiting { message, .. } in waiting {
            message.refuse(BridgeError::Closed);
        }
        if let Some(stop) = stop {
            stop.request(StopReason::Cancelled);
        }
    }

    /// Waits until the thread has ended after [`Self::close`], at most until `deadline`. Whether it has.
    pub fn wait_closed(&self, deadline: Instant) -> bool {
        let mut state = self.mailbox.lock();
        while !state.ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.mailbox.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        // It has nothing left to do but to return.
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
        true
    }
}

impl Drop for SandboxThread {
    fn drop(&mut self) {
        if self.is_own() {
            self.close();
        }
    }
}

fn note_clean(place: &Mutex<Option<Snapshot>>, vm: &MicroVm) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(vm.clean().clone());
}

/// Says that the thread has ended, also when it panics. Field order of its owner: dropped after the micro-VM.
struct Ending(Arc<Mailbox>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        (state.closing, state.ended, state.current) = (true, true, None);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.0.changed.notify_all();
        for Waiting { message, .. } in waiting {
            message.refuse(BridgeError::Closed);
        }
    }
}

/// An answer that somebody waits for.
pub struct Pending<T>(mpsc::Receiver<Result<T, BridgeError>>);

impl<T: Send + 'static> Pending<T> {
    /// The reply to hand over, and what waits for it.
    #[must_use]
    pub fn new() -> (Reply<T>, Self) {
        let (sender, receiver) = mpsc::channel();
        // Whoever no longer waits does not want it.
        (Box::new(move |answer| drop(sender.send(answer))), Self(receiver))
    }

    /// Waits for the answer for at most `nap`. `None` when it has not come yet.
    pub fn wait(&mut self, nap: Duration) -> Option<Result<T, BridgeError>> {
        match self.0.recv_timeout(nap) {
            Ok(answer) => Some(answer),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            // The sandbox's thread has ended without an answer.
            Err(mpsc::RecvTimeoutError::Disconnected) => Some(Err(BridgeError::Closed)),
        }
    }
}
