//! Roles, and what a role has from others that were granted to it.

use std::collections::BTreeSet;

/// A row of `system_auth.roles`, without its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    pub name: String,
    pub is_superuser: bool,
    pub can_login: bool,
    /// The roles that were granted to it.
    pub member_of: Vec<String>,
}

/// Collects a role and all that it inherits (`CassandraRoleManager.collectRoles`). Ends also if roles were granted to each other.
///
/// [`next`](Closure::next) names the role to read, [`add`](Closure::add) takes it, until there is none.
#[derive(Debug)]
pub struct Closure {
    found: Vec<Role>,
    seen: BTreeSet<String>,
    waiting: Vec<String>,
}

impl Closure {
    pub fn of(role: &str) -> Closure {
        let seen = BTreeSet::from([role.to_owned()]);
        Closure { found: Vec::new(), seen, waiting: vec![role.to_owned()] }
    }

    #[expect(clippy::should_implement_trait, reason = "each needs a read before the next one")]
    pub fn next(&mut self) -> Option<String> {
        self.waiting.pop()
    }

    pub fn add(&mut self, role: Role) {
        for name in &role.member_of {
            if self.seen.insert(name.clone()) {
                self.waiting.push(name.clone());
            }
        }
        self.found.push(role);
    }

    /// All that exist, the first one first; empty if that does not exist.
    pub fn roles(self) -> Vec<Role> {
        self.found
    }
}

/// What decides about the statements of a role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoleFacts {
    /// Not if it does not exist.
    pub can_login: bool,
    /// Itself, or a role that was granted to it.
    pub is_superuser: bool,
    /// Its own name and those of all that it inherits.
    pub roles: Vec<String>,
    /// Data centers that it may reach; `None`: all.
    pub datacenters: Option<Vec<String>>,
    /// Groups of addresses that it may come from; `None`: all.
    pub cidr_groups: Option<Vec<String>>,
}

impl RoleFacts {
    /// `roles`: those of a closure. It may reach and come from everywhere.
    pub fn of(roles: &[Role]) -> RoleFacts {
        RoleFacts {
            can_login: roles.first().is_some_and(|role| role.can_login),
            is_superuser: roles.iter().any(|role| role.is_superuser),
            roles: roles.iter().map(|role| role.name.clone()).collect(),
            ..RoleFacts::default()
        }
    }

    pub fn exists(&self) -> bool {
        !self.roles.is_empty()
    }

    pub fn includes(&self, role: &str) -> bool {
        self.roles.iter().any(|own| own == role)
    }

    pub fn reaches(&self, datacenter: &str) -> bool {
        let is_allowed =
            |allowed: &Vec<String>| allowed.iter().any(|allowed| allowed == datacenter);
        self.is_superuser || self.datacenters.as_ref().is_none_or(is_allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, is_superuser: bool, member_of: &[&str]) -> Role {
        let member_of = member_of.iter().map(|of| (*of).to_owned()).collect();
        Role { name: name.to_owned(), is_superuser, can_login: !is_superuser, member_of }
    }

    fn closed(first: &str, all: &[Role]) -> RoleFacts {
        let mut closure = Closure::of(first);
        while let Some(name) = closure.next() {
            if let Some(role) = all.iter().find(|role| role.name == name) {
                closure.add(role.clone());
            }
        }
        RoleFacts::of(&closure.roles())
    }

    /// Proves that a role inherits from roles of roles, also in circles and past roles that were dropped, and login from none.
    #[test]
    fn roles_inherit_from_all_that_were_granted() {
        let all = [
            role("a", false, &["b", "gone"]),
            role("b", false, &["c", "a"]),
            role("c", true, &["b"]),
            role("d", false, &[]),
        ];
        let a = closed("a", &all);
        assert!(a.is_superuser && a.can_login && a.includes("c") && !a.includes("gone"));
        assert_eq!(a.roles.len(), 3);
        assert!(!closed("d", &all).is_superuser);
        assert!(!closed("c", &all).can_login);
    }

    /// Proves that a role that does not exist can do nothing.
    #[test]
    fn an_absent_role_has_nothing() {
        let absent = closed("x", &[]);
        assert_eq!(absent, RoleFacts::default());
        assert!(!absent.exists() && !absent.can_login && !absent.is_superuser);
    }

    /// Proves that a data center is reached if none is named, if it is named, or by a superuser.
    #[test]
    fn data_centers_are_all_or_named_ones() {
        let facts = |is_superuser, datacenters: Option<&str>| RoleFacts {
            is_superuser,
            datacenters: datacenters.map(|name| vec![name.to_owned()]),
            ..RoleFacts::default()
        };
        assert!(facts(false, None).reaches("dc1") && facts(false, Some("dc1")).reaches("dc1"));
        assert!(
            !facts(false, Some("dc2")).reaches("dc1") && facts(true, Some("dc2")).reaches("dc1")
        );
    }
}
