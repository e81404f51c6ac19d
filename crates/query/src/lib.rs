//! Runs a plan on the engine: paging, aggregates, conditions, batches.
#![recursion_limit = "256"]
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(async_fn_in_trait, reason = "everything stays on one thread")]

mod access;
mod access_state;
mod audit;
mod basis;
mod consistency;
mod coordinator;
mod denylist;
mod error;
mod execute;
mod guard;
mod guarded;
mod invalidated;
mod limits;
mod metrics;
mod modify;
mod mutations;
mod outcome;
mod preparation;
mod prepared;
mod request;
mod schema;
mod select;
mod shards;
mod turns;
mod views;
mod virtual_tables;
pub mod weight;

pub use access::{
    DefaultSuperuser, Origin, cache_keys, default_superuser, guard_of, log_in, log_in_as,
    may_execute, may_stay, refresh, validate, warm, watched,
};
pub use audit::{AuditCategory, AuditContext, AuditType, refused_text};
pub use coordinator::Coordinator;
pub use denylist::{Denylist, DenylistCounts, DenylistOptions, List, LocalDenylist, Source};
pub use error::{Error, Failure, Result};
pub use execute::{batch, execute};
pub use guarded::{check_prepared, prepare_guarded};
pub use halcyon_scan::{ReadSizes, SizeBounds};
pub use halcyon_syntax::password;
pub use invalidated::Invalidated;
pub use limits::{RequestLimits, Timeout};
pub use metrics::ClientRequests;
pub use outcome::{Outcome, QueryOptions, Rows};
pub use preparation::{prepare, prepare_in_time};
pub use prepared::{BatchEntry, PreparedStatement};
pub use views::resume_view_builds;
pub use virtual_tables::{
    VirtualTables, modification_is_not_supported, truncation_is_not_supported,
};
