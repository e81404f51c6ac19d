//! Start-up: directories, transactions, schema, SSTables, commit log replay; and the end.

pub(crate) mod batches;
mod close;
pub(crate) mod directories;
pub(crate) mod open;
mod opening;
pub(crate) mod recover;
pub(crate) mod set_apart;
mod wire;

pub use opening::RecoveryReport;
pub use recover::StartProgress;
