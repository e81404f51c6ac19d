//! Errors of this crate, sorted by the reader's reaction.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An input or output file; the message names it.
    #[error(transparent)]
    SSTable(#[from] halcyon_sstable::Error),
    #[error(transparent)]
    Io(#[from] halcyon_io::Error),
    /// A corrupt transaction log; no file was changed.
    #[error("{}: line {line}: {what}", path.display())]
    TransactionLog { path: PathBuf, line: usize, what: String },
    /// The inputs cannot be compacted together or with these settings; the caller must change the request.
    #[error("{0}")]
    Invalid(String),
    /// Free space, or choose another output directory.
    #[error(
        "{}: not enough space for the compaction: up to {needed} bytes are needed, {free} are free. \
         Free some, or write elsewhere with --output", directory.display()
    )]
    NoSpace { directory: PathBuf, needed: u64, free: u64 },
    /// Stopped on request; the inputs are unchanged.
    #[error("the compaction was cancelled; its inputs are as they were")]
    Cancelled,
}

pub type Result<T> = std::result::Result<T, Error>;

impl From<halcyon_stream::LayoutError> for Error {
    fn from(error: halcyon_stream::LayoutError) -> Error {
        Error::Invalid(error.to_string())
    }
}
