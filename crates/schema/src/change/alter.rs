//! ALTER TABLE.

use std::sync::Arc;

use halcyon_guardrails::{Flag, Threshold};
use halcyon_model::CqlType;
use halcyon_model::request::SchemaAction;
use halcyon_model::schema::{ColumnDef, ColumnKind, DroppedColumn, TableSchema};
use halcyon_model::types::quote_identifier_if_needed;

use super::column_type::{expand_user_types, nests_cells, resolve};
use super::context::{
    Change, Context, forbidden, invalid, keyspace_name, unchanged, with_keyspace,
};
use super::guard::{check_compression, check_count, violated};
use super::index::check_no_dependents;
use super::table::{counter_ttl, event, useless_static};
use super::{mask, sai, table_options, view};
use crate::catalog::{Catalog, Keyspace, Table, TableKind, refuse_derived};
use crate::checks;
use crate::mask::ColumnMask;
use halcyon_syntax::ast::{ColumnText, Name, QualifiedName, TableChange};
use halcyon_syntax::{Error, Result};

pub(super) fn alter(
    catalog: &Catalog,
    name: &QualifiedName,
    if_exists: bool,
    change: &TableChange,
    context: &Context<'_>,
) -> Result<Change> {
    let keyspace = keyspace_name(name, context)?;
    let full = format!("{keyspace}.{}", name.name);
    forbidden(catalog, keyspace, "ALTER", &format!("table {full}"))?;
    if matches!(change, TableChange::Mask { .. }) {
        mask::check_enabled(context)?;
    }
    let found = catalog.keyspace(keyspace).and_then(|of| Some((of, of.tables.get(&name.name)?)));
    let Some((known, table)) = found else {
        if let TableChange::Options(options) = change {
            table_options::check_values(options)?;
        }
        if if_exists {
            return Ok(unchanged(catalog));
        }
        return Err(invalid(format!("Table '{full}' doesn't exist")));
    };
    if table.kind == TableKind::View {
        return Err(Error::invalid_request(
            "Cannot use ALTER TABLE on a materialized view; use ALTER MATERIALIZED VIEW instead",
        ));
    }
    if !matches!(change, TableChange::Options(_)) {
        refuse_derived(table, "changing columns of")?;
    }
    let mut schema = table.schema.clone();
    let masks = apply(&mut schema, table, known, change, context)?;
    check_counter_kind(&table.schema, &schema)?;
    if !table.views.is_empty() && schema.options.gc_grace_seconds() == 0 {
        return Err(Error::invalid_request(
            "Cannot alter gc_grace_seconds of the base table of a materialized view to 0, since this value is used to TTL undelivered \
             updates. Setting gc_grace_seconds too low might cause undelivered updates to expire before being replayed.",
        ));
    }
    if let TableChange::Options(_) = change {
        check_compression(context.guard, &schema.options)?;
    }
    let mut changed = Keyspace::clone(known);
    view::follow(&mut changed, table, &schema)?;
    let mut altered = table.altered(schema);
    altered.masks.extend(masks);
    match change {
        TableChange::Mask { if_exists, column, mask } => {
            mask::alter(&mut altered, column, *if_exists, Some(mask), context)?;
        }
        TableChange::Unmask { if_exists, column } => {
            mask::alter(&mut altered, column, *if_exists, None, context)?;
        }
        _ => {}
    }
    mask::share(&mut changed, &altered);
    // Cassandra validates a table that gets columns.
    let warnings = match change {
        TableChange::Add { .. } => sai::warnings(&altered).collect(),
        _ => Vec::new(),
    };
    changed.tables.insert(name.name.clone(), Arc::new(altered));
    let event = event(SchemaAction::Updated, keyspace, &name.name);
    Ok(Change { warnings, ..with_keyspace(catalog, changed, event) })
}

/// When columns are dropped (µs) by a change made at `micros`. `dropped_columns` stores whole milliseconds, as in Cassandra. There a
/// restart rounds the time down, and what was written to the column in that millisecond is back once it is added again; rounded
/// up, the stored time hides the same cells as the one in memory. Nothing may be written to a new column of the name until then.
pub fn drop_time(micros: i64) -> i64 {
    micros.saturating_add(999).div_euclid(1000).saturating_mul(1000)
}

/// The masks of columns that are added.
type Masks = Vec<(String, ColumnMask)>;

