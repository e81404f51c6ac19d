//! An option whose value is a map of sub-options: the entries that Cassandra keeps and prints back, and what they mean.

use std::collections::BTreeMap;

use super::OptionError;

pub type Entries = BTreeMap<String, String>;

/// What the entries of an option mean.
pub trait SubOptions: Sized + Default {
    /// The entries of a table that does not state the option.
    fn defaults() -> Entries;

    /// The entries as they are kept, from those that a statement gives. Fails where Cassandra fails as it reads the
    /// statement, before it looks at any other option.
    fn normalize(given: Entries) -> Result<Entries, OptionError>;

    /// The meaning of normalized entries. Fails where Cassandra fails as it validates the whole table.
    fn parse(entries: &Entries) -> Result<Self, OptionError>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct MapOption<T> {
    entries: Entries,
    value: T,
    problem: Option<OptionError>,
}

impl<T: SubOptions> Default for MapOption<T> {
    fn default() -> MapOption<T> {
        MapOption { entries: T::defaults(), value: T::default(), problem: None }
    }
}

impl<T: SubOptions> MapOption<T> {
    /// From a statement. What [`MapOption::validate`] would refuse is kept until it is asked.
    pub fn read(given: Entries) -> Result<MapOption<T>, OptionError> {
        Ok(MapOption::of(T::normalize(given)?))
    }

    /// From a statement, validated.
    pub fn checked(given: Entries) -> Result<MapOption<T>, OptionError> {
        let option = MapOption::read(given)?;
        option.validate().map(|()| option)
    }

    /// From the disk, where a Cassandra with other settings, of another release, or an editor may have written what no
    /// statement could say here. The entries are kept; a sub-option that is refused does not count: of all entries those
    /// count that are accepted together with the ones before them, the class first.
    pub fn lenient(stored: Entries) -> MapOption<T> {
        if let Ok(option) = MapOption::checked(stored.clone()) {
            return MapOption { entries: stored, ..option };
        }
        let class = stored.iter().filter(|(name, _)| *name == "class");
        let others = stored.iter().filter(|(name, _)| *name != "class");
        let (mut accepted, mut value) = (Entries::new(), T::default());
        let mut problem = None;
        for (name, text) in class.chain(others) {
            let mut tried = accepted.clone();
            tried.insert(name.clone(), text.clone());
            match MapOption::<T>::checked(tried.clone()) {
                Ok(option) => (accepted, value) = (tried, option.value),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        MapOption { entries: stored, value, problem }
    }

    fn of(entries: Entries) -> MapOption<T> {
        match T::parse(&entries) {
            Ok(value) => MapOption { entries, value, problem: None },
            Err(problem) => MapOption { entries, value: T::default(), problem: Some(problem) },
        }
    }

    pub fn validate(&self) -> Result<(), OptionError> {
        self.problem.clone().map_or(Ok(()), Err)
    }

    /// As `system_schema` and DESCRIBE have them.
    pub fn entries(&self) -> &Entries {
        &self.entries
    }

    pub fn value(&self) -> &T {
        &self.value
    }
}
