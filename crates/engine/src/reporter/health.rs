//! Whether the engine serves requests, and the reason if not.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::{Error, Result};
use halcyon_io::Mutex;

/// The consequence of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Serve reads.
    StopWrites,
    /// Serve no clients; the process keeps running.
    Stop,
    Die,
}

#[derive(Debug, Default)]
pub(super) struct Health {
    stopped: AtomicBool,
    draining: AtomicBool,
    /// Something in memory is half-changed.
    broken: AtomicBool,
    failure: Mutex<Option<(String, FailurePolicy)>>,
}

impl Health {
    /// Refuses a write if the engine has stopped.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        if self.stopped.load(Relaxed) { Err(self.refusal()) } else { Ok(()) }
    }

    /// The reason for clients, without paths; the log has the whole one.
    fn refusal(&self) -> Error {
        let why = match (self.broken.load(Relaxed), self.draining.load(Relaxed)) {
            (true, _) => "the server ends after an internal error; its log says more",
            (_, true) => "the server is draining",
            _ => "the server refuses writes since a failure of its disk; its log says more",
        };
        Error::Stopped(why.to_owned())
    }

    /// `nodetool drain`: from now on writes are refused.
    pub(super) fn drain(&self) {
        self.draining.store(true, Relaxed);
        self.stop("the server is draining".to_owned(), FailurePolicy::StopWrites);
    }

    /// Refuses to write what memory has if that may be half-changed: the commit log has all of it.
    pub(super) fn check_whole(&self) -> Result<()> {
        if self.broken.load(Relaxed) { Err(self.refusal()) } else { Ok(()) }
    }

    pub(super) fn failure(&self) -> Option<(String, FailurePolicy)> {
        self.failure.lock().clone()
    }

    /// From now on writes are refused; the first reason stays.
    pub(super) fn stop(&self, why: String, policy: FailurePolicy) {
        self.failure.lock().get_or_insert((why, policy));
        self.stopped.store(true, Relaxed);
    }

    /// Something in memory is half-changed: the node ends, without a flush.
    pub(super) fn break_down(&self, why: String) {
        self.broken.store(true, Relaxed);
        self.stop(why, FailurePolicy::Die);
    }
}
