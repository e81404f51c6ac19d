//! Masks of columns (`MASKED WITH`): the function that hides a column's values from those who may not see them.
//!
//! Without authorization every client has the permission UNMASK, in Cassandra as here.

use std::fmt;

use halcyon_model::CqlType;
use halcyon_model::value::{from_string, to_cql_literal};

/// What a node's settings say of masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MaskSettings {
    /// `dynamic_data_masking_enabled`
    pub are_enabled: bool,
}

/// A function whose first argument is the value of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMask {
    /// Of the function; `system` for native ones.
    pub keyspace: String,
    pub function: String,
    /// The arguments that follow the value, as `system_schema.column_masks` has them: `AbstractType.getString`; `None` is null.
    pub arguments: Vec<(CqlType, Option<String>)>,
}

/// A column that gets a mask.
#[derive(Debug, Clone, Copy)]
pub struct MaskedColumn<'a> {
    pub keyspace: &'a str,
    pub table: &'a str,
    pub name: &'a str,
    pub cql_type: &'a CqlType,
}

impl fmt::Display for ColumnMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let literal = |(of, text): &(CqlType, Option<String>)| match text {
            // A text that is not a value of the type was stored by another program.
            Some(text) => match from_string(of, text) {
                Ok(value) => to_cql_literal(of, &value),
                Err(_) => to_cql_literal(&CqlType::Text, text.as_bytes()),
            },
            None => "null".to_owned(),
        };
        let arguments: Vec<String> = self.arguments.iter().map(literal).collect();
        write!(f, "{}.{}({})", self.keyspace, self.function, arguments.join(", "))
    }
}
