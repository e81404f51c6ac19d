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
        !is_in(&self.excluded) && self.includes(name)
    }

    fn includes(&self, name: Option<&str>) -> bool {
        self.included.is_empty() || name.is_some_and(|name| self.included.contains(name))
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
        let keyspace = entry.keyspace.as_deref();
        // A session's keyspace excludes nothing, unlike in Cassandra: `USE system` would hide every statement about roles.
        let takes_keyspace = match entry.is_of_session {
            true => self.keyspaces.includes(keyspace),
            false => self.keyspaces.takes(keyspace),
        };
        takes_keyspace
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
        // Where it is the session's, an excluded keyspace hides nothing.
        assert!(all.includes(Some("system")) && !names.includes(Some("c")));
    }
}
