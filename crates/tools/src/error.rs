//! Why a tool has no result, by what the user should do.

use std::fmt::Display;
use std::path::Path;

use halcyon_client::Cause;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The files are damaged. Restore them, or scrub them with Cassandra.
    #[error("{0}")]
    Problem(String),
    /// Wrong use; the message names the right one.
    #[error("{0}")]
    Usage(String),
    /// A file or server is missing, unsupported, or refused by the system.
    #[error("{0}")]
    Unreadable(String),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn usage(what: impl Into<String>) -> Error {
        Error::Usage(what.into())
    }

    /// A file and its fault.
    pub fn unreadable(path: &Path, what: impl Display) -> Error {
        Error::Unreadable(format!("{}: {what}", path.display()))
    }
}

impl From<halcyon_io::Error> for Error {
    fn from(error: halcyon_io::Error) -> Error {
        Error::Unreadable(error.to_string())
    }
}

impl From<halcyon_sstable::Error> for Error {
    fn from(error: halcyon_sstable::Error) -> Error {
        use halcyon_sstable::Error as OfFile;
        let text = error.to_string();
        match error {
            OfFile::Corrupt { .. } => Error::Problem(text),
            OfFile::Invalid(_) => Error::Usage(text),
            _ => Error::Unreadable(text),
        }
    }
}

impl From<halcyon_client::Error> for Error {
    fn from(error: halcyon_client::Error) -> Error {
        match error.cause {
            Cause::CredentialsMissing => Error::usage(format!(
                "{} requires authentication: give --username, and --password or HALCYON_PASSWORD",
                error.server
            )),
            _ => Error::Unreadable(error.to_string()),
        }
    }
}
