//! Classifies each restriction (key, slice or filter) and refuses invalid combinations (`StatementRestrictions`).
//!
//! The order of the checks is Cassandra's, since the client gets the error of the first that fails.

use halcyon_model::CqlType;
use halcyon_model::schema::ColumnKind;

use super::{Entry, Keys, Restrictions, What, indexes, relation, search};
use crate::plan::term::{Preparation, Term};
use halcyon_schema::catalog::{ColumnRef, Table, TableKind};
use halcyon_syntax::ast::{Name, Relation, RelationTarget};
use halcyon_syntax::{Error, Result};

pub const NEEDS_FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may have \
     unpredictable performance. If you want to execute this query despite the performance unpredictability, use ALLOW \
     FILTERING";

/// The same where guardrails refuse ALLOW FILTERING.
pub const CANNOT_FILTER: &str = "Cannot execute this query as it might involve data filtering and thus may have unpredictable \
     performance. Executing this query despite the performance unpredictability with ALLOW FILTERING has been disabled by the \
     allow_filtering_enabled property in cassandra.yaml";

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
    /// `nearest`: what `ORDER BY` says of it, or why that is refused.
    pub fn prepare(
        table: &Table,
        relations: &[Relation],
        nearest: Result<Option<(ColumnRef, Term)>>,
        context: Context,
        to: &mut Preparation<'_>,
    ) -> Result<Restrictions> {
        let mut gathered = Gathered::default();
        let (expressions, relations): (Vec<&Relation>, Vec<&Relation>) =
            relations.iter().partition(|r| matches!(r.target, RelationTarget::Expression(_)));
        for relation in relations {
            gathered.add(table, relation, context, to)?;
        }
        if let Some((column, term)) = nearest? {
            let what = What::Nearest(term);
            let entry = Entry { columns: vec![column], tuple: false, what };
            add_entry(table, &mut gathered.others, entry)?;
        }
        check_expressions(table, &expressions)?;
        gathered.analyse(table, context, may_filter(table, context))
    }

    /// Checked last, after all other rules of the statement.
    pub fn check_filtering(&self, table: &Table, context: Context) -> Result<()> {
        let may_filter = may_filter(table, context);
        if (self.key_range || self.uses_index) && self.needs_filtering && !may_filter {
            return Err(Error::invalid_request(NEEDS_FILTERING));
        }
        Ok(())
    }

    /// Whether every clustering column is restricted by = or IN, so that rows are read by their names.
    pub fn names_rows(&self, table: &Table) -> bool {
        let columns = self.clustering.iter().map(|entry| entry.columns.len()).sum::<usize>();
        let is_sliced = |entry: &Entry| matches!(entry.what, What::Slice { .. });
        columns == table.schema.clustering.len() && !self.clustering.iter().any(is_sliced)
    }
}

/// Virtual tables are small: Cassandra lets them be filtered without a word.
fn may_filter(table: &Table, context: Context) -> bool {
    context.allow_filtering || table.kind == TableKind::Virtual
}

