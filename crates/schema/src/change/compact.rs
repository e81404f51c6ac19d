//! `COMPACT STORAGE`: tables as Thrift knew them.
//!
//! | clustering columns in CQL | kind | what CREATE adds, and CQL does not show |
//! |---|---|---|
//! | none | static: every column is a static one | `column1` (text) and `value` (blob or counter) |
//! | some, with a column beside the key | dense: rows have that one value | nothing |
//! | some, without one | dense | `value`, of the type of nothing |

use halcyon_model::CqlType;
use halcyon_model::schema::{ColumnDef, TableSchema};
use halcyon_syntax::Result;

use super::context::invalid;

/// Refuses what Thrift did not have. `schema` has its keys yet, `others` are the columns beside them, each with whether it is static; by
/// name.
pub(super) fn check<'a>(
    schema: &TableSchema,
    others: impl Iterator<Item = &'a (ColumnDef, bool)> + Clone,
) -> Result<()> {
    let refused = |what: &str| Err(invalid(what.to_owned()));
    if others.clone().any(|(column, _)| column.cql_type.is_multi_cell()) {
        return refused("Non-frozen collections and UDTs are not supported with COMPACT STORAGE");
    }
    if others.clone().any(|(_, is_static)| *is_static) {
        return refused("Static columns are not supported in COMPACT STORAGE tables");
    }
    let names: Vec<&str> = others.map(|(column, _)| column.name.as_str()).collect();
    match (schema.clustering.is_empty(), names.len()) {
        (true, 0) => refused("No definition found that is not part of the PRIMARY KEY"),
        (false, 2..) => Err(invalid(format!(
            "COMPACT STORAGE with composite PRIMARY KEY allows no more than one column not part of the PRIMARY KEY (got: {})",
            names.join(", ")
        ))),
        _ => Ok(()),
    }
}

/// Adds what CQL does not show.
pub(super) fn complete(schema: &mut TableSchema, is_counter: bool) {
    if schema.clustering.is_empty() {
        let value = if is_counter { CqlType::Counter } else { CqlType::Blob };
        schema.statics = std::mem::take(&mut schema.regulars);
        let clustering = unused(schema, (1..).map(|n| format!("column{n}")));
        schema.clustering.push(ColumnDef { name: clustering, cql_type: CqlType::Text });
        add_value(schema, value);
    } else if schema.regulars.is_empty() {
        add_value(schema, CqlType::Empty);
    }
}

fn add_value(schema: &mut TableSchema, cql_type: CqlType) {
    let more = (1..).map(|n| format!("value{n}"));
    let name = unused(schema, std::iter::once("value".to_owned()).chain(more));
    schema.regulars.push(ColumnDef { name, cql_type });
}

/// The first of these names that no column has.
fn unused(schema: &TableSchema, mut names: impl Iterator<Item = String>) -> String {
    let columns = || {
        let keys = schema.partition_key.iter().chain(&schema.clustering);
        keys.chain(&schema.statics).chain(&schema.regulars)
    };
    names.find(|name| !columns().any(|column| column.name == *name)).unwrap_or_default()
}
