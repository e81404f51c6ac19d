//! Prepares INSERT, UPDATE and DELETE: names looked up, terms checked, in the order in which Cassandra complains.

use std::collections::HashSet;
use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_model::schema::ColumnKind;

use super::columns::{column, spec_of};
use super::conditions::{self, Conditions};
use super::operation::{self, Operation};
use super::plan::{Attributes, ModifyPlan};
use super::restrictions::Restrictions;
use super::statement_type::StatementType;
use crate::plan::execution::Work;
use crate::plan::json::{self, JsonMarker};
use crate::plan::metadata::Variables;
use crate::plan::names::find_table;
use crate::plan::requires::{self, Requirement};
use crate::plan::term::{Preparation, Term};
use halcyon_schema::catalog::{Catalog, ColumnRef, Table, TableKind, refuse_derived};
use halcyon_schema::refuse_modification;
use halcyon_syntax::ast::{self, Delete, Insert, InsertJson, Modification, RawTerm, Update, Using};
use halcyon_syntax::{Error, Result};

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::InvalidRequest(message.into()))
}

/// The plan of a modification, and what it requires.
pub(super) fn prepare(
    modification: &Modification,
    catalog: &Catalog,
    keyspace: Option<&str>,
    variables: &mut Variables,
    work: &Work<'_>,
) -> Result<(ModifyPlan, Vec<Requirement>)> {
    let (name, using, if_conditions) = match modification {
        Modification::Insert(insert) => (&insert.table, &insert.using, None),
        Modification::InsertJson(insert) => (&insert.table, &insert.using, None),
        Modification::Update(update) => (&update.table, &update.using, Some(&update.conditions)),
        Modification::Delete(delete) => (&delete.table, &delete.using, Some(&delete.conditions)),
    };
    let table = find_table(name, catalog, keyspace)?;
    refuse_modification(&table.schema.keyspace)?;
    let schema = &table.schema;
    let mut to = Preparation::new(catalog, &schema.keyspace, variables, work);
    let attributes = attributes(using, &schema.name, &mut to)?;
    if matches!(if_conditions, Some(ast::Conditions::All(_))) && attributes.timestamp.is_some() {
        return refuse("Cannot provide custom timestamp for conditional updates");
    }
    let conditions = match (modification, if_conditions) {
        (Modification::Insert(Insert { if_not_exists: true, .. }), _) => Conditions::NotExists,
        (Modification::InsertJson(insert), _) if insert.if_not_exists => Conditions::NotExists,
        (_, Some(raw)) => conditions::prepare(raw, table, &mut to)?,
        _ => Conditions::None,
    };
    let timed = attributes.timestamp.is_some();
    let mut plan = match modification {
        Modification::Insert(statement) => insert(statement, table, conditions, &mut to)?,
        Modification::InsertJson(statement) => insert_json(statement, table, conditions, &mut to)?,
        Modification::Update(statement) => update(statement, table, conditions, &mut to)?,
        Modification::Delete(statement) => delete(statement, table, conditions, timed, &mut to)?,
    };
    plan.attributes = attributes;
    check_conditions(plan.has_conditions(), table, plan.attributes.timestamp.is_some())?;
    let requires = requires::of_modification(table, plan.has_conditions(), to.calls);
    Ok((plan, requires))
}

/// The terms of USING.
pub(super) fn attributes(
    using: &Using,
    table: &str,
    to: &mut Preparation<'_>,
) -> Result<Attributes> {
    let mut term = |raw: &Option<RawTerm>, name: &str, cql_type| -> Result<Option<Term>> {
        let spec = ColumnSpec {
            keyspace: to.keyspace.to_owned(),
            table: table.to_owned(),
            name: name.to_owned(),
            cql_type,
        };
        raw.as_ref().map(|raw| Term::prepare(raw, &spec, to)).transpose()
    };
    Ok(Attributes {
        timestamp: term(&using.timestamp, "[timestamp]", CqlType::BigInt)?,
        ttl: term(&using.ttl, "[ttl]", CqlType::Int)?,
    })
}

/// Statements that cannot have conditions.
fn check_conditions(conditional: bool, table: &Table, timed: bool) -> Result<()> {
    if conditional && table.is_counter() {
        return refuse("Conditional updates are not supported on counter tables");
    }
    if conditional && timed {
        return refuse("Cannot provide custom timestamp for conditional updates");
    }
    Ok(())
}