/// Of several columns with a fault, the error names the first by name.
fn sort_by_name(table: &Table, entries: &mut [Entry]) {
    let first = |entry: &Entry| entry.columns.first().map_or("", |column| name(table, *column));
    entries.sort_by(|a, b| first(a).cmp(first(b)));
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
            return add_token(&mut self.token, what, &self.token_columns);
        }
        let entry = relation::entry(table, relation, to)?;
        let Some(first) = entry.columns.first().copied() else { return Ok(()) };
        match first.kind {
            ColumnKind::PartitionKey => add_entry(table, &mut self.keys, entry),
            ColumnKind::Clustering => {
                let is_free = context.allow_filtering || indexes::has_supporting(table, &entry);
                add_clustering(table, &mut self.clustering, entry, is_free)
            }
            _ => add_entry(table, &mut self.others, entry),
        }
    }

    fn analyse(mut self, table: &Table, context: Context, filtering: bool) -> Result<Restrictions> {
        let supported =
            |entries: &[Entry]| entries.iter().any(|entry| indexes::has_supporting(table, entry));
        let has_clustering_index = supported(&self.clustering);
        let has_index = has_clustering_index || supported(&self.keys) || supported(&self.others);
        let mut key_range = self.check_keys(table, filtering || has_index)?;
        let mut uses_index =
            has_index && key_range && !(self.keys.is_empty() && self.token.is_some());
        let filters_keys = !self.keys.is_empty() && key_range;
        if context.only_statics && !self.clustering.is_empty() {
            return Err(Error::invalid_request(
                "Cannot restrict clustering columns when selecting only static columns",
            ));
        }
        let choosing = self.choosing_clusterings();
        self.check_clusterings(table, filtering || has_index, choosing)?;
        let filters_clusterings = choosing < self.clustering.len();
        let scans_keys = key_range || self.is_on_token(table);
        uses_index |= has_index && filters_clusterings || scans_keys && has_clustering_index;
        let mut asked: Vec<&Entry> =
            if filters_keys { self.keys.iter().collect() } else { Vec::new() };
        let asks_clusterings = uses_index || filters_clusterings;
        if asks_clusterings {
            asked.extend(&self.clustering);
        }
        self.check_others(table, filtering || has_index, choosing)?;
        let nearest = self.nearest();
        asked.extend(&self.others);
        uses_index |= has_index && !self.others.is_empty();
        let keys_in = self.check_keys_in(table, uses_index)?;
        let clustering_restricted = !self.clustering.is_empty();
        let needs_filtering =
            indexes::need_filtering(table, &asked) || asked.is_empty() && clustering_restricted;
        let equal = self.equal_columns();
        let key_restricted = !self.keys.is_empty() || self.token.is_some();
        let mut filters = Vec::new();
        let keys = self.take_keys(table, &mut filters);
        key_range |= matches!(keys, Keys::All);
        let mut clustering = self.clustering;
        filters.extend(clustering.split_off(choosing));
        let regular = |entry: &Entry| entry.columns.iter().any(|c| c.kind == ColumnKind::Regular);
        let regulars_restricted = self.others.iter().any(regular);
        let others_restricted = !self.others.is_empty();
        sort_by_name(table, &mut self.others);
        filters.extend(self.others);
        let searches = match uses_index {
            true => search::plan(table, filters.iter().chain(&clustering)),
            false => Vec::new(),
        };
        Ok(Restrictions {
            keys,
            token: self.token,
            clustering,
            filters,
            key_range,
            keys_in,
            key_restricted,
            clustering_restricted,
            regulars_restricted,
            others_restricted,
            equal,
            uses_index,
            searches,
            nearest,
            needs_filtering,
            asks_clusterings,
        })
    }

    fn check_others(&self, table: &Table, allowed: bool, choosing: usize) -> Result<()> {
        if let Some(column) = self.nearest() {
            self.check_nearest(table, column, choosing)?;
        }
        let is_vector = |entry: &&Entry| {
            let of = |column: &ColumnRef| table.column(*column).map(|def| def.cql_type.thawed());
            entry.columns.iter().filter_map(of).any(|of| matches!(of, CqlType::Vector(..)))
        };
        let has_index =
            |entry: &Entry| entry.columns.iter().any(|column| has_any_index(table, *column));
        let first = self.others.iter().find(is_vector);
        if self.nearest().is_none() && first.is_some_and(has_index) {
            return Err(Error::invalid_request("Vector indexes only support ANN queries"));
        }
        if !self.others.is_empty() && !allowed {
            return Err(Error::invalid_request(NEEDS_FILTERING));
        }
        Ok(())
    }

    fn nearest(&self) -> Option<ColumnRef> {
        let nearest = self.others.iter().find(|entry| matches!(entry.what, What::Nearest(_)))?;
        nearest.columns.first().copied()
    }

    /// All that is restricted beside the vectors must be indexed, or choose rows of one partition.
    fn check_nearest(&self, table: &Table, column: ColumnRef, choosing: usize) -> Result<()> {
        let refused = |what| Err(Error::invalid_request(what));
        let cql_type = table.column(column).map(|def| &def.cql_type);
        if !matches!(cql_type, Some(CqlType::Vector(element, _)) if **element == CqlType::Float) {
            return refused("ANN ordering is only supported on float vector indexes");
        }
        if !has_any_index(table, column) {
            return refused("ANN ordering by vector requires the column to be indexed");
        }
        let columns = table.schema.partition_key.len();
        let unindexed = |entry: &&Entry| {
            let is_vector = matches!(entry.what, What::Nearest(_));
            !is_vector && !entry.columns.iter().all(|column| has_any_index(table, *column))
        };
        let key_filter = !self.keys.is_empty() && self.check_keys(table, true)?;
        let others = self.others.iter().any(|entry| unindexed(&entry));
        let has_all_keys = self.token.is_some() || self.keys.len() == columns;
        let whole = has_all_keys && choosing == self.clustering.len();
        let clusterings = self.clustering.iter().any(|entry| unindexed(&entry)) && !whole;
        if key_filter || others || clusterings {
            return refused(
                "ANN ordering by vector requires all restricted column(s) to be indexed",
            );
        }
        Ok(())
    }

    /// Whether the partition key is given by several values.
    fn check_keys_in(&self, table: &Table, uses_index: bool) -> Result<bool> {
        let is_in = |entry: &Entry| matches!(entry.what, What::In(_));
        let keys_in = !self.is_on_token(table) && self.keys.iter().any(is_in);
        if uses_index && keys_in {
            return Err(Error::invalid_request(
                "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported",
            ));
        }
        Ok(keys_in)
    }

    /// Whether a token chooses the partitions, and columns of the key only filter them (`TokenFilter.isOnToken`).
    fn is_on_token(&self, table: &Table) -> bool {
        self.token.is_some() && self.keys.len() < table.schema.partition_key.len()
    }

    /// Restrictions that do not name partitions become filters.
    fn take_keys(&mut self, table: &Table, filters: &mut Vec<Entry>) -> Keys {
        if self.has_whole_keys(table) {
            return Keys::Columns(std::mem::take(&mut self.keys));
        }
        filters.append(&mut self.keys);
        Keys::All
    }

    fn has_whole_keys(&self, table: &Table) -> bool {
        self.keys.len() == table.schema.partition_key.len()
            && self.keys.iter().all(|entry| matches!(entry.what, What::Equal(_) | What::In(_)))
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
            if sliced
                || first != next
                || matches!(entry.what, What::Contains { .. } | What::Like(_))
            {
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
    (last, last_is_slice): (&[ColumnRef], bool),
    (new, new_is_slice): (ColumnRef, bool),
    restricted: &[Entry],
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
        let restricted = restricted.iter().filter_map(|entry| entry.columns.first().copied());
        let next = restricted.filter(|column| *column > new).min().unwrap_or(last);
        return Err(Error::InvalidRequest(format!(
            "PRIMARY KEY column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
            name(table, next),
            name(table, new)
        )));
    }
    Ok(())
}

