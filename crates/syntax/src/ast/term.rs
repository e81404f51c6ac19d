//! Terms: the syntax tree of values.

use std::fmt;

use super::{Name, QualifiedName, TypeText};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralKind {
    String,
    Integer,
    Uuid,
    Float,
    Boolean,
    /// `0x…`
    Hex,
    Duration,
}

/// Cassandra's names for the kinds stand in its messages: `Invalid STRING constant (abc) for …`.
impl fmt::Display for LiteralKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LiteralKind::String => "STRING",
            LiteralKind::Integer => "INTEGER",
            LiteralKind::Uuid => "UUID",
            LiteralKind::Float => "FLOAT",
            LiteralKind::Boolean => "BOOLEAN",
            LiteralKind::Hex => "HEX",
            LiteralKind::Duration => "DURATION",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArithmeticOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawTerm {
    Null,
    /// `text` without quotes; a sign belongs to a number.
    Literal {
        kind: LiteralKind,
        text: String,
    },
    /// `?` or `:name`; `index` counts the markers of the statement from 0 in the order of the text.
    Bind {
        index: u16,
        name: Option<String>,
    },
    /// `[a, b]`: a list or a vector.
    List(Vec<RawTerm>),
    /// `{a, b}`; empty braces are a set, a map or a user type, depending on the receiver.
    Set(Vec<RawTerm>),
    Map(Vec<(RawTerm, RawTerm)>),
    UserType(Vec<(Name, RawTerm)>),
    Tuple(Vec<RawTerm>),
    Call {
        name: QualifiedName,
        arguments: Vec<RawTerm>,
    },
    /// `(type) term`
    TypeHint {
        to: TypeText,
        term: Box<RawTerm>,
    },
    Arithmetic {
        operator: ArithmeticOperator,
        left: Box<RawTerm>,
        right: Box<RawTerm>,
    },
    Negate(Box<RawTerm>),
}

/// As Cassandra's messages and column names show it (`Term.Raw.getText`).
impl fmt::Display for RawTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RawTerm::Null => f.write_str("NULL"),
            RawTerm::Literal { kind: LiteralKind::String, text } => write!(f, "'{text}'"),
            RawTerm::Literal { text, .. } => f.write_str(text),
            RawTerm::Bind { .. } => f.write_str("?"),
            RawTerm::List(items) => joined(f, '[', items, ']'),
            RawTerm::Set(items) => joined(f, '{', items, '}'),
            RawTerm::Tuple(items) => joined(f, '(', items, ')'),
            RawTerm::Map(entries) => {
                let entries: Vec<String> =
                    entries.iter().map(|(k, v)| format!("{k}: {v}")).collect();
                joined(f, '{', &entries, '}')
            }
            RawTerm::UserType(fields) => {
                let text = |(name, value): &(Name, RawTerm)| format!("{}: {value}", name.text);
                joined(f, '{', &fields.iter().map(text).collect::<Vec<_>>(), '}')
            }
            RawTerm::Call { name, arguments } => {
                if let Some(keyspace) = &name.keyspace {
                    write!(f, "{keyspace}.")?;
                }
                f.write_str(&name.name)?;
                joined(f, '(', arguments, ')')
            }
            RawTerm::TypeHint { to, term } => write!(f, "({}){term}", to.text),
            // As calls of their functions, in messages and where a view's WHERE is stored.
            RawTerm::Arithmetic { operator, left, right } => {
                write!(f, "system.\"{}\"({left}, {right})", operator_name(Some(*operator)))
            }
            RawTerm::Negate(term) => write!(f, "system.\"{}\"({term})", operator_name(None)),
        }
    }
}

fn joined<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    open: char,
    items: &[T],
    close: char,
) -> fmt::Result {
    write!(f, "{open}")?;
    for (index, item) in items.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{item}")?;
    }
    write!(f, "{close}")
}

/// The function behind an operator; `None` is negation (`OperationFcts`).
pub fn operator_name(operator: Option<ArithmeticOperator>) -> &'static str {
    match operator {
        Some(ArithmeticOperator::Add) => "_add",
        Some(ArithmeticOperator::Subtract) => "_substract",
        Some(ArithmeticOperator::Multiply) => "_multiply",
        Some(ArithmeticOperator::Divide) => "_divide",
        Some(ArithmeticOperator::Modulo) => "_modulo",
        None => "_negate",
    }
}

impl fmt::Display for ArithmeticOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArithmeticOperator::Add => "+",
            ArithmeticOperator::Subtract => "-",
            ArithmeticOperator::Multiply => "*",
            ArithmeticOperator::Divide => "/",
            ArithmeticOperator::Modulo => "%",
        })
    }
}
