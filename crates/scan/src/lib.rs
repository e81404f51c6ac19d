//! Executes a bound SELECT over streams of fragments: of a shard, or of files. Knows no engine and no protocol.
//!
//! ```text
//!  BoundSelect ─┐
//!               ├─► Scan ◄── take(FragmentStream), as many as the statement reads, in the order of the result
//!  ScanContext ─┘     └─► page: rows encoded for the wire, and the row after which the next page continues
//! ```
//!
//! `pace` bounds how long a loop or a computation holds its thread, `memory` how much of the clients' budget it takes.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(async_fn_in_trait, reason = "everything stays on one thread")]

mod command;
mod context;
mod error;
mod group;
mod live_rows;
mod memory;
pub mod pace;
mod page;
mod paging;
mod read_size;
mod scan;
mod tombstones;
mod top;

pub use command::{command, tokens};
pub use context::{ReadLimits, ReadSizes, ScanContext, SizeBounds};
pub use error::{Error, Result, TakeError, TooLarge};
pub use live_rows::{ReadCounts, Watch};
pub use memory::{Held, RequestMemory, SMALL};
pub use page::{Last, Page};
pub use paging::PagingState;
pub use scan::Scan;
