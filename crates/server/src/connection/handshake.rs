//! The handshake of a connection: which messages a client may send, and what they lead to.
//!
//! ```text
//!  Established ─ STARTUP ─┬─ no login is asked for: READY ──────────────────────────────► Ready
//!                         └─ AUTHENTICATE ─► Authenticating ─ AUTH_RESPONSE ─┬─ AUTH_SUCCESS ─► Ready
//!                                                 ▲──── AUTH_CHALLENGE ──────┘
//! ```
//! An AUTH_RESPONSE that nothing asked for is accepted.

use std::ops::ControlFlow;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use halcyon_model::access::Principal;
use halcyon_protocol::{Compression, Error, Opcode, Startup, Version};

/// How clients log in.
pub(crate) trait Authenticator: Send + Sync {
    /// The name that drivers know, and the exchange with one client; `None`: clients are not asked, and stay anonymous. `certificates`:
    /// what the client has shown as DER, its own first; they are trusted.
    fn begin(&self, verifier: Rc<dyn Verifier>, certificates: Vec<Vec<u8>>) -> Option<Login>;
}

/// Compares what a client presents with what the node stores.
pub(crate) trait Verifier {
    /// The principal of a role and its password.
    fn password(
        &self,
        role: String,
        password: String,
    ) -> LocalBoxFuture<'_, Result<Principal, Error>>;

    /// The principal that a certificate's identity stands for.
    fn identity(&self, identity: String) -> LocalBoxFuture<'_, Result<Principal, Error>>;
}

/// The name of a class, which drivers match, and the exchange that follows.
pub(crate) type Login = (&'static str, Box<dyn Exchange>);

/// The exchange of tokens with one client (SASL).
pub(crate) trait Exchange {
    /// The principal that has logged in, or the next challenge. An error refuses the token; passwords are compared on another thread.
    fn answer<'a>(
        &'a mut self,
        token: &'a [u8],
    ) -> LocalBoxFuture<'a, Result<ControlFlow<Principal, Vec<u8>>, Error>>;
}

/// `AllowAllAuthenticator`
pub(crate) struct AllowAll;

impl Authenticator for AllowAll {
    fn begin(&self, _: Rc<dyn Verifier>, _: Vec<Vec<u8>>) -> Option<Login> {
        None
    }
}

/// What a message of the handshake is answered with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Ready,
    Authenticate(&'static str),
    Challenge(Vec<u8>),
    Success(Principal),
}

#[derive(Default)]
pub(super) struct Handshake {
    stage: Stage,
}

/// The messages that a client can send next.
#[derive(Default)]
enum Stage {
    /// STARTUP or OPTIONS.
    #[default]
    Established,
    /// AUTH_RESPONSE.
    Authenticating(Box<dyn Exchange>),
    Ready,
}

impl Handshake {
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready)
    }

    /// The refusal of a message that is out of order (`ServerConnection.validateNewMessage`).
    pub(super) fn expects(&self, opcode: Opcode) -> Result<(), String> {
        match (&self.stage, opcode) {
            (Stage::Established, Opcode::Startup | Opcode::Options)
            | (Stage::Authenticating(_), Opcode::AuthResponse) => Ok(()),
            (Stage::Established, _) => {
                Err(format!("Unexpected message {opcode}, expecting STARTUP or OPTIONS"))
            }
            (Stage::Authenticating(_), _) => {
                Err(format!("Unexpected message {opcode}, expecting SASL_RESPONSE"))
            }
            (Stage::Ready, Opcode::Startup) => {
                Err("Unexpected message STARTUP, the connection is already initialized".to_owned())
            }
            (Stage::Ready, _) => Ok(()),
        }
    }

    /// After a STARTUP.
    pub(super) fn begin(&mut self, login: Option<Login>) -> Reply {
        match login {
            None => {
                self.stage = Stage::Ready;
                Reply::Ready
            }
            Some((name, exchange)) => {
                self.stage = Stage::Authenticating(exchange);
                Reply::Authenticate(name)
            }
        }
    }

    /// After an AUTH_RESPONSE. A client that is refused may try again.
    pub(super) async fn proceed(&mut self, token: &[u8]) -> Result<Reply, Error> {
        let Stage::Authenticating(exchange) = &mut self.stage else { return Ok(Reply::Ready) };
        match exchange.answer(token).await? {
            ControlFlow::Continue(challenge) => Ok(Reply::Challenge(challenge)),
            ControlFlow::Break(principal) => {
                self.stage = Stage::Ready;
                Ok(Reply::Success(principal))
            }
        }
    }
}

