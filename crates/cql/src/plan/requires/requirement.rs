//! One thing that a statement requires.

use halcyon_model::access::{Permission, Resource};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// On the resource, or on one that contains it.
    Permission(Permission, Resource),
    /// UNMASK or SELECT_MASKED on the table, whose masked columns the statement restricts.
    Unmasked { table: Resource, columns: Vec<String> },
    /// A role that is a superuser, with the words of the refusal (`AuthenticatedUser.isSuper`): anonymous clients have none.
    SuperuserRole(&'static str),
    /// As `SuperuserRole`, on a node that asks for a login (`ClientState.ensureIsSuperuser`).
    Superuser(&'static str),
}
