//! Classifies each restriction (key, slice or filter) and refuses invalid combinations (`StatementRestrictions`).
//!
//! The order of the checks is Cassandra's, since the client gets the error of the first that fails.

use halcyon_model::CqlType;
use halcyon_model::schema::ColumnKind;

use super::{Entry, Keys, Restrictions, TupleTerm, What, relation};
use crate::plan::term::Preparation;
use halcyon_schema::catalog::{ColumnRef, Table, TableKind};
use halcyon_syntax::ast::{Name, Relation, RelationTarget};
use halcyon_syntax::{Error, Result};

pub(crate) const NEEDS_FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may have \
     unpredictable performance. If you want to execute this query despite the performance unpredictability, use ALLOW \
     FILTERING";

/// The properties of the statement that the analysis depends on.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    pub allow_filtering: bool,
    /// The selection names static columns and nothing else but the partition key.
    pub only_statics: bool,
}

#[derive(Debug, Default)]
struct Gathered {
    keys: Vec<Entry>,
    clustering: Vec<Entry>,
    others: Vec<Entry>,
    token: Option<What>,
    token_columns: Vec<String>,
}

impl Restrictions {
    pub fn prepare(
        table: &Table,
        relations: &[Relation],
        context: Context,
        to: &mut Preparation<'_>,
    ) -> Result<Restrictions> {
        let mut gathered = Gathered::default();
        for relation in relations {
            gathered.add(table, relation, context, to)?;
        }
        gathered.analyse(table, context, may_filter(table, context))
    }

    /// Slices of a range of partitions are filters too. Checked last, after all other rules of the statement.
    pub fn check_filtering(&self, table: &Table, context: Context) -> Result<()> {
        if self.key_range && self.clustering_restricted && !may_filter(table, context) {
            return Err(Error::invalid_request(NEEDS_FILTERING));
        }
        Ok(())
    }
}

/// Virtual tables are small: Cassandra lets them be filtered without a word.
fn may_filter(table: &Table, context: Context) -> bool {
    context.allow_filtering || table.kind == TableKind::Virtual
}

fn name(table: &Table, column: ColumnRef) -> &str {
    table.column(column).map_or("", |def| def.name.as_str())
}

impl Gathered {
    fn add(
        &mut self,
        table: &Table,
        relation: &Relation,
        context: Context,
        to: &mut Preparation<'_>,
    ) -> Result<()> {
        if let RelationTarget::Token(columns) = &relation.target {
            let what = relation::token(table, columns, relation, to)?;
            self.token_columns = columns.iter().map(|column: &Name| column.text.clone()).collect();
            self.token = Some(match self.token.take() {
                None => what,
                Some(before) => merge(before, what, &self.token_columns.join(", "), true)?,
            });
            return Ok(());
        }
        let entry = relation::entry(table, relation, to)?;
        let Some(first) = entry.columns.first().copied() else { return Ok(()) };
        match first.kind {
            ColumnKind::PartitionKey => add_entry(table, &mut self.keys, entry),
            ColumnKind::Clustering => {
                let last =
                    self.clustering.last().map(|last| (last.columns.clone(), last.what.is_slice()));
                let is_slice = entry.what.is_slice();
                add_entry(table, &mut self.clustering, entry)?;
                match last {
                    Some((last, last_is_slice)) if !context.allow_filtering => {
                        check_after_slice(table, &last, last_is_slice, first, is_slice)
                    }
                    _ => Ok(()),
                }
            }
            _ => add_entry(table, &mut self.others, entry),
        }
    }

