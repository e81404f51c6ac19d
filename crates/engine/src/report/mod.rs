//! What the server shows of all tables and of the machine, read from metrics, SSTables and memtables when it is asked for.

pub(crate) mod processors;
mod shape;
mod sizes;
mod source;
mod stats;
mod tables;
mod tokens;
pub(crate) mod verify;

pub use shape::{Percentiles, TableShape};
pub use sizes::{SizeEstimate, TableSizes};
pub use tables::TableDetails;
pub use verify::Verified;
