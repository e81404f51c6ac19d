//! Restrictions by the terms of a SASI index: LIKE, and what else such an index answers.
//!
//! The index decides what matches. What is asked goes through its analyzer, and its terms are compared with those of the row's value.

use std::borrow::Cow;
use std::collections::HashSet;

use halcyon_model::analysis::{Matching, Sasi};
use halcyon_model::value::to_string;

use super::condition::{ANALYSED, BoundFilter, Test};
use crate::plan::execution::Work;
use crate::plan::term::Bound;
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_schema::index::Index;
use halcyon_syntax::{Error, Result};

/// What a pattern asks of texts: its wildcards are those at its ends (`LikeRestriction.makeSpecific`).
fn parse(pattern: &[u8]) -> Result<(Matching, &[u8])> {
    let (how, text) = match pattern {
        [b'%', text @ .., b'%'] => (Matching::Contains, text),
        [b'%', text @ ..] => (Matching::Suffix, text),
        [text @ .., b'%'] => (Matching::Prefix, text),
        text => (Matching::Whole, text),
    };
    match text {
        [] => Err(Error::invalid_request("LIKE value can't be empty.")),
        text => Ok((how, text)),
    }
}

/// The test of a LIKE.
pub(super) fn pattern(
    table: &Table,
    column: ColumnRef,
    pattern: Bound<'_>,
    work: &Work<'_>,
) -> Result<Test> {
    let pattern = match pattern {
        Bound::Bytes(bytes) => bytes,
        Bound::Unset => Cow::Borrowed(&[] as &[u8]),
        Bound::Null => return Err(Error::invalid_request("LIKE value can't be null.")),
    };
    let (how, text) = parse(&pattern)?;
    work.spend_on(text.len(), ANALYSED)?;
    let is_literal = |sasi: &Sasi| sasi.is_literal && sasi.matches(how);
    match index_of(table, column, is_literal) {
        Some((_, sasi)) => Ok(Test::Terms(sasi, how, asked(&sasi, text))),
        None => Err(unsupported(table, column, how, text)),
    }
}

fn unsupported(table: &Table, column: ColumnRef, how: Matching, text: &[u8]) -> Error {
    let pattern = match how {
        Matching::Prefix => "<term>%",
        Matching::Suffix => "%<term>",
        Matching::Contains => "%<term>%",
        Matching::Whole | Matching::Equal => "<term>",
    };
    let (name, text) = table
        .column(column)
        .map_or_else(Default::default, |def| (def.name.as_str(), to_string(&def.cql_type, text)));
    Error::InvalidRequest(format!(
        "{name} LIKE '{pattern}' {text} is only supported on properly indexed columns"
    ))
}

/// The index that answers a filter. What the filter tests becomes what the index finds.
pub(super) fn answered<'t>(table: &'t Table, filter: &mut BoundFilter) -> Option<&'t Index> {
    let of = |supports: &dyn Fn(&Sasi) -> bool| index_of(table, filter.column, supports);
    match &mut filter.test {
        Test::In(values) => {
            let [value] = values.as_mut_slice() else { return None };
            let (index, sasi) = of(&|sasi| sasi.matches(Matching::Equal))?;
            let mut asked = asked(&sasi, value);
            if sasi.is_literal {
                filter.test = Test::Terms(sasi, Matching::Equal, asked);
            } else {
                *value = asked.pop()?;
            }
            Some(index)
        }
        Test::Between { start, end } => {
            let (index, sasi) = of(&Sasi::has_ranges)?;
            for (value, _) in [start, end].into_iter().flatten() {
                *value = sasi.terms(value).pop()?;
            }
            Some(index)
        }
        Test::Terms(sasi, how, _) => {
            let (sasi, how) = (*sasi, *how);
            of(&|other| *other == sasi && other.matches(how)).map(|(index, _)| index)
        }
        _ => None,
    }
}

/// The terms that a pattern searches for, each once.
fn asked(sasi: &Sasi, value: &[u8]) -> Vec<Vec<u8>> {
    let mut seen = HashSet::new();
    let mut terms = sasi.terms(value);
    terms.retain(|term| seen.insert(term.clone()));
    terms
}

/// The first index of SASI on a column that supports something.
fn index_of(
    table: &Table,
    column: ColumnRef,
    supports: impl Fn(&Sasi) -> bool,
) -> Option<(&Index, Sasi)> {
    let on_column = |index: &&Index| table.indexed_column(index) == Some(column);
    let with_sasi = |index: &'_ Index| index.sasi().filter(|sasi| supports(sasi));
    table.indexes.iter().filter(on_column).find_map(|index| Some((index, with_sasi(index)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which wildcards a pattern has, and that one without anything else is refused.
    #[test]
    fn patterns() {
        let of = |text: &str| {
            let parsed = parse(text.as_bytes()).ok();
            parsed.map(|(how, text)| (how, String::from_utf8_lossy(text).into_owned()))
        };
        for (pattern, how, text) in [
            ("a", Matching::Whole, "a"),
            ("a%b", Matching::Whole, "a%b"),
            ("a%", Matching::Prefix, "a"),
            ("%a", Matching::Suffix, "a"),
            ("%a%", Matching::Contains, "a"),
            ("%%%", Matching::Contains, "%"),
            ("%%a", Matching::Suffix, "%a"),
        ] {
            assert_eq!(of(pattern), Some((how, text.to_owned())), "{pattern}");
        }
        assert!(["", "%", "%%"].into_iter().all(|pattern| of(pattern).is_none()));
    }
}