    fn analyse(mut self, table: &Table, context: Context, filtering: bool) -> Result<Restrictions> {
        let mut filters = Vec::new();
        let mut key_range = self.check_keys(table, filtering)?;
        if context.only_statics && !self.clustering.is_empty() {
            return Err(Error::invalid_request(
                "Cannot restrict clustering columns when selecting only static columns",
            ));
        }
        let choosing = self.choosing_clusterings();
        self.check_clusterings(table, filtering, choosing)?;
        let clustering_restricted = !self.clustering.is_empty();
        let equal = self.equal_columns();
        if !self.others.is_empty() && !filtering {
            return Err(Error::invalid_request(NEEDS_FILTERING));
        }
        let key_restricted = !self.keys.is_empty() || self.token.is_some();
        let complete = self.keys.len() == table.schema.partition_key.len()
            && self.keys.iter().all(|entry| matches!(entry.what, What::Equal(_) | What::In(_)));
        let keys = if complete {
            Keys::Columns(std::mem::take(&mut self.keys))
        } else {
            key_range = true;
            filters.append(&mut self.keys);
            Keys::All
        };
        let mut clustering = self.clustering;
        filters.extend(clustering.split_off(choosing));
        check_tuple_filters(&filters)?;
        let regular = |entry: &Entry| entry.columns.iter().any(|c| c.kind == ColumnKind::Regular);
        let regulars_restricted = self.others.iter().any(regular);
        let others_restricted = !self.others.is_empty();
        filters.extend(self.others);
        Ok(Restrictions {
            keys,
            token: self.token,
            clustering,
            filters,
            key_range,
            key_restricted,
            clustering_restricted,
            regulars_restricted,
            others_restricted,
            equal,
        })
    }

    /// Whether a range of partitions is read.
    fn check_keys(&self, table: &Table, filtering: bool) -> Result<bool> {
        let columns = table.schema.partition_key.len();
        if self.token.is_some() && !self.keys.is_empty() && self.keys.len() < columns {
            return Err(Error::invalid_request(NEEDS_FILTERING))
                .or_else(|error| if filtering { Ok(true) } else { Err(error) });
        }
        let has_slice = self
            .keys
            .iter()
            .any(|entry| matches!(entry.what, What::Slice { .. } | What::Contains { .. }));
        let needs_filtering = !self.keys.is_empty() && (self.keys.len() < columns || has_slice);
        if needs_filtering && !filtering {
            return Err(Error::invalid_request(NEEDS_FILTERING));
        }
        Ok(needs_filtering || self.keys.is_empty())
    }

    /// How many of the clustering entries choose slices: those up to a gap, and up to the first slice.
    fn choosing_clusterings(&self) -> usize {
        let mut next = 0;
        let mut sliced = false;
        for (index, entry) in self.clustering.iter().enumerate() {
            let first = entry.columns.first().map_or(0, |column| usize::from(column.index));
            if sliced || first != next || matches!(entry.what, What::Contains { .. }) {
                return index;
            }
            sliced = entry.what.is_slice();
            next += entry.columns.len();
        }
        self.clustering.len()
    }

    fn check_clusterings(&self, table: &Table, filtering: bool, choosing: usize) -> Result<()> {
        if filtering {
            return Ok(());
        }
        if self.clustering.iter().any(|entry| matches!(entry.what, What::Contains { .. })) {
            return Err(Error::invalid_request(
                "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering",
            ));
        }
        if choosing == self.clustering.len() {
            return Ok(());
        }
        let restricted = self.clustering.iter().flat_map(|entry| &entry.columns);
        for (expected, column) in restricted.enumerate() {
            if usize::from(column.index) != expected {
                let expected = table.schema.clustering.get(expected);
                return Err(Error::InvalidRequest(format!(
                    "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is not restricted",
                    name(table, *column),
                    expected.map_or("", |column| column.name.as_str())
                )));
            }
        }
        Ok(())
    }

    fn equal_columns(&self) -> Vec<ColumnRef> {
        let all = self.keys.iter().chain(&self.clustering).chain(&self.others);
        all.filter(|entry| matches!(entry.what, What::Equal(_)))
            .flat_map(|entry| entry.columns.iter().copied())
            .collect()
    }
}

