//! Readers and writers against files that Cassandra wrote, whole and damaged. One program: they take long to compile.

mod corpus;
mod corruption;
mod counters;
mod fuzz_smoke;
mod hostile;
mod lookup;
mod read_ahead;
mod rewrite;
mod slices;
mod verify;
mod writing;
