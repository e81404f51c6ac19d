//! The syntax tree of CQL, before names are resolved.

mod auth;
mod definitions;
mod describe;
mod modify;
mod select;
mod term;

pub use auth::{AuthStatement, GrantedOn, RoleOptions};
pub use definitions::{
    CreateAggregate, CreateFunction, CreateIndex, CreateTrigger, IndexTarget, IndexTargetKind,
};
pub use describe::{Describe, DescribeTarget};
pub use modify::{
    Assignment, Batch, CellTarget, Change, Condition, Conditions, Delete, Insert, InsertJson,
    Modification, Update, Using,
};
pub use select::{
    Operator, OrderBy, RawSelector, Relation, RelationTarget, RelationValue, Select, SelectItem,
    Selection,
};
pub use term::{ArithmeticOperator, LiteralKind, RawTerm, operator_name};

use std::fmt;

use crate::lexer::Location;

/// A name with an optional keyspace: `ks.t`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedName {
    pub location: Location,
    pub keyspace: Option<String>,
    pub name: String,
}

/// As it is written, without quotes.
impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.keyspace {
            Some(keyspace) => write!(f, "{keyspace}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A column, field or option name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub location: Location,
    pub text: String,
}

/// A type as written, with blanks and comments normalised; names in it are not resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeText {
    pub location: Location,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub location: Location,
    pub kind: StatementKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementKind {
    Use {
        keyspace: String,
    },
    CreateKeyspace {
        name: Name,
        if_not_exists: bool,
        options: Vec<TableOption>,
    },
    DropKeyspace {
        name: Name,
        if_exists: bool,
    },
    AlterKeyspace {
        name: Name,
        if_exists: bool,
        options: Vec<TableOption>,
    },
    CreateType(CreateType),
    AlterType {
        name: QualifiedName,
        if_exists: bool,
        change: TypeChange,
    },
    DropType {
        name: QualifiedName,
        if_exists: bool,
    },
    CreateTable(CreateTable),
    AlterTable {
        name: QualifiedName,
        if_exists: bool,
        change: TableChange,
    },
    DropTable {
        name: QualifiedName,
        if_exists: bool,
    },
    CreateView(CreateView),
    DropView {
        name: QualifiedName,
        if_exists: bool,
    },
    AlterView {
        name: QualifiedName,
        if_exists: bool,
        options: Vec<TableOption>,
    },
    CreateIndex(CreateIndex),
    DropIndex {
        name: QualifiedName,
        if_exists: bool,
    },
    CreateFunction(CreateFunction),
    DropFunction {
        name: QualifiedName,
        if_exists: bool,
        /// `None` if no types were given.
        arguments: Option<Vec<TypeText>>,
    },
    CreateAggregate(CreateAggregate),
    DropAggregate {
        name: QualifiedName,
        if_exists: bool,
        arguments: Option<Vec<TypeText>>,
    },
    CreateTrigger(CreateTrigger),
    DropTrigger {
        name: Name,
        table: QualifiedName,
        if_exists: bool,
    },
    Auth(AuthStatement),
    Describe(Describe),
    Select(Select),
    Modification(Modification),
    Batch(Batch),
    Truncate {
        name: QualifiedName,
    },
    /// Says nothing about the shape of tables; `what` are its first words.
    Skipped {
        what: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateType {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    pub fields: Vec<(Name, TypeText)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeChange {
    Add {
        if_not_exists: bool,
        fields: Vec<(Name, TypeText)>,
    },
    Rename {
        if_exists: bool,
        renames: Vec<(Name, Name)>,
    },
    /// Cassandra refuses it since 3.0.
    Retype {
        field: Name,
        to: TypeText,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnText {
    pub name: Name,
    pub column_type: TypeText,
    pub is_static: bool,
    pub mask: Option<MaskText>,
}

/// What follows `MASKED WITH`: a function, with the arguments that follow the column's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskText {
    pub function: QualifiedName,
    pub arguments: Vec<RawTerm>,
}

/// As Cassandra's messages show it.
impl fmt::Display for MaskText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = RawTerm::Call { name: self.function.clone(), arguments: self.arguments.clone() };
        call.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrimaryKey {
    pub partition_key: Vec<Name>,
    pub clustering: Vec<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTable {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnText>,
    /// All occurrences in the text; more than one is an error.
    pub primary_keys: Vec<PrimaryKey>,
    pub properties: Properties,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateView {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    pub selection: Selection,
    pub base: QualifiedName,
    /// Which rows of the base the view has.
    pub relations: Vec<Relation>,
    /// Whether a value is left to a marker, which is refused.
    pub has_markers: bool,
    pub primary_key: PrimaryKey,
    pub properties: Properties,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableChange {
    Add {
        if_not_exists: bool,
        columns: Vec<ColumnText>,
    },
    Drop {
        if_exists: bool,
        columns: Vec<Name>,
        timestamp: Option<i64>,
    },
    Rename {
        if_exists: bool,
        renames: Vec<(Name, Name)>,
    },
    /// Only to a type whose values are stored alike; newer Cassandra refuses it.
    Retype {
        name: Name,
        to: TypeText,
    },
    Options(Vec<TableOption>),
    DropCompactStorage,
    /// `ALTER … MASKED WITH …`
    Mask {
        if_exists: bool,
        column: Name,
        mask: MaskText,
    },
    /// `ALTER … DROP MASKED`
    Unmask {
        if_exists: bool,
        column: Name,
    },
    /// `CHECK …` of newer versions: nothing that files hold.
    Constraint,
}

/// What follows `WITH`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    /// `CLUSTERING ORDER BY`: true is descending.
    pub clustering_order: Vec<(Name, bool)>,
    pub compact_storage: bool,
    pub options: Vec<TableOption>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOption {
    pub name: Name,
    pub value: OptionValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// A number, string, uuid, word: its text without quotes.
    Simple(String),
    /// `{ 'key': value, … }`
    Map(Vec<(String, String)>),
}
