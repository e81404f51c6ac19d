//! INSERT, UPDATE, DELETE, BATCH.

use halcyon_model::request::BatchKind;

use super::{Name, Operator, QualifiedName, RawTerm, Relation, RelationValue};

/// `USING TIMESTAMP t AND TTL s`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Using {
    pub timestamp: Option<RawTerm>,
    pub ttl: Option<RawTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insert {
    pub table: QualifiedName,
    pub columns: Vec<Name>,
    pub values: Vec<RawTerm>,
    pub if_not_exists: bool,
    pub using: Using,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertJson {
    pub table: QualifiedName,
    pub json: RawTerm,
    /// `DEFAULT UNSET`: columns that are not named stay as they are.
    pub default_unset: bool,
    pub if_not_exists: bool,
    pub using: Using,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    pub table: QualifiedName,
    pub using: Using,
    pub assignments: Vec<Assignment>,
    pub relations: Vec<Relation>,
    pub conditions: Conditions,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub column: Name,
    pub change: Change,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// `c = t`
    Assign(RawTerm),
    /// `c = c + t`, `c += t`
    Add(RawTerm),
    /// `c = c - t`, `c -= t`
    Subtract(RawTerm),
    /// `c = t + c`
    Prepend(RawTerm),
    /// `c[k] = t`
    Element { key: RawTerm, value: RawTerm },
    /// `c.f = t`
    Field { field: Name, value: RawTerm },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    pub table: QualifiedName,
    pub using: Using,
    /// Empty: whole rows.
    pub targets: Vec<CellTarget>,
    pub relations: Vec<Relation>,
    pub conditions: Conditions,
}

/// A column, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellTarget {
    Column(Name),
    Element(Name, RawTerm),
    Field(Name, Name),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Conditions {
    #[default]
    None,
    IfExists,
    All(Vec<Condition>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub target: CellTarget,
    pub operator: Operator,
    pub value: RelationValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub kind: BatchKind,
    pub using: Using,
    pub statements: Vec<Modification>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Modification {
    Insert(Insert),
    InsertJson(InsertJson),
    Update(Update),
    Delete(Delete),
}
