//! Attached indexes: for each SSTable, and for each memtable, which rows have a value.
//!
//! ```text
//!  oa-1-big-Data.db                       rows by token, key, clustering
//!  oa-1-big-Halcyon+<index>.db            (term, place) sorted: term = a value in byte-comparable form, place = primary key of a row
//! ```
//! 1. An index lives and dies with its SSTable: it is written with it, from the same rows, and never changed. So it needs no log, no
//!    transaction and no compaction of its own, and a missing one can be made again from the data.
//! 2. A row's current value of a column lies in some SSTable or memtable, and is in that one's index. So the union of all that has a term
//!    is a superset of the rows with that value: candidates, in the order of the table. The caller asks the row itself.
//!    Overwritten and deleted values are candidates too, until a compaction drops them; nothing is read before a write.
//! 3. Static columns and parts of the partition key lead to whole partitions.
//! 4. Of vectors the file has graphs (`graph.rs`) in which those near a given one are found. What they give are candidates too: the
//!    reader of the rows orders them by their own vectors.
//!
//! Cassandra's legacy index is a hidden table, whose entries of old values a read deletes; its SAI components are attached as ours are,
//! in another format.

mod build;
mod entry;
mod file;
mod graph;
mod held;
#[cfg(test)]
mod sasi_tests;
mod segment;
mod segments;
mod target;
mod terms;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vector_tests;
mod wanted;

pub use build::{Destination, IndexBuilder, write_sorted};
pub use file::{AttachedIndex, component_name, index_of_component};
pub use held::{Held, TermSet};
pub use segment::{Neighbour, Neighbours, Segment};
pub use segments::Segments;
pub use target::{Part, Source, Target};
pub use terms::Terms;
pub use wanted::{Entry, Wanted};
