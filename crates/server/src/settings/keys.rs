//! The table of all settings: names, kinds, defaults, older names.

use std::collections::BTreeMap;

use super::value::Kind;

/// What settings show, by name; `None` is null.
pub(crate) type Listed = BTreeMap<String, Option<String>>;

/// What Halcyon makes of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    Obeyed,
    /// It protects the user in a way that Halcyon does not support yet.
    Refused,
    /// It concerns something that Halcyon does not have.
    Meaningless,
}

/// One setting; the table is `keys.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) support: Support,
    pub(crate) kind: Kind,
    pub(crate) default: Option<&'static str>,
    /// Names of 4.0 and before, with the unit of a number that has none. A name may be older than its own unit.
    pub(crate) older: Vec<(&'static str, Option<&'static str>)>,
    /// Cassandra 5.0 has no setting of this name.
    pub(crate) is_own: bool,
}

impl Key {
    /// Whether a value says the same as the default, in whatever unit.
    pub(crate) fn is_default(&self, text: &str) -> bool {
        let Some(default) = self.default else { return false };
        match &self.kind {
            Kind::Size(units) | Kind::Time(units) => units.parse(text) == units.parse(default),
            _ => text == default,
        }
    }
}

pub(crate) fn keys() -> Vec<Key> {
    let (cassandras, own) = TABLE.split_once(OWN).unwrap_or((TABLE, ""));
    let lines = |part: &'static str| part.lines().filter(|line| !line.starts_with('#'));
    let cassandras = lines(cassandras).filter_map(|line| parse(line, false));
    cassandras.chain(lines(own).filter_map(|line| parse(line, true))).collect()
}

const TABLE: &str = include_str!("keys.txt");
/// Begins the part of the table that is not Cassandra's.
const OWN: &str = "# Halcyon's own";

fn parse(line: &'static str, is_own: bool) -> Option<Key> {
    let support = match line.as_bytes().first() {
        Some(b'*') => Support::Obeyed,
        Some(b'!') => Support::Refused,
        _ => Support::Meaningless,
    };
    let mut words = line.get(2..)?.split('\t');
    let (name, kind, default) = (words.next()?, words.next()?, words.next()?);
    let older = words.next().unwrap_or("").split(',').filter_map(|pair| pair.split_once('='));
    Some(Key {
        name,
        support,
        kind: Kind::of(kind),
        default: (default != "null").then_some(default),
        older: older.map(|(name, unit)| (name, (unit != "-").then_some(unit))).collect(),
        is_own,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that every line of the table is understood, that no name stands twice, and that defaults fit their kinds.
    #[test]
    fn the_table_is_sound() {
        let keys = keys();
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(keys.len(), lines);
        assert!(keys.iter().any(|key| key.is_own));
        let mut names: Vec<_> = keys.iter().map(|key| key.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), lines);
        for key in &keys {
            if let Some(default) = key.default {
                assert_eq!(key.kind.check(default), Ok(()), "{}", key.name);
            }
        }
    }
}
