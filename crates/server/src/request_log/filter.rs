//! Which entries an audit log takes (`AuditLogFilter`): what is excluded is not, and where something is included nothing else is.

use std::collections::HashSet;

use super::entry::Entry;
use super::options::Lists;

#[derive(Debug, Default)]
struct Names {
    included: HashSet<String>,
    excluded: HashSet<String>,
}

fn set(list: &str) -> HashSet<String> {
    list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

impl Names {
    fn of(included: &str, excluded: &str) -> Names {
        let excluded = set(excluded);
        let mut included = set(included);
        included.retain(|name| !excluded.contains(name));
        Names { included, excluded }
    }

    fn takes(&self, name: Option<&str>) -> bool {
        let is_in = |names: &HashSet<String>| name.is_some_and(|name| names.contains(name));
        !is_in(&self.excluded) && (self.included.is_empty() || is_in(&self.included))
    }

    /// As Cassandra shows them: an excluded name is not included.
    fn lists(&self, included: &str, excluded: &str) -> (String, String) {
        let kept = |list: &str, names: &HashSet<String>| {
            let mut seen = HashSet::new();
            let kept = list.split(',').filter(|name| names.contains(*name) && seen.insert(*name));
            kept.collect::<Vec<_>>().join(",")
        };
        (kept(included, &self.included), kept(excluded, &self.excluded))
    }
}

#[derive(Debug)]
pub(super) struct Filter {
    keyspaces: Names,
    categories: Names,
    users: Names,
    lists: Lists,
}

impl Filter {
    pub(super) fn of(lists: &Lists) -> Filter {
        let keyspaces = Names::of(&lists.included_keyspaces, &lists.excluded_keyspaces);
        let categories = Names::of(&lists.included_categories, &lists.excluded_categories);
        let users = Names::of(&lists.included_users, &lists.excluded_users);
        let mut shown = Lists::default();
        (shown.included_keyspaces, shown.excluded_keyspaces) =
            keyspaces.lists(&lists.included_keyspaces, &lists.excluded_keyspaces);
        (shown.included_categories, shown.excluded_categories) =
            categories.lists(&lists.included_categories, &lists.excluded_categories);
        (shown.included_users, shown.excluded_users) =
            users.lists(&lists.included_users, &lists.excluded_users);
        Filter { keyspaces, categories, users, lists: shown }
    }

    pub(super) fn lists(&self) -> &Lists {
        &self.lists
    }

    pub(super) fn takes(&self, entry: &Entry<'_>) -> bool {
        self.keyspaces.takes(entry.keyspace.as_deref())
            && self.categories.takes(Some(entry.kind.names().1.name()))
            && self.users.takes(entry.user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that exclusion goes before inclusion, that an included list refuses what has no name, and how lists are shown.
    #[test]
    fn what_is_excluded_is_not_taken() {
        let names = Names::of("a,b,,a", "b,c");
        let takes = |name| names.takes(name);
        assert_eq!(
            [Some("a"), Some("b"), Some("c"), Some("d"), None].map(takes),
            [true, false, false, false, false]
        );
        assert_eq!(names.lists("a,b,,a", "b,c"), ("a".to_owned(), "b,c".to_owned()));
        let all = Names::of("", "system");
        assert!(all.takes(None) && all.takes(Some("ks")) && !all.takes(Some("system")));
    }
}
