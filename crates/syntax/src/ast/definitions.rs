//! Indexes, functions, aggregates, triggers.

use super::{Name, QualifiedName, RawTerm, TableOption, TypeText};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateIndex {
    pub name: Option<Name>,
    pub if_not_exists: bool,
    pub is_custom: bool,
    pub table: QualifiedName,
    pub targets: Vec<IndexTarget>,
    /// `USING 'class'`
    pub class: Option<String>,
    pub options: Vec<TableOption>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexTarget {
    pub column: Name,
    pub kind: IndexTargetKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexTargetKind {
    Simple,
    Values,
    Keys,
    KeysAndValues,
    Full,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateFunction {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    pub replace: bool,
    pub arguments: Vec<(Name, TypeText)>,
    pub called_on_null: bool,
    pub returns: TypeText,
    pub language: String,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateAggregate {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    pub replace: bool,
    pub arguments: Vec<TypeText>,
    pub state_function: String,
    pub state_type: TypeText,
    pub final_function: Option<String>,
    pub initial: Option<RawTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTrigger {
    pub name: Name,
    pub if_not_exists: bool,
    pub table: QualifiedName,
    pub class: String,
}
