//! Sub-options by name. What was asked for is remembered: the rest is what the strategy does not understand.

use std::collections::BTreeMap;

pub(super) type Checked<T> = Result<T, String>;

pub(super) struct Reader<'a> {
    pub(super) entries: &'a BTreeMap<String, String>,
    understood: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(entries: &'a BTreeMap<String, String>) -> Reader<'a> {
        Reader { entries, understood: Vec::new() }
    }

    pub(super) fn get(&mut self, name: &'static str) -> Option<&'a str> {
        self.understood.push(name);
        self.entries.get(name).map(String::as_str)
    }

    /// As Java's `Integer.parseInt`.
    pub(super) fn int(&mut self, name: &'static str) -> Checked<Option<i32>> {
        let parse = |text: &str| {
            text.parse().map_err(|_| format!("{text} is not a parsable int (base10) for {name}"))
        };
        self.get(name).map(parse).transpose()
    }

    /// `called` is the type that Cassandra's message names, which is not always the one that it reads.
    pub(super) fn long(&mut self, name: &'static str, called: &str) -> Checked<Option<i64>> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|_| format!("{text} is not a parsable {called} (base10) for {name}"))
        };
        self.get(name).map(parse).transpose()
    }

    /// `false` where it is left out.
    pub(super) fn boolean(
        &mut self,
        name: &'static str,
        wrong: impl Fn(&str) -> String,
    ) -> Checked<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(word) if word.eq_ignore_ascii_case("true") => Ok(true),
            Some(word) if word.eq_ignore_ascii_case("false") => Ok(false),
            Some(word) => Err(wrong(word)),
        }
    }

    pub(super) fn refuse_unknown(&self, class: &str) -> Checked<()> {
        let known = |name: &&String| !self.understood.contains(&name.as_str());
        let mut unknown: Vec<&str> =
            self.entries.keys().filter(known).map(String::as_str).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        // Cassandra's map is without the class.
        hash_order(&mut unknown, self.entries.len().saturating_sub(1));
        let unknown = unknown.join(", ");
        Err(format!("Properties specified [{unknown}] are not understood by {class}"))
    }
}

/// The order in which a Java `HashMap`, made as a copy of one with `entries`, gives keys of it.
pub fn hash_order(keys: &mut [&str], entries: usize) {
    let capacity = (entries * 4 / 3 + 1).next_power_of_two() as u32;
    let hash = |key: &str| {
        key.encode_utf16().fold(0u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
    };
    let slot = |key: &str| (hash(key) ^ hash(key) >> 16) & (capacity - 1);
    keys.sort_by_key(|key| slot(key));
}
