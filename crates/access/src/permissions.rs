//! A set of permissions, as small as a number.

use halcyon_model::access::Permission;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions(u16);

impl Permissions {
    pub const NONE: Permissions = Permissions(0);

    pub fn contains(self, permission: Permission) -> bool {
        self.0 & bit(permission) != 0
    }

    #[must_use]
    pub fn union(self, other: Permissions) -> Permissions {
        Permissions(self.0 | other.0)
    }

    /// Those of stored names. A name that is not a permission grants nothing.
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Permissions {
        let named =
            |name: &[u8]| Permission::ALL.into_iter().find(|known| known.name().as_bytes() == name);
        names.into_iter().filter_map(named).collect()
    }

    /// In their order.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |permission| self.contains(*permission))
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Permissions {
        Permissions(permissions.into_iter().fold(0, |bits, permission| bits | bit(permission)))
    }
}

fn bit(permission: Permission) -> u16 {
    1 << permission as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a set contains what it was made of, in the order of LIST PERMISSIONS, and that unknown names grant nothing.
    #[test]
    fn sets_contain_what_they_are_made_of() {
        let set = Permissions::of_names([&b"SELECT"[..], b"ALTER", b"select", b"SUPER"]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Permission::Alter, Permission::Select]);
        assert!(!Permissions::NONE.contains(Permission::Select));
        let all: Permissions = Permission::ALL.into_iter().collect();
        assert_eq!(all.union(set), all);
        assert_eq!(all.iter().count(), 10);
    }
}
