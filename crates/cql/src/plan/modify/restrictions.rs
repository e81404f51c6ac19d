//! WHERE of UPDATE and DELETE, and the key columns of INSERT: which partitions and rows are meant
//! (`StatementRestrictions`).

use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_syntax::ast::{Operator, Relation, RelationTarget};
use halcyon_syntax::{Error, Result};

use super::statement_type::StatementType;
use crate::plan::restrictions::{
    Entry, TupleTerm, What, add_clustering, add_entry, add_token, check_operator, entry, token,
};
use crate::plan::term::{Preparation, Term};
use halcyon_model::schema::ColumnKind;

#[derive(Debug, Clone, Default)]
pub(super) struct Restrictions {
    /// Of partition key columns, in their order.
    pub keys: Vec<Entry>,
    /// In the order of their first columns.
    pub clustering: Vec<Entry>,
    /// Which of the keys are meant.
    pub token: Option<What>,
}

fn refuse<T>(message: String) -> Result<T> {
    Err(Error::InvalidRequest(message))
}

/// Where its first column stands among those of its kind.
pub(super) fn first(entry: &Entry) -> usize {
    entry.columns.first().map_or(0, |column| usize::from(column.index))
}

impl Restrictions {
    /// `column = term`, of an INSERT: each column once.
    pub(super) fn add_equal(&mut self, column: ColumnRef, term: Term) {
        let to = match column.kind {
            ColumnKind::PartitionKey => &mut self.keys,
            _ => &mut self.clustering,
        };
        let what = What::Equal(TupleTerm::One(term));
        let at = to.partition_point(|other| other.columns.first() < Some(&column));
        to.reserve_exact(1);
        to.insert(at, Entry { columns: vec![column], tuple: false, what });
    }

    pub(super) fn prepare(
        relations: &[Relation],
        (kind, table): (StatementType, &Table),
        only_static: bool,
        to: &mut Preparation<'_>,
    ) -> Result<Restrictions> {
        let mut restrictions = Restrictions::default();
        let mut others = Vec::new();
        if relations.iter().any(|r| matches!(r.target, RelationTarget::Expression(_))) {
            return refuse(EXPRESSION.to_owned());
        }
        for relation in relations {
            check_operator(relation)?;
            if matches!(relation.operator, Operator::Contains | Operator::ContainsKey) {
                return refuse(format!("Cannot use {kind} with {}", relation.operator));
            }
            if let RelationTarget::Token(names) = &relation.target {
                let what = token(table, names, relation, to)?;
                let names: Vec<String> = names.iter().map(|name| name.text.clone()).collect();
                add_token(&mut restrictions.token, what, &names)?;
                continue;
            }
            let entry = entry(table, relation, to)?;
            match entry.columns.first().map(|column| column.kind) {
                None => {}
                Some(ColumnKind::PartitionKey) => add_entry(table, &mut restrictions.keys, entry)?,
                Some(ColumnKind::Clustering) => {
                    add_clustering(table, &mut restrictions.clustering, entry, false)?;
                }
                Some(_) => add_entry(table, &mut others, entry)?,
            }
        }
        restrictions.check(kind, table, only_static)?;
        let columns = others.iter().flat_map(|entry| &entry.columns);
        let mut others: Vec<&str> = columns
            .filter_map(|column| table.column(*column).map(|def| def.name.as_str()))
            .collect();
        if !others.is_empty() {
            others.sort_unstable();
            return refuse(format!(
                "Non PRIMARY KEY columns found in where clause: {} ",
                others.join(", ")
            ));
        }
        Ok(restrictions)
    }

    /// What Cassandra checks once all relations are known.
    pub(super) fn check(
        &self,
        kind: StatementType,
        table: &Table,
        only_static: bool,
    ) -> Result<()> {
        let schema = &table.schema;
        let is_slice = |entry: &Entry| entry.what.is_slice();
        let is_restricted = |at: usize| self.keys.iter().any(|entry| first(entry) == at);
        let is_named =
            self.keys.len() == schema.partition_key.len() && !self.keys.iter().any(is_slice);
        if self.token.is_some() && !is_named {
            return refuse(format!(
                "The token function cannot be used in WHERE clauses for {kind} statements"
            ));
        }
        let missing: Vec<&str> = schema
            .partition_key
            .iter()
            .enumerate()
            .filter_map(|(at, def)| (!is_restricted(at)).then_some(def.name.as_str()))
            .collect();
        if !missing.is_empty() {
            return refuse(format!("Some partition key parts are missing: {}", missing.join(", ")));
        }
        if self.keys.iter().any(is_slice) {
            return refuse(format!(
                "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for {kind} statements"
            ));
        }
        if only_static && self.has_clustering() && kind != StatementType::Insert {
            return refuse(format!(
                "Invalid restrictions on clustering columns since the {kind} statement modifies only static columns"
            ));
        }
        if kind == StatementType::Delete {
            return self.check_prefix(table);
        }
        if self.clustering.iter().any(is_slice) {
            return refuse(format!(
                "Slice restrictions are not supported on the clustering columns in {kind} statements"
            ));
        }
        let missing: Vec<&str> = schema
            .clustering
            .iter()
            .enumerate()
            .filter_map(|(i, def)| (!self.restricts(i)).then_some(def.name.as_str()))
            .collect();
        if schema.options.compact_storage && self.has_clustering() {
            // Its rows may have the first values of their clustering alone.
            return self.check_prefix(table);
        }
        if !only_static && !missing.is_empty() {
            return refuse(format!("Some clustering keys are missing: {}", missing.join(", ")));
        }
        Ok(())
    }

    /// A deletion's restrictions leave out no column in front of another.
    fn check_prefix(&self, table: &Table) -> Result<()> {
        let name = |i: usize| table.schema.clustering.get(i).map_or("", |def| def.name.as_str());
        let mut next = 0;
        for restriction in &self.clustering {
            let first = first(restriction);
            if first > next {
                return refuse(format!(
                    "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is not restricted",
                    name(first),
                    name(next)
                ));
            }
            next = first + restriction.columns.len();
        }
        Ok(())
    }

    fn restricts(&self, i: usize) -> bool {
        self.clustering.iter().any(|entry| {
            let first = first(entry);
            (first..first + entry.columns.len()).contains(&i)
        })
    }

    pub(super) fn has_clustering(&self) -> bool {
        !self.clustering.is_empty()
    }

    pub(super) fn key_has_in(&self) -> bool {
        self.keys.iter().any(|entry| matches!(entry.what, What::In(_)))
    }

    pub(super) fn clustering_has_in(&self) -> bool {
        self.clustering.iter().any(|entry| matches!(entry.what, What::In(_)))
    }

    /// Whether every clustering column has values rather than a range.
    pub(super) fn is_full_clustering(&self, table: &Table) -> bool {
        let sliced = self.clustering.iter().any(|entry| entry.what.is_slice());
        !sliced && (0..table.schema.clustering.len()).all(|i| self.restricts(i))
    }

    /// Whether every key column is restricted by values.
    pub(super) fn is_whole_key(&self, table: &Table) -> bool {
        let mut all = self.keys.iter().chain(&self.clustering);
        self.is_full_clustering(table)
            && all.all(|entry| matches!(entry.what, What::Equal(_) | What::In(_)))
    }
}

const EXPRESSION: &str =
    "Custom index expressions cannot be used in WHERE clauses for UPDATE or DELETE statements";
