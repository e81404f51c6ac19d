//! The meaning of CQL statements: from the syntax tree and the catalog to a plan.  Pure and synchronous; it reads neither
//! files nor clocks.
//!
//! ```text
//!  halcyon_syntax::ast ─┐
//!                       ├─► prepare: names resolved, types checked ─► Plan ─► bind(values) ─► what `query` executes
//!  halcyon_schema::Catalog
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod plan;
