//! What CQL text says, before anything is looked up.

use crate::lexer::Place;

/// A name with an optional keyspace: `ks.t`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedName {
    pub place: Place,
    pub keyspace: Option<String>,
    pub name: String,
}

/// A column, field or option name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub place: Place,
    pub text: String,
}

/// A type as written, with blanks and comments normalised; names in it are not resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeText {
    pub place: Place,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub place: Place,
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
    Add { if_not_exists: bool, fields: Vec<(Name, TypeText)> },
    Rename { if_exists: bool, renames: Vec<(Name, Name)> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnText {
    pub name: Name,
    pub column_type: TypeText,
    pub is_static: bool,
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
    pub primary_key: PrimaryKey,
    pub properties: Properties,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateView {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    /// `None` is `*`.
    pub columns: Option<Vec<Name>>,
    pub base: QualifiedName,
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
    /// Masks and constraints: nothing that files hold.
    Other,
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
