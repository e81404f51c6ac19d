//! What a log's handles and its tasks share.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use halcyon_io::{AccessMode, Disk, Notify};

use crate::manifest::Manifest;
use crate::metrics::LogMetrics;
use crate::pace::Pace;
use crate::state::{SegmentParameters, State};
use crate::ticket::Ticket;
use crate::{Error, Result, SyncMode};

/// Bytes of records after which a sync starts.
pub(crate) const SYNC_BYTES: usize = 4 << 20;

/// The state that the log's handles and its tasks share.
pub(crate) struct Shared {
    pub(crate) disk: Disk,
    pub(crate) directory: PathBuf,
    pub(crate) mode: AccessMode,
    pub(crate) sync: SyncMode,
    pub(crate) parameters: SegmentParameters,
    pub(crate) manifest: Manifest,
    pub(crate) state: RefCell<State>,
    pub(crate) metrics: Arc<LogMetrics>,
    /// Under `batch`.
    pub(crate) pace: Option<RefCell<Pace>>,
    /// Why the last segment file could not be prepared.
    pub(crate) not_ready: RefCell<Option<Error>>,
    /// Segments that nothing needs and whose files could not be deleted.
    pub(crate) undeleted: RefCell<Vec<u64>>,
    /// Wakes the writer: a group is open or sealed.
    pub(crate) work: Notify,
    /// A segment file is being filled, and waits for more records.
    pub(crate) filling: Cell<bool>,
    /// Wakes the task that prepares segment files.
    pub(crate) prepare: Notify,
    /// Wakes the writer: a segment file is ready, or cannot be created.
    pub(crate) ready: Notify,
    /// Wakes the task that syncs cached writes.
    pub(crate) sync_work: Notify,
    /// Wakes the writers that wait for a sync.
    pub(crate) synced: Notify,
    /// Wakes the task that flushes when space is short.
    pub(crate) short: Notify,
}

impl Shared {
    /// Fails the log for good.
    pub(crate) fn fail(&self, error: Error) -> (Vec<Rc<Ticket>>, Error) {
        let error = error.failed();
        let tickets = self.state.borrow_mut().fail(&error);
        for notify in [&self.prepare, &self.work, &self.sync_work] {
            notify.notify_one();
        }
        self.synced.notify_all();
        (tickets, error)
    }
}

pub(crate) async fn remove_if_there(disk: &Disk, path: &Path) -> Result<()> {
    match disk.remove(path).await {
        Err(e) if !e.is_not_found() => Err(e.into()),
        _ => Ok(()),
    }
}