fn apply(
    schema: &mut TableSchema,
    table: &Table,
    keyspace: &Keyspace,
    change: &TableChange,
    context: &Context<'_>,
) -> Result<Masks> {
    let mut masks = Masks::new();
    if let TableChange::Add { .. } | TableChange::Drop { .. } | TableChange::Rename { .. } = change
    {
        let feature = "ALTER TABLE changing columns";
        context.guard.allow_named(Flag::AlterTable, feature).map_err(violated)?;
    }
    match change {
        TableChange::Add { if_not_exists, columns } => {
            for column in columns {
                let mask = add(schema, keyspace, column, *if_not_exists, context)?;
                masks.extend(mask.map(|mask| (column.name.text.clone(), mask)));
            }
            let count = all_columns(schema).count();
            check_count(context.guard, Threshold::ColumnsPerTable, count, &schema.name)
        }
        TableChange::Drop { if_exists, columns, timestamp } => {
            let at = timestamp.unwrap_or_else(|| drop_time(context.at.micros));
            columns.iter().try_for_each(|column| remove(schema, table, column, *if_exists, at))
        }
        TableChange::Rename { renames, .. } => {
            renames.iter().try_for_each(|(from, to)| rename(schema, table, from, to))
        }
        TableChange::Retype { .. } => {
            Err(Error::invalid_request("Altering column types is no longer supported"))
        }
        TableChange::Options(options) => {
            table_options::alter(&mut schema.options, options)?;
            if checks::is_counter(schema) && schema.options.default_time_to_live > 0 {
                return Err(counter_ttl());
            }
            Ok(())
        }
        TableChange::DropCompactStorage => drop_compact_storage(schema, context),
        // A client's text has no CHECK.
        TableChange::Mask { .. } | TableChange::Unmask { .. } | TableChange::Constraint => Ok(()),
    }?;
    Ok(masks)
}

/// What CQL did not show of the table is shown then: it is as it is stored.
fn drop_compact_storage(schema: &mut TableSchema, context: &Context<'_>) -> Result<()> {
    if !context.drops_compact_storage {
        return Err(Error::invalid_request(
            "DROP COMPACT STORAGE is disabled. Enable in cassandra.yaml to use.",
        ));
    }
    if !schema.options.compact_storage {
        return Err(Error::invalid_request(
            "Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE",
        ));
    }
    schema.options.compact_storage = false;
    Ok(())
}

/// A counter table stays one, and no other table becomes one.
fn check_counter_kind(before: &TableSchema, after: &TableSchema) -> Result<()> {
    if checks::is_counter(before) {
        return checks::counters(after);
    }
    match after.regulars.iter().chain(&after.statics).find(|c| c.cql_type.is_counter()) {
        None => Ok(()),
        Some(column) => Err(Error::Configuration(format!(
            "{}.{}: Cannot have a counter column (\"{}\") in a non counter table",
            after.keyspace, after.name, column.name
        ))),
    }
}

fn all_columns(schema: &TableSchema) -> impl Iterator<Item = &ColumnDef> {
    schema
        .partition_key
        .iter()
        .chain(&schema.clustering)
        .chain(&schema.statics)
        .chain(&schema.regulars)
}

fn add(
    schema: &mut TableSchema,
    keyspace: &Keyspace,
    column: &ColumnText,
    if_not_exists: bool,
    context: &Context<'_>,
) -> Result<Option<ColumnMask>> {
    let name = &column.name.text;
    let cql_type = resolve(&column.column_type, keyspace)?;
    let mask = mask::of_column((&schema.keyspace, &schema.name), column, &cql_type, context)?;
    if all_columns(schema).any(|known| known.name == *name) {
        if if_not_exists {
            return Ok(None);
        }
        return Err(invalid(format!("Column with name '{name}' already exists")));
    }
    if schema.options.compact_storage {
        return Err(Error::invalid_request("Cannot add new column to a COMPACT STORAGE table"));
    }
    if column.is_static && schema.clustering.is_empty() {
        return Err(useless_static());
    }
    if nests_cells(&cql_type) {
        return Err(invalid(format!(
            "Non-frozen UDTs with nested non-frozen collections are not supported for column {name}"
        )));
    }
    if let Some(dropped) = schema.dropped.iter().find(|known| known.name == *name) {
        check_again(dropped, &cql_type, column.is_static)?;
        if checks::is_counter(schema) {
            let what = format!("Cannot re-add previously dropped counter column {name}");
            return Err(invalid(what));
        }
    }
    let def = ColumnDef { name: name.clone(), cql_type };
    let columns = if column.is_static { &mut schema.statics } else { &mut schema.regulars };
    columns.push(def);
    columns.sort_by(ColumnDef::compare);
    Ok(mask)
}

/// A column that was there before may come back if its old cells can still be read.
fn check_again(dropped: &DroppedColumn, cql_type: &CqlType, is_static: bool) -> Result<()> {
    let name = &dropped.name;
    if !is_compatible(cql_type, &dropped.cql_type) {
        return Err(invalid(format!(
            "Cannot add a column '{name}' of type {}, incompatible with previously dropped column '{name}' of type {}",
            cql_type.cql_name(),
            dropped.cql_type.cql_name()
        )));
    }
    let kind = |is_static: bool| if is_static { "STATIC" } else { "REGULAR" };
    let was_static = dropped.kind == ColumnKind::Static;
    if was_static != is_static {
        return Err(invalid(format!(
            "Cannot re-add previously dropped column '{name}' of kind {}, incompatible with previous kind {}",
            kind(is_static),
            kind(was_static)
        )));
    }
    Ok(())
}

