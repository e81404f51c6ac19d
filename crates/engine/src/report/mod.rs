//! Reports to the server: counters, distributions, failures, events.

pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod processors;
pub(crate) mod set_apart;
mod sizes;
mod source;
mod tables;

pub use events::Event;
pub use health::FailurePolicy;
pub use metrics::{Measure, Summary, TableStats};
pub use sizes::{SizeEstimate, TableSizes};
pub use tables::TableDetails;
