//! One thing that a statement requires.

use halcyon_model::access::{Permission, Resource};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// On the resource, or on one that contains it. Keyspaces of the system have rules of their own.
    Permission(Permission, Resource),
    /// As `Permission`, of a principal that grants or revokes it: no rule of the system allows that.
    Grantable(Permission, Resource),
    /// As `Permission`, on roles; the refusal does not name them (`AuthenticationStatement.checkPermission`).
    Privilege(Permission, Resource),
    /// UNMASK or SELECT_MASKED on the table, whose masked columns the statement restricts.
    Unmasked { table: Resource, columns: Vec<String> },
    /// A role that is a superuser, with the words of the refusal (`AuthenticatedUser.isSuper`): anonymous clients have none.
    SuperuserRole(&'static str),
    /// As `SuperuserRole`, on a node that asks for a login (`ClientState.ensureIsSuperuser`).
    Superuser(&'static str),
    /// As `SuperuserRole`, if the role that the statement is about is or inherits from a superuser.
    SuperuserOver(String, &'static str),
    /// The role is neither the principal's own nor granted to it.
    OtherRole(String, &'static str),
    /// ALTER on the role, unless the principal is a superuser. Its own role may change what is not named here.
    Alter { role: String, not_own: Vec<&'static str> },
    /// DROP on the role of the identity, which only a superuser may if the role is one.
    DropIdentity(String, &'static str),
}