/// `AbstractType.isSerializationCompatibleWith`
fn is_compatible(new: &CqlType, old: &CqlType) -> bool {
    if new.is_multi_cell() != old.is_multi_cell() || new.fixed_len() != old.fixed_len() {
        return false;
    }
    match (new, old) {
        (CqlType::Blob, _) => {
            !matches!(old.thawed(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
        }
        (CqlType::Text, CqlType::Ascii)
        | (CqlType::Uuid, CqlType::TimeUuid)
        | (CqlType::BigInt, CqlType::Timestamp)
        | (CqlType::Varint, CqlType::Int | CqlType::BigInt) => true,
        (CqlType::List(a), CqlType::List(b)) | (CqlType::Set(a), CqlType::Set(b)) => {
            is_compatible(a, b)
        }
        (CqlType::Map(a, x), CqlType::Map(b, y)) => a == b && is_compatible(x, y),
        _ => expand_user_types(new) == expand_user_types(old),
    }
}

fn remove(
    schema: &mut TableSchema,
    table: &Table,
    name: &Name,
    if_exists: bool,
    at: i64,
) -> Result<()> {
    let is = |column: &&ColumnDef| column.name == name.text;
    if schema.partition_key.iter().chain(&schema.clustering).any(|c| is(&c)) {
        return Err(invalid(format!("Cannot drop PRIMARY KEY column {}", name.text)));
    }
    let found = [
        (ColumnKind::Static, schema.statics.iter().position(|c| is(&c))),
        (ColumnKind::Regular, schema.regulars.iter().position(|c| is(&c))),
    ];
    let Some((kind, index)) = found.into_iter().find_map(|(kind, at)| Some((kind, at?))) else {
        if if_exists {
            return Ok(());
        }
        return Err(invalid(format!(
            "Column {} was not found in table '{}.{}'",
            name.text, schema.keyspace, schema.name
        )));
    };
    let columns = match kind {
        ColumnKind::Static => &mut schema.statics,
        _ => &mut schema.regulars,
    };
    let column = columns.remove(index);
    if let CqlType::Udt(udt) = &column.cql_type {
        return Err(invalid(format!(
            "Cannot drop non-frozen column {} of user type {}",
            column.name,
            String::from_utf8_lossy(&udt.name)
        )));
    }
    if schema.options.compact_storage && kind == ColumnKind::Regular {
        return Err(invalid(format!(
            "Cannot drop column {}: a table with COMPACT STORAGE and clustering columns must keep one",
            column.name
        )));
    }
    check_no_dependents(table, &column.name, "Cannot drop")?;
    if !table.views.is_empty() {
        return Err(invalid(format!(
            "Cannot drop column {} on base table {} with materialized views",
            column.name, table.schema.name
        )));
    }
    let cql_type = expand_user_types(&column.cql_type);
    schema.dropped.retain(|known| known.name != column.name);
    let dropped = DroppedColumn { name: column.name, cql_type, kind, dropped_time: at };
    let place = schema.dropped.partition_point(|known| known.name < dropped.name);
    schema.dropped.insert(place, dropped);
    Ok(())
}

fn rename(schema: &mut TableSchema, table: &Table, from: &Name, to: &Name) -> Result<()> {
    let full = table.full_name();
    let exists = |schema: &TableSchema, name: &str| all_columns(schema).any(|c| c.name == name);
    let is_hidden =
        |from: &Name| exists(schema, &from.text) && table.find_column(&from.text).is_none();
    if !exists(schema, &from.text) || schema.options.compact_storage && is_hidden(from) {
        let name = quote_identifier_if_needed(&from.text);
        return Err(invalid(format!("Undefined column name {name} in table {full}")));
    }
    let in_key = |column: &&mut ColumnDef| column.name == from.text;
    let is_key = schema.partition_key.iter().chain(&schema.clustering).any(|c| c.name == from.text);
    if !is_key {
        return Err(invalid(format!("Cannot rename non PRIMARY KEY column {}", from.text)));
    }
    if exists(schema, &to.text) {
        return Err(invalid(format!(
            "Cannot rename column {} to {} in table '{full}'; another column with that name already exists",
            from.text, to.text
        )));
    }
    check_no_dependents(table, &from.text, "Can't rename")?;
    if let Some(column) = schema.partition_key.iter_mut().chain(&mut schema.clustering).find(in_key)
    {
        column.name = to.text.clone();
    }
    Ok(())
}
