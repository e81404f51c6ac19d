//! The failure policies: whether the engine serves requests, and the reason if not.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use halcyon_sstable::Error as Damaged;

use crate::engine::Engine;
use crate::options::{CommitFailurePolicy, DiskFailurePolicy};
use crate::{Error, Result};

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
pub(crate) struct Health {
    stopped: AtomicBool,
    draining: AtomicBool,
    /// Something in memory is half-changed.
    broken: AtomicBool,
    failure: Mutex<Option<(String, FailurePolicy)>>,
}

impl Health {
    /// Refuses a write if the engine has stopped.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.stopped.load(Relaxed) { Err(self.refusal()) } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(String, FailurePolicy)>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(crate) fn drain(&self) {
        self.draining.store(true, Relaxed);
        self.stop("the server is draining".to_owned(), FailurePolicy::StopWrites);
    }

    /// Refuses to write what memory has if that may be half-changed: the commit log has all of it.
    pub(crate) fn check_whole(&self) -> Result<()> {
        if self.broken.load(Relaxed) { Err(self.refusal()) } else { Ok(()) }
    }

    pub(crate) fn failure(&self) -> Option<(String, FailurePolicy)> {
        self.lock().clone()
    }

    /// From now on writes are refused; the first reason stays.
    pub(crate) fn stop(&self, why: String, policy: FailurePolicy) {
        self.lock().get_or_insert((why, policy));
        self.stopped.store(true, Relaxed);
    }
}

/// While it is there, something is being changed that a panic would leave half-changed.
pub(crate) struct Changing<'a>(&'a Engine, &'static str);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken(self.1);
        }
    }
}

impl Engine {
    /// Has the node end if what follows panics, until the guard is dropped.
    pub(crate) fn changing(&self, what: &'static str) -> Changing<'_> {
        Changing(self, what)
    }

    /// A panic has left something half-changed: the node ends, writes no memtable, and the next start makes it whole.
    pub(crate) fn broken(&self, what: &str) {
        self.health.broken.store(true, Relaxed);
        let why = format!(
            "an internal error may have left {what} half-changed; the node ends without a flush, and its next start makes it whole from \
             the commit log"
        );
        self.health.stop(why, FailurePolicy::Die);
    }

    /// Applies `disk_failure_policy` to a failed read or write.
    pub(crate) fn disk_failed(&self, why: String) {
        match self.options.disk_failure_policy {
            DiskFailurePolicy::Stop | DiskFailurePolicy::StopParanoid => {
                self.health.stop(why, FailurePolicy::Stop);
            }
            DiskFailurePolicy::Die => self.health.stop(why, FailurePolicy::Die),
            DiskFailurePolicy::BestEffort | DiskFailurePolicy::Ignore => {
                self.warn_once("disk", why)
            }
        }
    }

    /// Applies `disk_failure_policy` to a failed read: a damaged file triggers `stop_paranoid` and `die`, but not `stop`.
    pub(crate) fn read_failed(&self, error: &Error) {
        let policy = self.options.disk_failure_policy;
        let text = || format!("a read failed: {error}");
        if let Some(key) = error.spares_device() {
            return self.warn_once(key, text());
        }
        match error {
            Error::Disk(_) => self.disk_failed(text()),
            Error::SSTable(Damaged::Corrupt { .. } | Damaged::Missing { .. }) => match policy {
                DiskFailurePolicy::StopParanoid | DiskFailurePolicy::Die => {
                    self.disk_failed(text());
                }
                _ => self.warn_once("damage", text()),
            },
            Error::SSTable(Damaged::Io(_)) => self.disk_failed(text()),
            _ => {}
        }
    }

    /// Applies `commit_failure_policy` to a failed commit log.
    pub(crate) fn log_failed(&self, why: String) {
        match self.options.commit_failure_policy {
            CommitFailurePolicy::Stop => self.health.stop(why, FailurePolicy::Stop),
            CommitFailurePolicy::StopCommit => self.health.stop(why, FailurePolicy::StopWrites),
            CommitFailurePolicy::Die => self.health.stop(why, FailurePolicy::Die),
            CommitFailurePolicy::Ignore => self.warn_once("log", why),
        }
    }

    /// Reports that the commit log lacks space; it continues once there is some.
    pub(crate) fn log_is_full(&self, why: String) {
        self.warn_once("space", why);
    }
}