/// `ModificationStatement.validate`, which comes after the checks of a batch as a whole.
pub(super) fn validate(plan: &ModifyPlan) -> Result<()> {
    let counter = plan.table.is_counter();
    if counter && plan.attributes.timestamp.is_some() {
        return refuse("Cannot provide custom timestamp for counter updates");
    }
    if counter && plan.attributes.ttl.is_some() {
        return refuse("Cannot provide custom TTL for counter updates");
    }
    match plan.table.kind {
        TableKind::View => refuse("Cannot directly modify a materialized view"),
        TableKind::Virtual => validate_virtual(plan),
        TableKind::Regular => refuse_derived(&plan.table, "writing to"),
    }
}

/// Whether a virtual table can be modified is known to the server only, so it is checked at execution.
fn validate_virtual(plan: &ModifyPlan) -> Result<()> {
    if plan.attributes.timestamp.is_some() {
        return refuse("Custom timestamp is not supported by virtual tables");
    }
    if plan.attributes.ttl.is_some() {
        return refuse("Expiring columns are not supported by virtual tables");
    }
    if plan.has_conditions() {
        return refuse("Conditional updates are not supported by virtual tables");
    }
    Ok(())
}

/// A column that the statement names.
fn is_key(column: ColumnRef) -> bool {
    column.kind.is_key()
}

/// Operations and conditions that touch nothing but static columns. A DELETE without operations deletes whole rows.
fn only_static(kind: StatementType, operations: &[Operation], conditions: &Conditions) -> bool {
    if kind == StatementType::Delete && operations.is_empty() {
        return false;
    }
    let columns = || operations.iter().map(|op| op.column).chain(conditions.columns());
    columns().next().is_some() && columns().all(|column| column.kind == ColumnKind::Static)
}

/// A plan whose USING is not prepared yet.
fn planned(
    kind: StatementType,
    table: &Arc<Table>,
    operations: Vec<Operation>,
    restrictions: Restrictions,
    conditions: Conditions,
) -> ModifyPlan {
    ModifyPlan {
        table: table.clone(),
        kind,
        attributes: Attributes::default(),
        operations,
        restrictions,
        conditions,
        json: None,
    }
}

fn check_no_counters(table: &Table) -> Result<()> {
    if table.is_counter() {
        return refuse("INSERT statements are not allowed on counter tables, use UPDATE instead");
    }
    Ok(())
}

fn insert(
    insert: &Insert,
    table: &Arc<Table>,
    conditions: Conditions,
    to: &mut Preparation<'_>,
) -> Result<ModifyPlan> {
    check_no_counters(table)?;
    if insert.columns.len() != insert.values.len() {
        return refuse("Unmatched column names/values");
    }
    if insert.columns.is_empty() {
        return refuse("No columns provided to INSERT");
    }
    let mut names = HashSet::new();
    if !insert.columns.iter().all(|name| names.insert(&name.text)) {
        return refuse("The column names contains duplicates");
    }
    let mut operations = Vec::new();
    let mut restrictions = Restrictions::default();
    // Keys become relations, which Cassandra prepares last.
    let mut keys = Vec::new();
    for (name, value) in insert.columns.iter().zip(&insert.values) {
        let column = column(table, name)?;
        let spec = spec_of(table, column);
        if is_key(column) {
            keys.push((column, value, spec));
        } else {
            operations.push(operation::assign(column, value, &spec, to)?);
        }
    }
    for (column, value, spec) in keys {
        restrictions.add_equal(column, Term::prepare(value, &spec, to)?);
    }
    let kind = StatementType::Insert;
    let statics = !restrictions.has_clustering() && only_static(kind, &operations, &conditions);
    restrictions.check(kind, table, statics)?;
    Ok(planned(kind, table, operations, restrictions, conditions))
}

