//! `caching = { … }` (`CachingParams`).

use super::map_option::{Entries, SubOptions};
use super::{OptionError, hash_order};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caching {
    pub keys: bool,
    pub rows: CachedRows,
}

/// `rows_per_partition`: of each partition's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachedRows {
    None,
    Head(u32),
    All,
}

impl Default for Caching {
    fn default() -> Caching {
        Caching { keys: true, rows: CachedRows::None }
    }
}

impl Caching {
    fn entries(self) -> Entries {
        let rows = match self.rows {
            CachedRows::None => "NONE".to_owned(),
            CachedRows::All => "ALL".to_owned(),
            CachedRows::Head(rows) => rows.to_string(),
        };
        let keys = if self.keys { "ALL" } else { "NONE" };
        [("keys".to_owned(), keys.to_owned()), ("rows_per_partition".to_owned(), rows)].into()
    }
}

impl SubOptions for Caching {
    fn defaults() -> Entries {
        Caching::default().entries()
    }

    fn normalize(given: Entries) -> Result<Entries, OptionError> {
        Caching::parse(&given).map(Caching::entries)
    }

    /// What is left out is not cached.
    fn parse(given: &Entries) -> Result<Caching, OptionError> {
        let keys = match given.get("keys") {
            None => false,
            Some(word) if word.eq_ignore_ascii_case("ALL") => true,
            Some(word) if word.eq_ignore_ascii_case("NONE") => false,
            Some(word) => {
                return Err(OptionError::Configuration(format!(
                    "Invalid value '{word}' for caching sub-option 'keys': only 'ALL' and 'NONE' are allowed"
                )));
            }
        };
        let rows =
            given.get("rows_per_partition").map_or(Ok(CachedRows::None), |word| rows(word))?;
        let known = |name: &&str| !matches!(*name, "keys" | "rows_per_partition");
        let mut unknown: Vec<&str> = given.keys().map(String::as_str).filter(known).collect();
        if unknown.is_empty() {
            return Ok(Caching { keys, rows });
        }
        hash_order(&mut unknown, given.len());
        Err(OptionError::Configuration(format!(
            "Invalid caching sub-options [{}]: only 'keys' and 'rows_per_partition' are allowed",
            unknown.join(", ")
        )))
    }
}

fn rows(word: &str) -> Result<CachedRows, OptionError> {
    if word.eq_ignore_ascii_case("ALL") {
        return Ok(CachedRows::All);
    }
    if word.eq_ignore_ascii_case("NONE") {
        return Ok(CachedRows::None);
    }
    if word.is_empty() || !word.bytes().all(|b| b.is_ascii_digit()) {
        return Err(OptionError::Configuration(format!(
            "Invalid value '{word}' for caching sub-option 'rows_per_partition': only 'ALL', 'NONE', and integer values are allowed"
        )));
    }
    match word.parse::<i32>() {
        Ok(0) => Ok(CachedRows::None),
        Ok(i32::MAX) => Ok(CachedRows::All),
        Ok(rows) => Ok(CachedRows::Head(rows.unsigned_abs())),
        Err(_) => Err(OptionError::Configuration(format!("For input string: \"{word}\""))),
    }
}
