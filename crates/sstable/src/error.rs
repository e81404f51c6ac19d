//! Errors of this crate, sorted by what the reader should do.

use std::path::PathBuf;

use halcyon_model::DecodeError;

use crate::Component;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Restore the file from a backup or another replica, or scrub the SSTable (`nodetool scrub`).
    #[error("{}: {component} is corrupt at offset {offset}: {what}", path.display())]
    Corrupt { path: PathBuf, component: Component, offset: u64, what: String },
    /// A required component is missing.
    #[error("{}: {component} is missing: {why}", path.display())]
    Missing { path: PathBuf, component: Component, why: String },
    /// The files are sound, but this program cannot read them; the message contains the cure.
    #[error("{}: {what}", path.display())]
    Unsupported { path: PathBuf, what: String },
    /// The source has versions of one row as two; who merges them (`halcyon_stream::Distinct`) can write it.
    #[error("{0}")]
    DuplicateRow(String),
    /// The request is impossible and must change.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Io(#[from] halcyon_io::Error),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Adds file and component to a decoding error.
    pub fn corrupt(path: impl Into<PathBuf>, component: Component, error: DecodeError) -> Error {
        Error::Corrupt { path: path.into(), component, offset: error.offset, what: error.what }
    }
}

impl From<halcyon_stream::MergeError> for Error {
    fn from(error: halcyon_stream::MergeError) -> Error {
        Error::Invalid(error.to_string())
    }
}
