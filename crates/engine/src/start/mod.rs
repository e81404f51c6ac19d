//! Start-up: directories, transactions, schema, SSTables, commit log replay.

pub(crate) mod batches;
pub(crate) mod directories;
mod local;
pub(crate) mod open;
pub(crate) mod recover;
pub(crate) mod set_apart;

pub use open::RecoveryReport;
pub use recover::StartProgress;
