//! Compaction: merges SSTables into fewer, and purges tombstones past gc grace.
#![forbid(unsafe_code)]

mod claim;
mod error;
mod identity;
mod overlap;
mod plan;
mod progress;
mod run;
pub mod strategy;
pub mod txn_log;

pub use claim::{Claim, claim};
pub use error::{Error, Result};
pub use identity::transaction_id;
pub use plan::{Group, group_inputs};
pub use progress::{Progress, Snapshot};
pub use run::{Outcome, Settings, Task, run, run_and_keep};
