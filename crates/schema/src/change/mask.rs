//! `MASKED WITH` of CREATE TABLE and ALTER TABLE, `DROP MASKED`.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_syntax::ast::{ColumnText, MaskText, Name};
use halcyon_syntax::{Error, Result};

use super::context::{Context, invalid};
use crate::catalog::{Keyspace, Table};
use crate::mask::{ColumnMask, MaskedColumn};

/// Refuses new masks where they are not enabled. `ALTER TABLE … ADD` does not ask, in Cassandra neither.
pub(super) fn check_enabled(context: &Context<'_>) -> Result<()> {
    match context.masks.are_enabled {
        true => Ok(()),
        false => Err(Error::invalid_request(
            "Cannot mask columns because dynamic data masking is not enabled. You can enable it with the dynamic_data_masking_enabled property on cassandra.yaml",
        )),
    }
}

fn find(
    (keyspace, table): (&str, &str),
    name: &str,
    cql_type: &CqlType,
    mask: &MaskText,
    context: &Context<'_>,
) -> Result<ColumnMask> {
    let cql_type = cql_type.base();
    (context.find_mask)(MaskedColumn { keyspace, table, name, cql_type }, mask)
}

/// The mask of a column that a table (of a keyspace) gets.
pub(super) fn of_column(
    table: (&str, &str),
    column: &ColumnText,
    cql_type: &CqlType,
    context: &Context<'_>,
) -> Result<Option<ColumnMask>> {
    let find = |mask| find(table, &column.name.text, cql_type, mask, context);
    column.mask.as_ref().map(find).transpose()
}

/// `ALTER c MASKED WITH …`, and without a mask `ALTER c DROP MASKED`.
pub(super) fn alter(
    table: &mut Table,
    column: &Name,
    if_exists: bool,
    mask: Option<&MaskText>,
    context: &Context<'_>,
) -> Result<()> {
    let name = &column.text;
    let Some(known) = table.find_column(name).and_then(|at| table.column(at)) else {
        return match if_exists {
            true => Ok(()),
            false => Err(invalid(format!(
                "Column with name '{name}' doesn't exist on table '{}'",
                table.schema.name
            ))),
        };
    };
    let of = (table.schema.keyspace.as_str(), table.schema.name.as_str());
    let found = |mask| find(of, name, &known.cql_type, mask, context);
    match mask.map(found).transpose()? {
        None => table.masks.remove(name),
        Some(mask) => table.masks.insert(name.clone(), mask),
    };
    Ok(())
}

/// A column has the same mask in its table and in all views on it.
pub(super) fn share(keyspace: &mut Keyspace, base: &Table) {
    for name in &base.views {
        if let Some(view) = keyspace.tables.get(name) {
            let masks = in_view(base, view);
            if masks != view.masks {
                let changed = Table { masks, ..Table::clone(view) };
                keyspace.tables.insert(name.clone(), Arc::new(changed));
            }
        }
    }
}

/// The masks of a view's columns.
pub(super) fn in_view(base: &Table, view: &Table) -> BTreeMap<String, ColumnMask> {
    let has = |name: &str| view.all_columns().any(|column| column.name == name);
    let masks = base.masks.iter().filter(|(name, _)| has(name));
    masks.map(|(name, mask)| (name.clone(), mask.clone())).collect()
}