/// Adds to the restrictions of clustering columns. `is_free`: what follows a slice may be a filter.
pub(in crate::plan) fn add_clustering(
    table: &Table,
    entries: &mut Vec<Entry>,
    entry: Entry,
    is_free: bool,
) -> Result<()> {
    let last = entries.last().map(|last| (last.columns.clone(), last.what.is_slice()));
    let new = entry.columns.first().map(|first| (*first, entry.what.is_slice()));
    add_entry(table, entries, entry)?;
    match (last, new) {
        (Some((last, last_is_slice)), Some(new)) if !is_free => {
            check_after_slice(table, (&last, last_is_slice), new, entries)
        }
        _ => Ok(()),
    }
}

/// Adds to a list ordered by column, merging with what the same columns already have.
pub(in crate::plan) fn add_entry(
    table: &Table,
    entries: &mut Vec<Entry>,
    entry: Entry,
) -> Result<()> {
    let overlaps = |other: &&mut Entry| other.columns.iter().any(|c| entry.columns.contains(c));
    let Some(other) = entries.iter_mut().find(overlaps) else {
        let at = entries.partition_point(|other| other.columns.first() < entry.columns.first());
        // Few, and kept as long as the statement.
        entries.reserve_exact(1);
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

fn has_any_index(table: &Table, column: ColumnRef) -> bool {
    table.indexes.iter().any(|index| table.indexed_column(index) == Some(column))
}

/// `expr(index, value)` is for custom indexes that have a language of their own, which no index here has.
fn check_expressions(table: &Table, expressions: &[&Relation]) -> Result<()> {
    let refused = |what: String| Err(Error::InvalidRequest(what));
    let [Relation { target: RelationTarget::Expression(name), .. }, more @ ..] = expressions else {
        return Ok(());
    };
    if !more.is_empty() {
        let what = "Multiple custom index expressions in a single query are not supported";
        return refused(what.to_owned());
    }
    let (name, full) = (&name.text, table.full_name());
    let Some(index) = table.index(name) else {
        return refused(format!("Invalid index expression, index {name} not found for {full}"));
    };
    if index.is_legacy() {
        return refused(format!(
            "Only CUSTOM indexes may be used in custom index expressions, {name} is not valid"
        ));
    }
    refused(format!("Index {name} does not support custom expressions"))
}

/// Adds what a relation says of `token(…)` to what others have said.
pub(in crate::plan) fn add_token(
    token: &mut Option<What>,
    what: What,
    columns: &[String],
) -> Result<()> {
    *token = Some(match token.take() {
        None => what,
        Some(before) => merge(before, what, &columns.join(", "), true)?,
    });
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
        (What::Like(_), _) => {
            format!(
                "{columns} cannot be restricted by more than one relation if it includes a LIKE"
            )
        }
        (What::Nearest(_), _) => {
            format!("{columns} cannot be restricted by more than one relation in an ANN ordering")
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
