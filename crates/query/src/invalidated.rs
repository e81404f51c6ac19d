//! Which prepared statements a change of the schema makes invalid, so that a client has to prepare them again
//! (`QueryProcessor.StatementInvalidatingListener`).
//!
//! 1. All on a table or view that is dropped, or whose columns, indexes, TTL or gc_grace are others (`changeAffectsPreparedStatements`).
//! 2. All that call a function of a name of which an overload was dropped, changed or added beside others.
//! 3. None that Cassandra takes for one without a table: of the schema, TRUNCATE, USE.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use halcyon_cql::plan::requires::Requirement;
use halcyon_model::access::{Permission, Resource};
use halcyon_model::options::TableOptions;
use halcyon_schema::catalog::{Keyspace, Table};
use halcyon_schema::function::{Functions, Signature};

use crate::prepared::PreparedStatement;

/// What a change of the schema invalidates of a keyspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Invalidated {
    keyspace: String,
    tables: BTreeSet<String>,
    functions: BTreeSet<String>,
}

impl Invalidated {
    /// By the change of a keyspace.
    pub(crate) fn of(before: Option<&Keyspace>, after: Option<&Keyspace>) -> Invalidated {
        let Some(before) = before else { return Invalidated::default() };
        Invalidated {
            keyspace: before.name.clone(),
            tables: tables(before, after),
            functions: functions(&before.functions, after.map(|after| &after.functions)),
        }
    }

    pub fn is_nothing(&self) -> bool {
        self.tables.is_empty() && self.functions.is_empty()
    }

    /// Whether a statement has to be prepared again.
    pub fn concerns(&self, statement: &PreparedStatement) -> bool {
        let tables = statement.plan.tables().unwrap_or_default();
        let is_on = tables.iter().any(|table| {
            table.schema.keyspace == self.keyspace && self.tables.contains(&table.schema.name)
        });
        let calls = |requirement: &Requirement| match requirement {
            Requirement::Permission(
                Permission::Execute,
                Resource::Function { keyspace, name, .. },
            ) => *keyspace == self.keyspace && self.functions.contains(name),
            _ => false,
        };
        is_on || statement.requires.iter().any(calls)
    }
}

fn tables(before: &Keyspace, after: Option<&Keyspace>) -> BTreeSet<String> {
    let is_invalid = |(name, table): &(&String, &Arc<Table>)| {
        let now = after.and_then(|after| after.tables.get(*name));
        now.is_none_or(|now| now.id != table.id || is_other(table, now))
    };
    before.tables.iter().filter(is_invalid).map(|(name, _)| name.clone()).collect()
}

/// Whether statements on a table mean something else than before.
fn is_other(before: &Table, after: &Table) -> bool {
    let (one, other) = (&before.schema, &after.schema);
    let ttl = |options: &TableOptions| (options.default_time_to_live, options.gc_grace_seconds());
    one.partition_key != other.partition_key
        || one.clustering != other.clustering
        || one.statics != other.statics
        || one.regulars != other.regulars
        || before.masks != after.masks
        || before.indexes != after.indexes
        || ttl(&one.options) != ttl(&other.options)
        || one.options.compact_storage && !other.options.compact_storage
}

fn functions(before: &Functions, after: Option<&Functions>) -> BTreeSet<String> {
    let none = Functions::default();
    let after = after.unwrap_or(&none);
    let mut names = differing(&before.scalars, &after.scalars);
    names.extend(differing(&before.aggregates, &after.aggregates));
    let overloads = |of: &Functions, name: &str| {
        of.scalars_named(name).count() + of.aggregates_named(name).count()
    };
    let added = after.scalars.keys().filter(|own| !before.scalars.contains_key(*own));
    let added =
        added.chain(after.aggregates.keys().filter(|own| !before.aggregates.contains_key(*own)));
    let beside = added.filter(|(name, _)| overloads(after, name) > 1);
    names.extend(beside.map(|(name, _)| name.clone()));
    names
}

/// The names of what was dropped or differs.
fn differing<T: PartialEq>(
    before: &BTreeMap<Signature, T>,
    after: &BTreeMap<Signature, T>,
) -> BTreeSet<String> {
    let differs = |(own, function): &(&Signature, &T)| after.get(*own) != Some(*function);
    before.iter().filter(differs).map(|((name, _), _)| name.clone()).collect()
}
