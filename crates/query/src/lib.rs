//! Runs a plan on the engine: paging, aggregates, conditions, batches.
#![recursion_limit = "256"]
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(async_fn_in_trait, reason = "everything stays on one thread")]

mod basis;
mod consistency;
mod coordinator;
mod error;
pub mod functions;
mod limits;
mod live_rows;
mod memory;
mod modify;
mod mutations;
mod outcome;
mod pace;
mod paging;
mod scan;
mod schema;
mod select;
mod shards;
mod views;
mod virtual_tables;
pub mod weight;

pub use coordinator::{BatchEntry, Client, Coordinator, PreparedStatement};
pub use error::{Error, Failure, Result};
pub use limits::RequestLimits;
pub use memory::{Held, RequestMemory, SMALL};
pub use outcome::{Outcome, QueryOptions, Rows};
pub use virtual_tables::{VirtualTables, modification_is_not_supported};
