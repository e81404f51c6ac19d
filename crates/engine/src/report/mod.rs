//! What the server shows of all tables and of the machine, read from metrics, SSTables and memtables when it is asked for.

pub(crate) mod processors;
pub(crate) mod set_apart;
mod sizes;
mod source;
mod tables;

pub use sizes::{SizeEstimate, TableSizes};
pub use tables::TableDetails;