/// Every column has a value: a column that the object does not name is null, or unset with `DEFAULT UNSET`.
fn insert_json(
    insert: &InsertJson,
    table: &Arc<Table>,
    conditions: Conditions,
    to: &mut Preparation<'_>,
) -> Result<ModifyPlan> {
    check_no_counters(table)?;
    let columns = columns_in_order(table);
    let specs: Vec<ColumnSpec> = columns.iter().map(|column| spec_of(table, *column)).collect();
    let (given, json) = match &insert.json {
        RawTerm::Bind { index, name } => {
            let receiver = ColumnSpec::of(&table.schema, "[json]", CqlType::Text);
            to.variables.note(*index, name.as_deref(), &receiver);
            (None, Some(JsonMarker { index: *index, columns: specs.clone() }))
        }
        RawTerm::Literal { text, .. } => (Some(json::values(text, &specs, to.work)?), None),
        _ => return refuse("Got null for INSERT JSON values"),
    };
    let mut given = given.into_iter().flatten();
    let mut operations = Vec::new();
    let mut restrictions = Restrictions::default();
    for (at, (column, spec)) in columns.into_iter().zip(&specs).enumerate() {
        let term = match given.next() {
            Some(given) => Term::given(given, insert.default_unset),
            None => Term::of_json(at, insert.default_unset),
        };
        if is_key(column) {
            restrictions.add_equal(column, term);
        } else {
            operations.push(operation::assign_term(column, term, spec)?);
        }
    }
    restrictions.check(StatementType::Insert, table, false)?;
    let plan = planned(StatementType::Insert, table, operations, restrictions, conditions);
    Ok(ModifyPlan { json, ..plan })
}

/// Partition key, clustering, then all others by name.
fn columns_in_order(table: &Table) -> Vec<ColumnRef> {
    let of_kind = |kind| table.visible_refs(kind);
    let mut others: Vec<ColumnRef> =
        of_kind(ColumnKind::Static).chain(of_kind(ColumnKind::Regular)).collect();
    others.sort_by_key(|column| table.column(*column).map(|def| def.name.clone()));
    of_kind(ColumnKind::PartitionKey).chain(of_kind(ColumnKind::Clustering)).chain(others).collect()
}

fn update(
    update: &Update,
    table: &Arc<Table>,
    conditions: Conditions,
    to: &mut Preparation<'_>,
) -> Result<ModifyPlan> {
    let reads = !matches!(conditions, Conditions::None);
    let mut operations = Vec::with_capacity(update.assignments.len());
    for assignment in &update.assignments {
        let column = column(table, &assignment.column)?;
        if is_key(column) {
            return refuse(format!(
                "PRIMARY KEY part {} found in SET part",
                assignment.column.text
            ));
        }
        let spec = spec_of(table, column);
        operations.push(operation::prepare(&assignment.change, column, &spec, reads, to)?);
    }
    let kind = StatementType::Update;
    let statics = only_static(kind, &operations, &conditions);
    let restrictions = Restrictions::prepare(&update.relations, (kind, table), statics, to)?;
    Ok(planned(kind, table, operations, restrictions, conditions))
}

fn delete(
    delete: &Delete,
    table: &Arc<Table>,
    conditions: Conditions,
    timed: bool,
    to: &mut Preparation<'_>,
) -> Result<ModifyPlan> {
    let mut operations = Vec::with_capacity(delete.targets.len());
    for target in &delete.targets {
        let (ast::CellTarget::Column(name)
        | ast::CellTarget::Element(name, _)
        | ast::CellTarget::Field(name, _)) = target;
        let column = column(table, name)?;
        if is_key(column) {
            return refuse(format!(
                "Invalid identifier {} for deletion (should not be a PRIMARY KEY part)",
                name.text
            ));
        }
        operations.push(operation::deletion(target, column, &spec_of(table, column), to)?);
    }
    let kind = StatementType::Delete;
    let statics = only_static(kind, &operations, &conditions);
    let restrictions = Restrictions::prepare(&delete.relations, (kind, table), statics, to)?;
    let regular = |column: ColumnRef| column.kind == ColumnKind::Regular;
    check_conditions(!matches!(conditions, Conditions::None), table, timed)?;
    if !matches!(conditions, Conditions::None) && !restrictions.is_whole_key(table) {
        // Deleting whole rows counts as touching regular columns.
        if operations.is_empty() || operations.iter().any(|op| regular(op.column)) {
            return refuse(
                "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to delete non static columns",
            );
        }
        if conditions.columns().into_iter().any(regular) {
            return refuse(
                "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to use IF condition on non static columns",
            );
        }
    }
    Ok(planned(kind, table, operations, restrictions, conditions))
}
