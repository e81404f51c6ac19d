//! Ordered streams of rows. Memtables, SSTables, merges, compactions, reads and dumps all implement one trait, `FragmentStream`.
//!
//! Grammar of a stream; partitions come in the partitioner's order:
//! ```text
//! partition := Start  [Static]  (Row | Marker)*  End
//! ```
//! Rows and markers come in strictly increasing clustering position. A marker opens or closes a range tombstone, or closes one
//! and opens the next. Range tombstones never nest, and each is closed before `End`.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(async_fn_in_trait, reason = "streams stay on one thread and are never boxed")]

mod distinct;
mod fragment;
mod layout;
mod merge;
mod merge_row;
mod mutation;
mod primary_key;
mod primed;
mod purge;
mod slice_filter;
mod slices;
mod validate;

pub use distinct::Distinct;
pub use fragment::{
    Cell, ComplexDeletion, Fragment, FragmentStream, Marker, PartitionKey, PartitionStart, Row,
    RowBuf, RowDeletion, RowParts, Span,
};
pub use layout::{Column, ColumnShape, Layout, LayoutError, Statics};
pub use merge::Merge;
pub use merge_row::{MergeError, RowMerger};
pub use mutation::{EMPTY_PARTITION, Mutation, RangeTombstone, TableId};
pub use primary_key::{PrimaryKey, PrimaryKeyRange};
pub use primed::Primed;
pub use purge::{Purge, PurgeRule, PurgeStats};
pub use slice_filter::{SeekRows, SliceFilter};
pub use slices::{Slice, Slices};
pub use validate::{GrammarError, Validator};
