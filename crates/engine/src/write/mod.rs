//! Writes: commit log, then memtable; locks of conditional writes.

mod apply;
mod batched;
mod gate;
mod large;
mod lock;
mod record;

pub use gate::{HeldWrites, RunningWrite, WriteGate};
pub(crate) use lock::Locks;
pub use lock::PartitionLock;
pub(crate) use record::{Entry, RecordWriter, read_record};
pub use record::{decode_mutations, encode_mutations};