/// A slice must be the last of the clustering restrictions (`ClusteringColumnRestrictions.mergeWith`).
fn check_after_slice(
    table: &Table,
    last: &[ColumnRef],
    last_is_slice: bool,
    new: ColumnRef,
    new_is_slice: bool,
) -> Result<()> {
    let Some(last) = last.first().copied() else { return Ok(()) };
    if last_is_slice && new > last {
        return Err(Error::InvalidRequest(format!(
            "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
            name(table, new),
            name(table, last)
        )));
    }
    if new < last && new_is_slice {
        let next = ColumnRef { index: new.index + 1, ..new };
        return Err(Error::InvalidRequest(format!(
            "PRIMARY KEY column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
            name(table, next),
            name(table, new)
        )));
    }
    Ok(())
}

/// Adds to a list ordered by column, merging with what the same columns already have.
fn add_entry(table: &Table, entries: &mut Vec<Entry>, entry: Entry) -> Result<()> {
    let overlaps = |other: &&mut Entry| other.columns.iter().any(|c| entry.columns.contains(c));
    let Some(other) = entries.iter_mut().find(overlaps) else {
        let at = entries.partition_point(|other| other.columns.first() < entry.columns.first());
        entries.insert(at, entry);
        return Ok(());
    };
    let first = (other.columns.first().copied(), entry.columns.first().copied());
    if other.what.is_slice() && entry.what.is_slice() && first.0 != first.1 {
        return Err(Error::InvalidRequest(format!(
            "Column \"{}\" cannot be restricted by two inequalities not starting with the same column",
            first.0.max(first.1).map_or("", |later| name(table, later))
        )));
    }
    let shared = other.columns.iter().filter(|c| entry.columns.contains(c));
    let shared: Vec<&str> = shared.map(|column| name(table, *column)).collect();
    let both = shared.join(" ,");
    let before = std::mem::replace(&mut other.what, What::Slice { start: None, end: None });
    other.what = merge(before, entry.what, &both, false)?;
    if entry.columns.len() > other.columns.len() {
        other.columns = entry.columns;
    }
    Ok(())
}

fn merge(before: What, new: What, columns: &str, token: bool) -> Result<What> {
    let plural = if token { "Columns" } else { "Column" };
    let refused = match (before, new) {
        (What::Equal(_), _) => {
            format!(
                "{columns} cannot be restricted by more than one relation if it includes an Equal"
            )
        }
        (What::In(_), _) => {
            format!("{columns} cannot be restricted by more than one relation if it includes a IN")
        }
        (
            What::Contains { mut values, mut keys, mut entries },
            What::Contains { values: v, keys: k, entries: e },
        ) => {
            values.extend(v);
            keys.extend(k);
            entries.extend(e);
            return Ok(What::Contains { values, keys, entries });
        }
        (What::Contains { .. }, _) => format!(
            "Collection column {columns} can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality"
        ),
        (What::Slice { start: Some(_), .. }, What::Slice { start: Some(_), .. }) => {
            format!("More than one restriction was found for the start bound on {columns}")
        }
        (What::Slice { end: Some(_), .. }, What::Slice { end: Some(_), .. }) => {
            format!("More than one restriction was found for the end bound on {columns}")
        }
        (What::Slice { start, end }, What::Slice { start: other_start, end: other_end }) => {
            return Ok(What::Slice { start: start.or(other_start), end: end.or(other_end) });
        }
        (What::Slice { .. }, _) => format!(
            "{plural} \"{columns}\" cannot be restricted by both an equality and an inequality relation"
        ),
    };
    Err(Error::InvalidRequest(refused))
}

fn check_tuple_filters(filters: &[Entry]) -> Result<()> {
    let refused = |entry: &Entry| match &entry.what {
        What::Slice { .. } if entry.tuple => {
            Some("Multi-column slice restrictions cannot be used for filtering.")
        }
        What::In(_) if entry.tuple => Some("IN restrictions are not supported on indexed columns"),
        What::Equal(TupleTerm::Whole(_)) if entry.tuple => None,
        _ => None,
    };
    match filters.iter().find_map(refused) {
        None => Ok(()),
        Some(message) => Err(Error::invalid_request(message)),
    }
}

/// Whether a filter on this type can be a comparison of values.
pub(super) fn is_collection(cql_type: &CqlType) -> bool {
    matches!(cql_type.thawed(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
}
