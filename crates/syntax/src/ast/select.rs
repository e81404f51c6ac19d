//! SELECT, and the relations of every WHERE.

use std::fmt;

use super::term::ArithmeticOperator;
use super::{Name, QualifiedName, RawTerm, TypeText};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select {
    pub json: bool,
    pub distinct: bool,
    pub selection: Selection,
    pub table: QualifiedName,
    pub relations: Vec<Relation>,
    pub group_by: Vec<RawSelector>,
    /// True is descending.
    pub order_by: Vec<OrderBy>,
    pub per_partition_limit: Option<RawTerm>,
    pub limit: Option<RawTerm>,
    pub allow_filtering: bool,
    /// `USING TIMEOUT 50ms`: a duration.
    pub timeout: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderBy {
    pub column: Name,
    pub descending: bool,
    /// `ORDER BY v ANN OF [...]`
    pub ann_of: Option<RawTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// `*`
    All,
    Items(Vec<SelectItem>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectItem {
    pub selector: RawSelector,
    pub alias: Option<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawSelector {
    Column(Name),
    /// `count(*)` and `count(1)`.
    CountRows,
    WriteTime(Box<RawSelector>),
    MaxWriteTime(Box<RawSelector>),
    Ttl(Box<RawSelector>),
    Call {
        name: QualifiedName,
        arguments: Vec<RawSelector>,
        /// Whether the text leaves out the keyspace of the name, which is the statement's.
        is_implied: bool,
    },
    Cast {
        selector: Box<RawSelector>,
        to: TypeText,
    },
    Field {
        selector: Box<RawSelector>,
        field: Name,
    },
    Element {
        selector: Box<RawSelector>,
        key: RawTerm,
    },
    Slice {
        selector: Box<RawSelector>,
        from: Option<RawTerm>,
        to: Option<RawTerm>,
    },
    /// A literal or a bind marker.
    Term(RawTerm),
    TypeHint {
        to: TypeText,
        selector: Box<RawSelector>,
    },
    List(Vec<RawSelector>),
    Set(Vec<RawSelector>),
    Map(Vec<(RawSelector, RawSelector)>),
    Tuple(Vec<RawSelector>),
    Arithmetic {
        operator: ArithmeticOperator,
        left: Box<RawSelector>,
        right: Box<RawSelector>,
    },
    Negate(Box<RawSelector>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Contains,
    ContainsKey,
    Like,
    IsNot,
    /// `:` of the SAI analyzer.
    Matches,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelationTarget {
    Column(Name),
    /// `m[k]`
    Element(Name, RawTerm),
    /// `(a, b)`
    Columns(Vec<Name>),
    Token(Vec<Name>),
    /// `expr(index, value)`, of a custom index.
    Expression(Name),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelationValue {
    One(RawTerm),
    /// `IN (a, b)`
    Many(Vec<RawTerm>),
}

/// One condition of a WHERE. `IN ?` has `One` marker, `IS NOT NULL` has `One(Null)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    pub target: RelationTarget,
    pub operator: Operator,
    pub value: RelationValue,
}

impl Relation {
    /// Names a column as it is called from now on.
    pub fn rename(&mut self, from: &str, to: &str) {
        let names = match &mut self.target {
            RelationTarget::Column(name) | RelationTarget::Element(name, _) => {
                std::slice::from_mut(name)
            }
            RelationTarget::Columns(names) | RelationTarget::Token(names) => names.as_mut_slice(),
            RelationTarget::Expression(_) => &mut [],
        };
        names
            .iter_mut()
            .filter(|name| name.text == from)
            .for_each(|name| to.clone_into(&mut name.text));
    }

    /// As CQL (`Relation.toCQLString`), with names as `quote` spells them.
    pub fn text(&self, quote: impl Fn(&str) -> String) -> String {
        let name = |name: &Name| quote(&name.text);
        let names = |names: &[Name]| names.iter().map(name).collect::<Vec<_>>().join(", ");
        let target = match &self.target {
            RelationTarget::Column(column) => name(column),
            RelationTarget::Element(column, key) => format!("{}[{key}]", name(column)),
            RelationTarget::Columns(columns) => format!("({})", names(columns)),
            RelationTarget::Token(columns) => format!("token({})", names(columns)),
            RelationTarget::Expression(index) => format!("expr({})", name(index)),
        };
        let value = match &self.value {
            RelationValue::One(term) => term.to_string(),
            RelationValue::Many(terms) => {
                format!("({})", terms.iter().map(RawTerm::to_string).collect::<Vec<_>>().join(", "))
            }
        };
        format!("{target} {} {value}", self.operator)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operator::Equal => "=",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::In => "IN",
            Operator::Contains => "CONTAINS",
            Operator::ContainsKey => "CONTAINS KEY",
            Operator::Like => "LIKE",
            Operator::IsNot => "IS NOT",
            Operator::Matches => ":",
        })
    }
}