/// Checks a STARTUP; how both directions are compressed from then on.
pub(super) fn check_startup(
    version: Version,
    startup: &Startup,
    allows_older: bool,
) -> Result<Compression, String> {
    if version < Version::CURRENT && !allows_older {
        let current = Version::CURRENT;
        return Err(format!("Rejecting Protocol Version {version} < {current}."));
    }
    startup.check(version)
}

#[cfg(test)]
mod tests {
    use halcyon_io::block_on;
    use halcyon_protocol::ErrorKind;

    use super::*;

    /// Asks for a second token, and accepts `open`.
    struct Challenged(bool);

    fn wrong() -> Error {
        Error::new(ErrorKind::BadCredentials, "wrong")
    }

    impl Exchange for Challenged {
        fn answer<'a>(
            &'a mut self,
            token: &'a [u8],
        ) -> LocalBoxFuture<'a, Result<ControlFlow<Principal, Vec<u8>>, Error>> {
            let is_second = std::mem::replace(&mut self.0, true);
            let role = || Principal::Role { name: "r".to_owned(), address: [127, 0, 0, 1].into() };
            let answer = match (is_second, token) {
                (false, _) => Ok(ControlFlow::Continue(b"again".to_vec())),
                (true, b"open") => Ok(ControlFlow::Break(role())),
                (true, _) => Err(wrong()),
            };
            Box::pin(std::future::ready(answer))
        }
    }

    /// Proves that a node without logins is ready after STARTUP, and that each stage refuses the messages of others.
    #[test]
    fn no_login_is_asked_for() {
        let mut handshake = Handshake::default();
        assert!(handshake.expects(Opcode::Options).is_ok());
        assert!(handshake.expects(Opcode::Query).is_err());
        assert!(handshake.expects(Opcode::AuthResponse).is_err());
        assert_eq!(handshake.begin(None), Reply::Ready);
        assert!(handshake.is_ready() && handshake.expects(Opcode::Query).is_ok());
        assert!(handshake.expects(Opcode::AuthResponse).is_ok());
        assert!(handshake.expects(Opcode::Startup).is_err());
    }

    /// Proves that a client that has to log in sends nothing else, may be challenged and refused, and is ready after its last token.
    #[test]
    fn a_login_takes_as_many_tokens_as_it_needs() {
        let mut handshake = Handshake::default();
        assert_eq!(
            handshake.begin(Some(("TwoSteps", Box::new(Challenged(false))))),
            Reply::Authenticate("TwoSteps")
        );
        let refusal = "Unexpected message QUERY, expecting SASL_RESPONSE".to_owned();
        assert_eq!(handshake.expects(Opcode::Query), Err(refusal));
        assert!(handshake.expects(Opcode::AuthResponse).is_ok() && !handshake.is_ready());
        block_on(async {
            assert_eq!(handshake.proceed(b"x").await, Ok(Reply::Challenge(b"again".to_vec())));
            assert_eq!(handshake.proceed(b"y").await, Err(wrong()));
            assert!(!handshake.is_ready());
            let success = handshake.proceed(b"open").await;
            assert!(matches!(success, Ok(Reply::Success(Principal::Role { .. }))));
        });
        assert!(handshake.is_ready() && handshake.expects(Opcode::Query).is_ok());
    }
}
