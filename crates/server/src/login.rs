//! Logins: a password (SASL PLAIN), as `PasswordAuthenticator` takes it, or the certificate of the connection, and the default superuser.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use halcyon_access::{AuthCache, DEFAULT_SUPERUSER, Identity, Login as By};
use halcyon_io::clock;
use halcyon_model::access::Principal;
use halcyon_protocol::{Error, ErrorKind};
use halcyon_query::{DefaultSuperuser, default_superuser};
use halcyon_tls::identity;

use crate::answer;
use crate::connection::{AllowAll, Authenticator, Exchange, Login, Verifier};
use crate::shard::ShardServer;

/// Drivers match these names.
const PASSWORD: &str = "org.apache.cassandra.auth.PasswordAuthenticator";
const CERTIFICATE: &str = "org.apache.cassandra.auth.MutualTlsAuthenticator";
const EITHER: &str = "org.apache.cassandra.auth.MutualTlsWithPasswordFallbackAuthenticator";

/// What the setting `authenticator` asks for.
pub(crate) fn authenticator(by: By) -> Box<dyn Authenticator> {
    match by {
        By::Never => Box::new(AllowAll),
        By::Password => Box::new(Password),
        By::Certificate(identity) => Box::new(MutualTls { identity, class: CERTIFICATE }),
        By::CertificateOrPassword(identity) => Box::new(MutualTls { identity, class: EITHER }),
    }
}

struct Password;

impl Authenticator for Password {
    fn begin(&self, verifier: Rc<dyn Verifier>, _: Vec<Vec<u8>>) -> Option<Login> {
        Some((PASSWORD, Box::new(Plain(verifier))))
    }
}

struct MutualTls {
    identity: Identity,
    class: &'static str,
}

impl Authenticator for MutualTls {
    fn begin(&self, verifier: Rc<dyn Verifier>, certificates: Vec<Vec<u8>>) -> Option<Login> {
        let exchange: Box<dyn Exchange> = match certificates.into_iter().next() {
            None if self.class == EITHER => Box::new(Plain(verifier)),
            leaf => Box::new(Shown { verifier, leaf, identity: self.identity }),
        };
        Some((self.class, exchange))
    }
}

/// The certificate that the client has shown; its token says nothing.
struct Shown {
    verifier: Rc<dyn Verifier>,
    leaf: Option<Vec<u8>>,
    identity: Identity,
}

impl Exchange for Shown {
    fn answer<'a>(
        &'a mut self,
        _: &'a [u8],
    ) -> LocalBoxFuture<'a, Result<ControlFlow<Principal, Vec<u8>>, Error>> {
        Box::pin(async move {
            let Some(leaf) = &self.leaf else {
                return Err(refused("Invalid or not supported certificate"));
            };
            const NONE: &str =
                "Unable to extract client identity from certificate for authentication";
            let identity = match self.identity {
                Identity::Spiffe => identity::spiffe(leaf),
                Identity::CommonName => identity::common_name(leaf).ok_or(NONE),
            };
            let identity = identity.map_err(refused)?;
            if identity.is_empty() {
                return Err(refused(NONE));
            }
            self.verifier.identity(identity).await.map(ControlFlow::Break)
        })
    }
}

/// One token: `authorization NUL name NUL password`.
struct Plain(Rc<dyn Verifier>);

/// Compares what a client at an address presents with the roles of the node.
pub(crate) struct Roles {
    pub(crate) shard: Rc<ShardServer>,
    pub(crate) address: IpAddr,
}

impl Verifier for Roles {
    fn password(
        &self,
        role: String,
        password: String,
    ) -> LocalBoxFuture<'_, Result<Principal, Error>> {
        Box::pin(async move {
            let coordinator = &self.shard.coordinator;
            let login = halcyon_query::log_in(coordinator, role, password, self.address).await;
            login.map_err(answer::error)
        })
    }

    fn identity(&self, identity: String) -> LocalBoxFuture<'_, Result<Principal, Error>> {
        Box::pin(async move {
            let coordinator = &self.shard.coordinator;
            let login = halcyon_query::log_in_as(coordinator, &identity, self.address).await;
            login.map_err(answer::error)
        })
    }
}

impl Exchange for Plain {
    fn answer<'a>(
        &'a mut self,
        token: &'a [u8],
    ) -> LocalBoxFuture<'a, Result<ControlFlow<Principal, Vec<u8>>, Error>> {
        Box::pin(async move {
            let (name, password) = plain(token).map_err(refused)?;
            self.0.password(name, password).await.map(ControlFlow::Break)
        })
    }
}

fn refused(text: &str) -> Error {
    Error::new(ErrorKind::BadCredentials, text.to_owned())
}

/// The name and the password of a token (`PlainTextSaslAuthenticator.decodeCredentials`).
fn plain(token: &[u8]) -> Result<(String, String), &'static str> {
    let mut parts = token.rsplitn(3, |byte| *byte == 0);
    let password = parts.next().unwrap_or_default();
    // Without any NUL nothing is a password.
    let Some(name) = parts.next() else { return Err("Password must not be null") };
    let rest = parts.next();
    if rest.is_some_and(|rest| rest.contains(&0)) {
        return Err(
            "Credential format error: username or password is empty or contains NUL(\\0) character",
        );
    }
    if password.is_empty() {
        return Err("Password must not be null");
    }
    if rest.is_none() || name.is_empty() {
        return Err("Authentication ID must not be null");
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(name), text(password)))
}

