//! Which restrictions the indexes of a table support (`Index.supportsExpression`), and whether they support all of a statement's.

use halcyon_model::CqlType;
use halcyon_model::analysis::{Matching, Sasi};

use super::{Entry, What};
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_schema::index::{Index, IndexKind, IndexPart};

/// How a restriction compares, as far as indexes tell operators apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    In,
    Range,
    Contains,
    ContainsKey,
    Like,
    Nearest,
}

impl What {
    fn operators(&self) -> Vec<Operator> {
        match self {
            What::Equal(_) => vec![Operator::Equal],
            What::In(_) => vec![Operator::In],
            What::Slice { .. } => vec![Operator::Range],
            What::Like(_) => vec![Operator::Like],
            What::Nearest(_) => vec![Operator::Nearest],
            What::Contains { values, keys, entries } => {
                let all = [
                    (values.is_empty(), Operator::Contains),
                    (keys.is_empty(), Operator::ContainsKey),
                    (entries.is_empty(), Operator::Equal),
                ];
                all.into_iter().filter(|(none, _)| !none).map(|(_, operator)| operator).collect()
            }
        }
    }

    fn is_several_contains(&self) -> bool {
        matches!(self, What::Contains { values, keys, entries }
            if values.len() + keys.len() + entries.len() > 1)
    }
}

/// Whether an index answers some of what is asked of the column.
pub(super) fn supports(table: &Table, index: &Index, column: ColumnRef, what: &What) -> bool {
    if !index.is_kept() || table.indexed_column(index) != Some(column) {
        return false;
    }
    let Some(def) = table.column(column) else { return false };
    let supports = |operator| match index.kind {
        IndexKind::Sai => sai_supports(index, &def.cql_type, operator),
        IndexKind::Sasi(sasi) => sasi_supports(&sasi, operator),
        _ => operator == legacy_operator(index.part),
    };
    what.operators().into_iter().any(supports)
}

fn legacy_operator(part: IndexPart) -> Operator {
    match part {
        IndexPart::Values => Operator::Contains,
        IndexPart::Keys => Operator::ContainsKey,
        IndexPart::Value | IndexPart::Entries | IndexPart::Full => Operator::Equal,
    }
}

/// `IndexTermType.supports`
fn sai_supports(index: &Index, column: &CqlType, operator: Operator) -> bool {
    match (index.part, operator) {
        (IndexPart::Values, Operator::Contains)
        | (IndexPart::Keys, Operator::ContainsKey)
        | (IndexPart::Value | IndexPart::Entries | IndexPart::Full, Operator::Equal) => true,
        (IndexPart::Value, Operator::Range) => has_ranges(column),
        (IndexPart::Value, Operator::Nearest) => matches!(column, CqlType::Vector(..)),
        _ => false,
    }
}

/// `ColumnIndex.supports`. What a LIKE asks is known when its pattern is.
fn sasi_supports(sasi: &Sasi, operator: Operator) -> bool {
    match operator {
        Operator::Equal => sasi.matches(Matching::Equal),
        Operator::Range => sasi.has_ranges(),
        Operator::Like => sasi.is_literal,
        _ => false,
    }
}

/// Texts, booleans and what is frozen are found by equality. Cassandra compares with `uuid` itself, so a descending one has ranges.
fn has_ranges(column: &CqlType) -> bool {
    let base = column.base();
    let is_literal = matches!(base, CqlType::Ascii | CqlType::Text | CqlType::Boolean)
        || !base.children().is_empty();
    !is_literal && *column != CqlType::Uuid
}

fn any_supports<'a>(
    table: &'a Table,
    indexes: impl IntoIterator<Item = &'a Index>,
    entry: &Entry,
) -> bool {
    let of_entry = |index: &Index| {
        entry.columns.iter().any(|column| supports(table, index, *column, &entry.what))
    };
    indexes.into_iter().any(of_entry)
}

pub(super) fn has_supporting(table: &Table, entry: &Entry) -> bool {
    any_supports(table, &table.indexes, entry)
}

/// Whether no group of indexes supports all of these. Storage-attached indexes are one group, each other index is one by itself.
pub(super) fn need_filtering(table: &Table, entries: &[&Entry]) -> bool {
    let (attached, others): (Vec<&Index>, Vec<&Index>) =
        table.indexes.iter().partition(|index| index.kind == IndexKind::Sai);
    let groups = others.into_iter().map(|index| vec![index]).chain([attached]);
    let supports_all =
        |group: Vec<&Index>| entries.iter().all(|entry| group_supports(table, &group, entry));
    !entries.is_empty() && !groups.into_iter().any(supports_all)
}

fn group_supports(table: &Table, group: &[&Index], entry: &Entry) -> bool {
    // Of several CONTAINS, an index that is not storage-attached finds one.
    let is_enough =
        |index: &Index| index.kind == IndexKind::Sai || !entry.what.is_several_contains();
    entry.columns.iter().all(|column| {
        let answers =
            |index: &&Index| supports(table, index, *column, &entry.what) && is_enough(index);
        group.iter().any(answers)
    })
}
