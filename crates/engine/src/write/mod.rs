//! Writes: commit log, then memtable; locks of conditional writes.

mod apply;
mod gate;
mod large;
mod lock;
mod record;
mod spanning;

pub use gate::{HeldWrites, RunningWrite, WriteGate};
pub use lock::PartitionLock;
pub(crate) use lock::{Locks, lock};
pub(crate) use record::{Entry, RecordWriter, read_record};
pub use spanning::Parts;
