//! From STARTUP to READY, or to AUTH_SUCCESS where the server asks for credentials.

use halcyon_protocol::client::{Answer, Client};

use crate::error::Cause;

/// For servers that require authentication or encryption.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    pub username: Option<String>,
    pub password: Option<String>,
    /// `None`: the connection is not encrypted.
    pub encryption: Option<halcyon_tls::Client>,
}

/// A handshake whose last message is in the client.
pub(crate) struct Handshake<'a> {
    credentials: &'a Credentials,
    gave_credentials: bool,
}

impl<'a> Handshake<'a> {
    /// Appends STARTUP.
    pub(crate) fn begin(client: &mut Client, credentials: &'a Credentials) -> Handshake<'a> {
        client.startup(0);
        Handshake { credentials, gave_credentials: false }
    }

    /// Whether the connection is ready; otherwise the next message is appended.
    pub(crate) fn advance(&mut self, client: &mut Client, answer: Answer) -> Result<bool, Cause> {
        client.started();
        match answer {
            Answer::Ready if !self.gave_credentials => Ok(true),
            Answer::AuthSuccess if self.gave_credentials => Ok(true),
            Answer::Authenticate(_) if !self.gave_credentials => {
                let Credentials { username: Some(username), password: Some(password), .. } =
                    self.credentials
                else {
                    return Err(Cause::CredentialsMissing);
                };
                client.credentials(0, username, password);
                self.gave_credentials = true;
                Ok(false)
            }
            other => Err(Cause::of(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use halcyon_protocol::{Compression, Version};

    use super::*;

    fn answers(credentials: &Credentials, answers: Vec<Answer>) -> Result<bool, Cause> {
        let mut client = Client::new(Version::V4, Compression::None);
        let mut handshake = Handshake::begin(&mut client, credentials);
        let mut outcome = Ok(false);
        for answer in answers {
            outcome = handshake.advance(&mut client, answer);
        }
        outcome
    }

    /// Proves which answers end the handshake, with and without credentials.
    #[test]
    fn handshakes_end() {
        let none = Credentials::default();
        let some = Credentials {
            username: Some("u".into()),
            password: Some("p".into()),
            encryption: None,
        };
        let asked = || Answer::Authenticate("PasswordAuthenticator".into());
        assert!(matches!(answers(&none, vec![Answer::Ready]), Ok(true)));
        assert!(matches!(answers(&none, vec![asked()]), Err(Cause::CredentialsMissing)));
        assert!(matches!(answers(&some, vec![asked()]), Ok(false)));
        assert!(matches!(answers(&some, vec![asked(), Answer::AuthSuccess]), Ok(true)));
        assert!(matches!(answers(&some, vec![asked(), asked()]), Err(Cause::Unexpected(_))));
        let refusal = Answer::Error { code: 0x100, message: "no".into(), rest: Vec::new() };
        assert!(matches!(answers(&some, vec![asked(), refusal]), Err(Cause::Refused { .. })));
    }
}
