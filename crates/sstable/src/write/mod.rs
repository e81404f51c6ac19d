//! Writing an SSTable: data and indexes as the stream comes, the components that need all of it at the end.

pub(crate) mod carry;
mod index_files;
pub(crate) mod options;
mod sealing;
pub(crate) mod spans;
pub(crate) mod sstable_writer;
pub(crate) mod watch;
