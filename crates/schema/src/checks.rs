//! What a statement and a stored row must satisfy alike: rows come from disk, where anything can have written them.
//!
//! Names of keyspaces, tables, views and indexes become names of files, with what the database puts around them:
//!
//! ```text
//!  <keyspace>/<table>-<32 hex digits>/                             48, 222
//!  oa-<28 characters>-big-Halcyon+<index>.db.<run>.tmp             36 + 11 + 5 beside the digits of the run
//!  oa-<28 characters>-big-SAI+aa+<index>+CompressedVectors.db      36 + 7 + 21, of Cassandra
//! ```

use halcyon_model::CqlType;
use halcyon_model::schema::{ColumnDef, TableSchema};

use crate::{Error, Result};

/// Of a keyspace's name (`SchemaConstants.NAME_LENGTH`).
const LONGEST_KEYSPACE: usize = 48;
/// Of a table's or view's name: its folder's name has 33 characters more.
const LONGEST_TABLE: usize = 222;
/// Of an index's name: the longest name of a file with it has 255 characters, in Cassandra too.
const LONGEST_INDEX: usize = 191;
/// Characters that no name of a function has, because names of resources are paths.
const NOT_IN_FUNCTIONS: [char; 3] = ['/', '[', ']'];

fn invalid(message: String) -> Error {
    Error::InvalidRequest(message)
}

pub(crate) fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// `KeyspaceMetadata.validateKeyspaceName`
pub(crate) fn keyspace_name(name: &str) -> Result<()> {
    if !is_word(name) {
        return Err(invalid(format!(
            "Keyspace name must not be empty and must contain alphanumeric or underscore characters only (got \"{name}\")"
        )));
    }
    if name.len() > LONGEST_KEYSPACE {
        return Err(invalid(format!(
            "Keyspace name must not be more than {LONGEST_KEYSPACE} characters long (got {} characters for \"{name}\")",
            name.len()
        )));
    }
    Ok(())
}

/// The name of a table or view (`TableMetadata.validateTableName`).
pub(crate) fn table_name(keyspace: &str, name: &str) -> Result<()> {
    if !is_word(name) {
        return Err(Error::Configuration(format!(
            "{keyspace}.{name}: Table name must not be empty or not contain non-alphanumeric-underscore characters (got \"{name}\")"
        )));
    }
    if name.len() > LONGEST_TABLE {
        return Err(Error::Configuration(format!(
            "{keyspace}.{name}: Table name must not be more than {LONGEST_TABLE} characters long (got {} characters for \"{name}\")",
            name.len()
        )));
    }
    Ok(())
}

/// `IndexMetadata.validate`
pub(crate) fn index_name(name: &str) -> Result<()> {
    match is_word(name) {
        true => Ok(()),
        false => Err(Error::Configuration(format!("Illegal index name {name}"))),
    }
}

/// Cassandra accepts longer ones, and then fails to write their files.
pub(crate) fn index_length(name: &str) -> Result<()> {
    match name.len() {
        ..=LONGEST_INDEX => Ok(()),
        length => Err(Error::Configuration(format!(
            "Index name must not be more than {LONGEST_INDEX} characters long (got {length} characters for \"{name}\"): it is part of \
             names of files; state a shorter one, CREATE INDEX <name> ON ..."
        ))),
    }
}

pub(crate) fn is_function_name(name: &str) -> bool {
    !name.contains(NOT_IN_FUNCTIONS)
}

pub(crate) fn key_column(column: &ColumnDef) -> Result<()> {
    let name = &column.name;
    let what = match column.cql_type.base() {
        CqlType::Udt(udt) => format!(
            "Invalid non-frozen user-defined type \"{}.{}\" for PRIMARY KEY column '{name}'",
            udt.keyspace,
            String::from_utf8_lossy(&udt.name)
        ),
        collection if collection.is_multi_cell() => format!(
            "Invalid non-frozen collection type {} for PRIMARY KEY column '{name}'",
            collection.cql_name()
        ),
        CqlType::Counter => {
            format!("counter type is not supported for PRIMARY KEY column '{name}'")
        }
        other if other.references_duration() => {
            format!("duration type is not supported for PRIMARY KEY column '{name}'")
        }
        _ => return Ok(()),
    };
    Err(invalid(what))
}

pub(crate) fn is_counter(schema: &TableSchema) -> bool {
    schema.regulars.iter().chain(&schema.statics).any(|column| column.cql_type.is_counter())
}

/// Counters stand alone, beside the key (`TableMetadata.validate`).
pub(crate) fn counters(schema: &TableSchema) -> Result<()> {
    if !is_counter(schema) {
        return Ok(());
    }
    match schema.regulars.iter().chain(&schema.statics).find(|c| !c.cql_type.is_counter()) {
        None => Ok(()),
        Some(column) => Err(Error::Configuration(format!(
            "{}.{}: Cannot have a non counter column (\"{}\") in a counter table",
            schema.keyspace, schema.name, column.name
        ))),
    }
}
