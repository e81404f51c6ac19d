//! The guardrails of terms of storage-attached indexes (`StorageAttachedIndex.validate`). Each row that is written is asked, after all
//! statements of the request are bound.

use halcyon_guardrails::{Guard, Said, Threshold};
use halcyon_model::CqlType;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::schema::ColumnKind;
use halcyon_model::token::split_key;
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_schema::change::violated;
use halcyon_schema::index::{Index, IndexKind, IndexPart};
use halcyon_stream::PartitionKey;
use halcyon_syntax::{Error, Result};

use super::operation::Change;

/// What a composite has beside its two components.
const COMPOSITE: usize = 6;

/// What guardrails say of the terms of a statement, and why it is refused.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    pub said: Vec<Said>,
    pub refused: Option<Error>,
}

/// The rows and changes of a statement.
pub(super) struct Written<'a> {
    pub(super) table: &'a Table,
    pub(super) keys: &'a [PartitionKey],
    /// How many rows, the one of a partition without clustering columns included.
    pub(super) rows: usize,
    pub(super) clusterings: &'a [Vec<u8>],
    pub(super) changes: &'a [(ColumnRef, Change)],
}

impl Written<'_> {
    pub(super) fn terms(&self, guard: &Guard) -> Terms {
        let is_asked = |index: &&Index| matches!(index.kind, IndexKind::Sai);
        let guard = guard.fresh();
        let mut indexes = self.table.indexes.iter().filter(is_asked);
        let refused = indexes.find_map(|index| self.check(index, &guard).err());
        Terms { said: guard.take_said(), refused }
    }

    fn check(&self, index: &Index, guard: &Guard) -> Result<()> {
        let Some(column) = self.table.indexed_column(index) else { return Ok(()) };
        let Some(def) = self.table.column(column) else { return Ok(()) };
        let term = index.term_type(def.cql_type.base());
        let threshold = match term.thawed() {
            _ if index.similarity(&term).is_some() => Threshold::SaiVectorTermSize,
            _ if is_frozen(&def.cql_type, &term) => Threshold::SaiFrozenTermSize,
            _ => Threshold::SaiStringTermSize,
        };
        // Cassandra asks nothing where nothing is warned of.
        let Some(warn) = guard.bounds(threshold).warn else { return Ok(()) };
        let check = |term: &[u8]| {
            if i64::try_from(term.len()).unwrap_or(i64::MAX) <= warn {
                return Ok(());
            }
            let size = match index.analysis() {
                Some(analysis) => analysis.apply(term).len(),
                None => term.len(),
            };
            let size = i64::try_from(size).unwrap_or(i64::MAX);
            guard.check(threshold, size, &def.name).map_err(violated)
        };
        self.each_term(index, column, check)
    }

    fn each_term(
        &self,
        index: &Index,
        column: ColumnRef,
        mut check: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let at = usize::from(column.index);
        let clusterings = &self.table.layout.clusterings;
        for key in self.keys {
            match column.kind {
                ColumnKind::PartitionKey => {
                    let count = self.table.schema.partition_key.len();
                    let parts = split_key(&key.bytes, count).unwrap_or_default();
                    for _ in 0..self.rows {
                        parts.get(at).map_or(Ok(()), |part| check(part))?;
                    }
                }
                ColumnKind::Clustering => {
                    for row in self.clusterings {
                        let value = clusterings.values(row, clusterings.len()).nth(at);
                        if let Some(ClusteringValue::Bytes(value)) = value {
                            check(value)?;
                        }
                    }
                }
                ColumnKind::Static => self.changed(index, column, &mut check)?,
                ColumnKind::Regular => {
                    for _ in 0..self.rows {
                        self.changed(index, column, &mut check)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn changed(
        &self,
        index: &Index,
        column: ColumnRef,
        check: &mut impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let is_set = self
            .table
            .column(column)
            .is_some_and(|def| matches!(def.cql_type.base(), CqlType::Set(_)));
        let mut cell = |path: &[u8], value: &[u8]| match index.part {
            IndexPart::Keys => check(path),
            IndexPart::Values if is_set => check(path),
            IndexPart::Entries => check(&vec![0; path.len() + value.len() + COMPOSITE]),
            IndexPart::Value | IndexPart::Values | IndexPart::Full => check(value),
        };
        for (_, change) in self.changes.iter().filter(|(changed, _)| *changed == column) {
            match change {
                Change::Cell(Some(value)) => cell(&[], value)?,
                Change::Overwrite(cells) => {
                    cells.iter().try_for_each(|(path, value)| cell(path, value))?;
                }
                Change::Cells(cells) => {
                    let written = |(path, value): &(Vec<u8>, Option<Vec<u8>>)| match value {
                        Some(value) => cell(path, value),
                        None => Ok(()),
                    };
                    cells.iter().try_for_each(written)?;
                }
                Change::SetIndex { value: Some(Some(value)), .. } => cell(&[], value)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether terms are whole values of a type with parts (`IndexTermType.isFrozen`).
fn is_frozen(column: &CqlType, term: &CqlType) -> bool {
    let has_parts = |of: &CqlType| {
        matches!(
            of.thawed(),
            CqlType::List(_)
                | CqlType::Set(_)
                | CqlType::Map(..)
                | CqlType::Tuple(_)
                | CqlType::Udt(_)
                | CqlType::Vector(..)
        )
    };
    let column = column.base();
    has_parts(column) && !column.is_multi_cell() || has_parts(term)
}
