//! Why a command fails, by exit code.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done; the files are sound |
//! | 1 | a problem was found in the files |
//! | 2 | the command line is wrong |
//! | 3 | something could not be read or written |

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use halcyon_tools::Error;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Of(Error),
    /// The reader of the output has closed it (`| head`).
    #[error("the output was closed")]
    OutputClosed,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Of(Error::Problem(_)) => 1,
            Failure::Of(Error::Usage(_)) => 2,
            Failure::Of(Error::Unreadable(_)) => 3,
            Failure::OutputClosed => 0,
        })
    }

    /// The files are damaged.
    pub(crate) fn problem(what: impl Into<String>) -> Failure {
        Failure::Of(Error::Problem(what.into()))
    }

    /// Wrong use; the message names the right one.
    pub(crate) fn usage(what: impl Into<String>) -> Failure {
        Failure::Of(Error::Usage(what.into()))
    }

    /// A file or server is missing, unsupported, or refused by the system.
    pub(crate) fn unreadable(what: impl Into<String>) -> Failure {
        Failure::Of(Error::Unreadable(what.into()))
    }

    /// A file and its fault.
    pub(crate) fn of_file(path: &Path, what: impl Display) -> Failure {
        Failure::Of(Error::unreadable(path, what))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Of(error)
    }
}

impl From<halcyon_io::Error> for Failure {
    fn from(error: halcyon_io::Error) -> Failure {
        Failure::Of(error.into())
    }
}

impl From<halcyon_sstable::Error> for Failure {
    fn from(error: halcyon_sstable::Error) -> Failure {
        Failure::Of(error.into())
    }
}

/// Errors of writing the output.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::unreadable(format!("standard output: {error}")),
        }
    }
}
