//! What a connection is between its requests: who its client is, and in which keyspace.

use halcyon_model::access::Principal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientState {
    /// Set by the handshake.
    pub(crate) principal: Principal,
    /// Set by USE.
    pub(crate) keyspace: Option<String>,
}

/// The state before a login.
impl Default for ClientState {
    fn default() -> ClientState {
        ClientState { principal: Principal::Anonymous, keyspace: None }
    }
}

impl ClientState {
    /// The same client in another keyspace.
    pub(crate) fn in_keyspace(&self, keyspace: &str) -> ClientState {
        ClientState { principal: self.principal.clone(), keyspace: Some(keyspace.to_owned()) }
    }
}
