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

use halcyon_client::Cause;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The files are damaged. Restore them, or scrub them with Cassandra.
    #[error("{0}")]
    Problem(String),
    /// Wrong use; the message names the right one.
    #[error("{0}")]
    Usage(String),
    /// A file or server is missing, unsupported, or refused by the system.
    #[error("{0}")]
    Unreadable(String),
    /// The reader of the output has closed it (`| head`).
    #[error("the output was closed")]
    OutputClosed,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Problem(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Unreadable(_) => 3,
            Failure::OutputClosed => 0,
        })
    }

    pub(crate) fn usage(what: impl Into<String>) -> Failure {
        Failure::Usage(what.into())
    }

    pub(crate) fn unreadable(path: &Path, what: impl Display) -> Failure {
        Failure::Unreadable(format!("{}: {what}", path.display()))
    }
}

impl From<halcyon_io::Error> for Failure {
    fn from(error: halcyon_io::Error) -> Failure {
        Failure::Unreadable(error.to_string())
    }
}

impl From<halcyon_sstable::Error> for Failure {
    fn from(error: halcyon_sstable::Error) -> Failure {
        use halcyon_sstable::Error;
        let text = error.to_string();
        match error {
            Error::Corrupt { .. } => Failure::Problem(text),
            Error::Invalid(_) => Failure::Usage(text),
            _ => Failure::Unreadable(text),
        }
    }
}

impl From<halcyon_client::Error> for Failure {
    fn from(error: halcyon_client::Error) -> Failure {
        match error.cause {
            Cause::CredentialsMissing => Failure::usage(format!(
                "{} requires authentication: give --username, and --password or HALCYON_PASSWORD",
                error.server
            )),
            _ => Failure::Unreadable(error.to_string()),
        }
    }
}

/// Errors of writing the output.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Unreadable(format!("standard output: {error}")),
        }
    }
}