/// Makes the default superuser, and warns while everybody knows its password.
pub(crate) async fn set_up(shard: Rc<ShardServer>) {
    let access = &shard.shared.access;
    if !access.settings().asks_for_login() {
        return;
    }
    clock::sleep(access.settings().superuser_setup_delay).await;
    let log = &shard.shared.log;
    let advice = "log in as another superuser and drop it, or change it: ALTER ROLE cassandra WITH PASSWORD = …";
    match default_superuser(&shard.coordinator).await {
        Ok(DefaultSuperuser::IsSafe) => {}
        Ok(DefaultSuperuser::HasDefaultPassword) => log.warning(format_args!(
            "ANYONE CAN LOG IN AS SUPERUSER '{DEFAULT_SUPERUSER}': it has the default password; {advice}"
        )),
        Ok(DefaultSuperuser::Created) => {
            log.say(format_args!("Created default superuser role '{DEFAULT_SUPERUSER}'"));
            log.warning(format_args!(
                "ANYONE CAN LOG IN AS SUPERUSER '{DEFAULT_SUPERUSER}': it has the default password; {advice}"
            ));
        }
        Err(_) if shard.is_draining() => {}
        Err(error) => log.warning(format_args!(
            "the default superuser cannot be made or checked: {error}; restart the node to try again"
        )),
    }
}

/// How often a cache that is not refreshed by itself is looked at: an operator may have it refreshed.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

/// Reads what a cache keeps again before it is asked for, while the shard serves (`…_cache_active_update`).
pub(crate) async fn keep_fresh(shard: Rc<ShardServer>, cache: AuthCache) {
    while !shard.is_draining() {
        let Some(every) = shard.shared.access.cache(cache).active_update else {
            clock::sleep(IDLE_PAUSE).await;
            continue;
        };
        clock::sleep(every).await;
        if let Err(why) = halcyon_query::refresh(&shard.coordinator, cache).await
            && !shard.is_draining()
        {
            let log = &shard.shared.log;
            log.warning(format_args!("the cache of {cache:?} cannot be refreshed: {why}"));
        }
    }
}

/// Cassandra's (`cassandra.auth_cache.warming.max_retries` and its interval).
const WARMING_TRIES: usize = 10;
const WARMING_PAUSE: Duration = Duration::from_secs(1);

/// Fills the caches of roles before the first client connects (`auth_cache_warming_enabled`).
pub(crate) async fn warm_caches(shard: Rc<ShardServer>) {
    let settings = shard.shared.access.settings();
    if !settings.warms_caches || !settings.asks_for_login() {
        return;
    }
    for attempt in 1..=WARMING_TRIES {
        let Err(why) = halcyon_query::warm(&shard.coordinator).await else { return };
        if attempt == WARMING_TRIES {
            let log = &shard.shared.log;
            log.warning(format_args!(
                "the caches of roles are filled as they are asked for: {why}"
            ));
            return;
        }
        clock::sleep(WARMING_PAUSE).await;
    }
}

/// How often the roles of connections are looked up. Chosen: statements of such roles are refused anyway; Cassandra 6.0 takes hours.
const REVOCATION_PERIOD: Duration = Duration::from_secs(30);

/// Ends the connections of roles that were dropped or may not log in any more, while the shard serves.
pub(crate) async fn end_revoked(shard: Rc<ShardServer>) {
    while !shard.is_draining() {
        clock::sleep(REVOCATION_PERIOD).await;
        for connection in shard.connections() {
            let principal = connection.state().principal.clone();
            let has_role = matches!(principal, Principal::Role { .. });
            if has_role && !halcyon_query::may_stay(&shard.coordinator, &principal).await {
                let (peer, name) = (connection.peer, principal.name());
                shard.shared.log.say(format_args!(
                    "{peer} is disconnected: role {name} is not permitted to log in any more"
                ));
                connection.close();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a token has a name and a password, and that others are refused in Cassandra's words.
    #[test]
    fn tokens_are_plain() {
        let good = |name: &str, password: &str| Ok((name.to_owned(), password.to_owned()));
        let password = Err("Password must not be null");
        let name = Err("Authentication ID must not be null");
        let format = Err(
            "Credential format error: username or password is empty or contains NUL(\\0) character",
        );
        for (token, expected) in [
            (&b"\0name\0word"[..], good("name", "word")),
            (b"other\0name\0word", good("name", "word")),
            (b"", password.clone()),
            (b"word", password.clone()),
            (b"\0\0", password.clone()),
            (b"\0name\0", password),
            (b"\0\0word", name.clone()),
            (b"name\0word", name),
            (b"a\0b\0name\0word", format.clone()),
            (b"\0\0name\0word", format),
        ] {
            assert_eq!(plain(token), expected, "{token:?}");
        }
    }
}
