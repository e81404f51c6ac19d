//! The vocabulary of a request: the words that the protocol, the planner and the executor share, so that none of them translates
//! for another.
//!
//! A bound value borrows from the message that carried it, all the way to the mutation or the comparison that uses it.

use std::fmt;

use crate::CqlType;
use crate::schema::TableSchema;

/// A value that a client sent for a bind marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    /// Protocol v4 and later: leave the column as it is.
    Unset,
    Bytes(&'a [u8]),
}

/// A consistency level, in the order of the protocol's codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u16)]
pub enum Consistency {
    Any,
    #[default]
    One,
    Two,
    Three,
    Quorum,
    All,
    LocalQuorum,
    EachQuorum,
    Serial,
    LocalSerial,
    LocalOne,
    NodeLocal,
}

impl Consistency {
    /// In the order of their codes.
    pub const ALL: [Consistency; 12] = [
        Consistency::Any,
        Consistency::One,
        Consistency::Two,
        Consistency::Three,
        Consistency::Quorum,
        Consistency::All,
        Consistency::LocalQuorum,
        Consistency::EachQuorum,
        Consistency::Serial,
        Consistency::LocalSerial,
        Consistency::LocalOne,
        Consistency::NodeLocal,
    ];

    pub fn from_code(code: u16) -> Option<Consistency> {
        Consistency::ALL.get(usize::from(code)).copied()
    }

    pub fn code(self) -> u16 {
        self as u16
    }

    pub fn name(self) -> &'static str {
        match self {
            Consistency::Any => "ANY",
            Consistency::One => "ONE",
            Consistency::Two => "TWO",
            Consistency::Three => "THREE",
            Consistency::Quorum => "QUORUM",
            Consistency::All => "ALL",
            Consistency::LocalQuorum => "LOCAL_QUORUM",
            Consistency::EachQuorum => "EACH_QUORUM",
            Consistency::Serial => "SERIAL",
            Consistency::LocalSerial => "LOCAL_SERIAL",
            Consistency::LocalOne => "LOCAL_ONE",
            Consistency::NodeLocal => "NODE_LOCAL",
        }
    }

    pub fn is_serial(self) -> bool {
        matches!(self, Consistency::Serial | Consistency::LocalSerial)
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchKind {
    Logged,
    Unlogged,
    Counter,
}

/// A bind marker or a result column as metadata describes it (`ColumnSpecification`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSpec {
    pub keyspace: String,
    pub table: String,
    pub name: String,
    pub cql_type: CqlType,
}

impl ColumnSpec {
    pub fn of(table: &TableSchema, name: impl Into<String>, cql_type: CqlType) -> ColumnSpec {
        let (keyspace, table) = (table.keyspace.clone(), table.name.clone());
        ColumnSpec { keyspace, table, name: name.into(), cql_type }
    }

    /// What receives a part of its value: `value(column)`.
    pub fn part(&self, what: &str, cql_type: &CqlType) -> ColumnSpec {
        ColumnSpec {
            name: format!("{what}({})", self.name),
            cql_type: cql_type.clone().freeze(),
            ..self.clone()
        }
    }
}

impl Default for ColumnSpec {
    fn default() -> ColumnSpec {
        ColumnSpec {
            keyspace: String::new(),
            table: String::new(),
            name: String::new(),
            cql_type: CqlType::Empty,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaAction {
    Created,
    Updated,
    Dropped,
}

impl SchemaAction {
    pub fn name(self) -> &'static str {
        match self {
            SchemaAction::Created => "CREATED",
            SchemaAction::Updated => "UPDATED",
            SchemaAction::Dropped => "DROPPED",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaTarget {
    Keyspace,
    Table,
    Type,
    Function,
    Aggregate,
}

impl SchemaTarget {
    pub fn name(self) -> &'static str {
        match self {
            SchemaTarget::Keyspace => "KEYSPACE",
            SchemaTarget::Table => "TABLE",
            SchemaTarget::Type => "TYPE",
            SchemaTarget::Function => "FUNCTION",
            SchemaTarget::Aggregate => "AGGREGATE",
        }
    }

    /// The arguments distinguish functions and aggregates of one name.
    pub fn has_arguments(self) -> bool {
        matches!(self, SchemaTarget::Function | SchemaTarget::Aggregate)
    }
}

/// What a schema statement changed: the answer to it, and the event for clients that registered for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaChange {
    pub action: SchemaAction,
    pub target: SchemaTarget,
    pub keyspace: String,
    /// Empty for a keyspace.
    pub name: String,
    /// Types of a function's or aggregate's arguments.
    pub arguments: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the list of levels is in the order of their codes.
    #[test]
    fn codes() {
        for (code, level) in (0..).zip(Consistency::ALL) {
            assert_eq!((level.code(), Consistency::from_code(code)), (code, Some(level)));
        }
        assert_eq!(Consistency::from_code(12), None);
    }
}
