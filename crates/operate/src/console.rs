//! What the page shows of a node and does to it, as the node's server answers it.

use std::net::IpAddr;

use futures_util::future::BoxFuture;

use crate::panels::Panel;

/// Who looks at the page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visitor {
    /// Of a node that asks no client for a login.
    Anonymous,
    Role {
        name: String,
        address: IpAddr,
    },
}

/// What a client of the node has to present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    Never,
    Password,
    /// Which a page cannot ask for.
    Certificate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The role or its password is wrong.
    Credentials(String),
    /// The login cannot be checked now.
    Busy(String),
}

/// The node. Each answer is what a client of CQL with the same role would get.
pub trait Console: Send + Sync {
    fn login(&self) -> Login;

    /// Compares a role's password, as a login of a client does.
    fn log_in(
        &self,
        role: String,
        password: String,
        address: IpAddr,
    ) -> BoxFuture<'_, Result<Visitor, Refusal>>;

    /// The rows of a panel, each an object of JSON.
    fn rows(
        &self,
        visitor: Visitor,
        panel: &'static Panel,
    ) -> BoxFuture<'_, Result<Vec<String>, String>>;

    /// Whether [`Console::stop`] would be permitted.
    fn may_stop(&self, visitor: Visitor) -> BoxFuture<'_, bool>;

    /// Stops the compaction with an id, as `nodetool stop` does.
    fn stop(&self, visitor: Visitor, id: String) -> BoxFuture<'_, Result<(), String>>;
}
