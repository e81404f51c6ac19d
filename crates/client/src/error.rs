//! Why a request has no answer.

use halcyon_protocol::ProtocolError;
use halcyon_protocol::client::Answer;

/// The server, and what failed.
#[derive(Debug, thiserror::Error)]
#[error("{server}: {cause}")]
pub struct Error {
    pub server: String,
    pub cause: Cause,
}

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Cause {
    #[error("{0}; is a server listening for CQL there?")]
    Unreachable(String),
    #[error(transparent)]
    Network(#[from] std::io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("TLS: {0}")]
    Encryption(#[from] halcyon_tls::Failure),
    #[error("{0}")]
    Malformed(Box<ProtocolError>),
    /// The server asks for credentials, and there are none.
    #[error("the server requires authentication")]
    CredentialsMissing,
    /// ERROR.
    #[error("{message}")]
    Refused { code: i32, message: String },
    #[error("the server sent an answer of an unexpected kind: {0:?}")]
    Unexpected(Box<Answer>),
}

impl From<ProtocolError> for Cause {
    fn from(error: ProtocolError) -> Cause {
        Cause::Malformed(Box::new(error))
    }
}

impl Cause {
    /// Of an answer that is not the one that was asked for.
    pub(crate) fn of(answer: Answer) -> Cause {
        match answer {
            Answer::Error { code, message, .. } => Cause::Refused { code, message },
            other => Cause::Unexpected(Box::new(other)),
        }
    }

    pub(crate) fn at(self, server: &str) -> Error {
        Error { server: server.to_owned(), cause: self }
    }
}
