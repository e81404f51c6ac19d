//! What the node tells its operator, and whether it serves requests. Every service holds the reporter, and the reporter needs none of them.
//!
//! 1. A service reports events (`event.rs`); they are queued until the server takes them (`events.rs`).
//! 2. A service says what has failed; the failure policy of disk or commit log decides what that stops (`health.rs`).
//! 3. What changes several things in memory holds [`Changing`] meanwhile: a panic in between ends the node.

mod event;
mod events;
mod health;

use std::sync::Arc;

use halcyon_io::Clock;
use halcyon_sstable::Error as Damaged;

use crate::options::{CommitFailurePolicy, DiskFailurePolicy};
use crate::{Error, Options, Result};
use event::{COMMIT_LOG, COMMIT_LOG_SPACE};
pub use event::{Compacted, CompactionFailed, Event, Severity};
use events::Events;
pub use health::FailurePolicy;
use health::Health;

pub struct Reporter {
    clock: Clock,
    disk_failure_policy: DiskFailurePolicy,
    commit_failure_policy: CommitFailurePolicy,
    events: Events,
    health: Health,
}

/// While it is there, something is being changed that a panic would leave half-changed.
pub(crate) struct Changing<'a>(&'a Reporter, &'static str);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken(self.1);
        }
    }
}

impl Reporter {
    pub(crate) fn new(clock: Clock, options: &Options) -> Arc<Reporter> {
        Arc::new(Reporter {
            clock,
            disk_failure_policy: options.disk_failure_policy,
            commit_failure_policy: options.commit_failure_policy,
            events: Events::default(),
            health: Health::default(),
        })
    }

    /// Reports an event; one that repeats itself once a minute.
    pub fn report(&self, event: Event) {
        self.events.push(event, self.clock.now());
    }

    fn failed(&self, kind: &'static str, why: String) {
        self.report(Event::Failed { kind, why });
    }

    /// The events since the last call, oldest first.
    pub fn take_events(&self) -> Vec<Event> {
        self.events.take()
    }

    /// Why writes are refused, and what else has to end; `None` if they are not refused.
    pub fn failure(&self) -> Option<(String, FailurePolicy)> {
        self.health.failure()
    }

    /// Refuses a write if the engine has stopped.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        self.health.check()
    }

    /// Refuses to write what memory has if that may be half-changed: the commit log has all of it.
    pub(crate) fn check_whole(&self) -> Result<()> {
        self.health.check_whole()
    }

    /// `nodetool drain`: from now on writes are refused.
    pub(crate) fn drain(&self) {
        self.health.drain();
    }

    /// Has the node end if what follows panics, until the guard is dropped.
    pub(crate) fn changing(&self, what: &'static str) -> Changing<'_> {
        Changing(self, what)
    }

    /// A panic has left something half-changed: the node ends, writes no memtable, and the next start makes it whole.
    pub(crate) fn broken(&self, what: &str) {
        let why = format!(
            "an internal error may have left {what} half-changed; the node ends without a flush, and its next start makes it whole from \
             the commit log"
        );
        self.health.break_down(why);
    }

    /// Applies `disk_failure_policy` to a failed read or write.
    pub(crate) fn disk_failed(&self, why: String) {
        match self.disk_failure_policy {
            DiskFailurePolicy::Stop | DiskFailurePolicy::StopParanoid => {
                self.health.stop(why, FailurePolicy::Stop);
            }
            DiskFailurePolicy::Die => self.health.stop(why, FailurePolicy::Die),
            DiskFailurePolicy::BestEffort | DiskFailurePolicy::Ignore => self.failed("disk", why),
        }
    }

    /// Applies `disk_failure_policy` to a failed read: a damaged file triggers `stop_paranoid` and `die`, but not `stop`.
    pub(crate) fn read_failed(&self, error: &Error) {
        let text = || format!("a read failed: {error}");
        if let Some(key) = error.spares_device() {
            return self.failed(key, text());
        }
        match error {
            Error::Disk(_) => self.disk_failed(text()),
            Error::SSTable(Damaged::Corrupt { .. } | Damaged::Missing { .. }) => {
                match self.disk_failure_policy {
                    DiskFailurePolicy::StopParanoid | DiskFailurePolicy::Die => {
                        self.disk_failed(text());
                    }
                    _ => self.failed("damage", text()),
                }
            }
            Error::SSTable(Damaged::Io(_)) => self.disk_failed(text()),
            _ => {}
        }
    }

    /// Applies `commit_failure_policy` to a failed commit log.
    pub(crate) fn log_failed(&self, why: String) {
        match self.commit_failure_policy {
            CommitFailurePolicy::Stop => self.health.stop(why, FailurePolicy::Stop),
            CommitFailurePolicy::StopCommit => self.health.stop(why, FailurePolicy::StopWrites),
            CommitFailurePolicy::Die => self.health.stop(why, FailurePolicy::Die),
            CommitFailurePolicy::Ignore => self.failed(COMMIT_LOG, why),
        }
    }

    /// Reports that the commit log lacks space; it continues once there is some.
    pub(crate) fn log_is_full(&self, why: String) {
        self.failed(COMMIT_LOG_SPACE, why);
    }
}
