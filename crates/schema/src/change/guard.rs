//! The guardrails of schema statements: what Cassandra asks before a statement is executed (`CQLStatement.validate`). What it asks of the
//! changed schema is asked where that is made.

use std::sync::Arc;

use halcyon_guardrails::{Flag, Guard, Threshold, Values, Violation};
use halcyon_model::options::{Strategy, TableOptions};
use halcyon_syntax::ast::{CreateTable, StatementKind, TableChange, TableOption, TypeText};
use halcyon_syntax::lexer::{TokenKind, tokens};
use halcyon_syntax::{Error, Result};

use super::context::{Context, keyspace_name};
use super::table_options;
use crate::catalog::{Catalog, Keyspace};
use crate::system;

/// A refusal as an error of a statement.
pub fn violated(violation: Violation) -> Error {
    Error::InvalidRequest(violation.0)
}

/// Asks what a statement says of itself. Takes options out of it that are ignored.
pub fn validate(
    catalog: &Catalog,
    statement: &mut StatementKind,
    context: &Context<'_>,
) -> Result<()> {
    let guard = context.guard;
    if !guard.is_on() {
        return Ok(());
    }
    match statement {
        StatementKind::CreateKeyspace { name, .. } => {
            let count = user_keyspaces(catalog).count() + 1;
            check_count(guard, Threshold::Keyspaces, count, &name.text)
        }
        StatementKind::CreateTable(create) => create_table(catalog, create, context),
        StatementKind::AlterTable { name, change, .. } => match change {
            TableChange::Options(options) => {
                check_properties(guard, options)?;
                check_time_to_live(options, keyspace_name(name, context)?, context)
            }
            TableChange::Add { columns, .. } => columns.iter().try_for_each(|column| {
                check_vector(guard, &column.column_type, "Column", &column.name.text)
            }),
            _ => Ok(()),
        },
        StatementKind::CreateType(create) => {
            check_count(guard, Threshold::FieldsPerUdt, create.fields.len(), &create.name.name)?;
            let mut fields = create.fields.iter();
            fields.try_for_each(|(field, text)| check_vector(guard, text, "Field", &field.text))
        }
        _ => Ok(()),
    }
}

fn create_table(catalog: &Catalog, create: &mut CreateTable, context: &Context<'_>) -> Result<()> {
    let (guard, name) = (context.guard, create.name.name.clone());
    check_properties(guard, &mut create.properties.options)?;
    check_count(guard, Threshold::ColumnsPerTable, create.columns.len(), &name)?;
    let tables = user_keyspaces(catalog).map(|keyspace| keyspace.tables.len()).sum::<usize>() + 1;
    check_count(guard, Threshold::Tables, tables, &name)?;
    if create.properties.compact_storage {
        guard.allow(Flag::CompactTables).map_err(violated)?;
    }
    let keyspace = keyspace_name(&create.name, context)?;
    check_time_to_live(&create.properties.options, keyspace, context)?;
    let mut columns = create.columns.iter();
    columns.try_for_each(|column| {
        check_vector(guard, &column.column_type, "Column", &column.name.text)
    })
}

fn user_keyspaces(catalog: &Catalog) -> impl Iterator<Item = &Arc<Keyspace>> {
    catalog.keyspaces.values().filter(|keyspace| {
        let name = &keyspace.name;
        !keyspace.is_virtual && !system::is_local(name) && !system::is_replicated_system(name)
    })
}

pub(super) fn check_count(
    guard: &Guard,
    threshold: Threshold,
    count: usize,
    what: &str,
) -> Result<()> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    guard.check(threshold, count, what).map_err(violated)
}

/// Refuses options, warns of them, and removes those that are ignored.
pub(super) fn check_properties(guard: &Guard, options: &mut Vec<TableOption>) -> Result<()> {
    let mut names: Vec<&str> = options.iter().map(|option| option.name.text.as_str()).collect();
    names.sort_unstable();
    let ignored = guard.check_values(Values::TableProperties, &names).map_err(violated)?;
    let ignored: Vec<String> = ignored.into_iter().map(str::to_owned).collect();
    options.retain(|option| !ignored.contains(&option.name.text));
    Ok(())
}

/// Asks whether rows of a time window may have no time to live (`AlterSchemaStatement.validateDefaultTimeToLive`). What a statement
/// does not state is the default, also of ALTER.
fn check_time_to_live(
    options: &[TableOption],
    keyspace: &str,
    context: &Context<'_>,
) -> Result<()> {
    if system::is_local(keyspace) || system::is_replicated_system(keyspace) {
        return Ok(());
    }
    // Errors in the options are reported later.
    let Ok(stated) = table_options::for_new_table(options, context.default_compaction) else {
        return Ok(());
    };
    let is_windowed = matches!(stated.compaction().strategy, Strategy::TimeWindow(_));
    match is_windowed && stated.default_time_to_live == 0 {
        true => context.guard.allow(Flag::ZeroTtlOnTwcs).map_err(violated),
        false => Ok(()),
    }
}

/// Asks for a column or field that is a vector.
pub(super) fn check_vector(guard: &Guard, text: &TypeText, what: &str, name: &str) -> Result<()> {
    let Some(dimensions) = dimensions(text) else { return Ok(()) };
    let what = format!("{what} {name}");
    guard.allow_named(Flag::VectorType, &what).map_err(violated)?;
    guard.check(Threshold::VectorDimensions, dimensions, &what).map_err(violated)
}

/// Of `vector<element, dimensions>`, frozen or not; `None` for another type.
fn dimensions(text: &TypeText) -> Option<i64> {
    let tokens = tokens(&text.text);
    let mut words =
        tokens.iter().skip_while(|token| token.is_word("frozen") || token.is_symbol("<"));
    if !words.next()?.is_word("vector") {
        return None;
    }
    let numbers = tokens.iter().rev().filter(|token| token.kind == TokenKind::Integer);
    numbers.map(|token| token.text.parse().ok()).next()?
}

/// Refuses a table whose files are not compressed.
pub(super) fn check_compression(guard: &Guard, options: &TableOptions) -> Result<()> {
    match options.compression() {
        Some(_) => Ok(()),
        None => guard.allow(Flag::UncompressedTables).map_err(violated),
    }
}
