//! Compaction: merges SSTables into fewer, and purges tombstones past gc grace.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod claim;
mod error;
mod expected;
mod identity;
mod interval;
mod outputs;
mod overlap;
mod plan;
mod progress;
mod run;
mod space;
pub mod strategy;
pub mod txn_log;

pub use claim::{Claim, claim, refuse_cassandra};
pub use error::{Error, Result};
pub use identity::{transaction_id, version_holding};
pub use interval::IntervalIndex;
pub use outputs::Outputs;
pub use overlap::PurgeBound;
pub use plan::{Group, Kind, group_inputs, kind};
pub use progress::{Progress, Snapshot};
pub use run::{Outcome, Sealed, Settings, Task, run, write, write_into};
pub use space::UsableSpace;
