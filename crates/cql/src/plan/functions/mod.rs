//! Functions: the resolution of a call to an overload, and its evaluation.
//!
//! 1. `natives::candidates` lists the overloads of a name that could take the arguments.
//! 2. `resolve` picks one as Cassandra does: an exact match of types, else the only one that the arguments can be
//!    assigned to; its messages are Cassandra's.
//! 3. `Function::call` runs on serialized values. Aggregates have no `call`: `query` feeds them rows.
//!
//! Operators (`+`, `-x`) are functions too; `operator_name` names them.

mod accumulate;
mod accumulator;
mod aggregate;
mod calendar;
mod collections;
mod cost;
mod fold;
mod inferred;
mod masking;
mod matching;
mod math;
mod natives;
mod powers;
mod resolve;
mod time;
mod user;
mod vectors;

use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_model::types::quote_identifier_if_needed;

use crate::plan::execution::{Execution, Work};
use crate::plan::value::number::MAX_NUMBER;
use halcyon_schema::catalog::{Catalog, Table};
use halcyon_schema::function::{UserFunction, spelled_argument};
use halcyon_syntax::{Error, Result};

pub use accumulator::Accumulator;
pub use aggregate::Aggregate;
pub use collections::Collections;
use cost::Cost;
pub use cost::has_large_number;
use fold::Fold;
pub use halcyon_syntax::ast::operator_name;
pub use masking::Mask;
pub use matching::{Argument, Match, assignable, preferred, returned, type_matches};
pub use math::Math;
pub use natives::Scalar;
pub(crate) use natives::{COUNT_ROWS, cast_target, count_rows, is_native};
pub use resolve::resolve;
pub use time::Time;

/// Where a call stands.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    pub catalog: &'a Catalog,
    /// The keyspace of the statement.
    pub keyspace: &'a str,
    /// The statement's table: `token()` takes its partition key.
    pub table: Option<&'a Table>,
    /// What constants may cost that stand for a function's parts.
    pub work: &'a Work<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    Scalar(Scalar),
    Aggregate(Aggregate),
    User(Arc<UserFunction>),
    /// A user-defined aggregate.
    Fold(Arc<Fold>),
}

/// One overload of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// `system` for native ones.
    pub keyspace: String,
    pub name: String,
    pub arguments: Vec<CqlType>,
    pub returns: CqlType,
    pub body: Body,
}

impl Function {
    pub fn is_aggregate(&self) -> bool {
        matches!(self.body, Body::Aggregate(_) | Body::Fold(_))
    }

    pub fn is_user_defined(&self) -> bool {
        matches!(self.body, Body::User(_) | Body::Fold(_))
    }

    /// Whether equal arguments always give an equal result.
    pub fn is_pure(&self) -> bool {
        match &self.body {
            Body::Scalar(scalar) => scalar.is_pure(),
            Body::Aggregate(_) => true,
            Body::User(_) | Body::Fold(_) => false,
        }
    }

    /// What receives argument `index` of a call: `arg0(system.now)`.
    pub fn argument_spec(&self, index: usize, keyspace: &str, table: &str) -> Option<ColumnSpec> {
        Some(ColumnSpec {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            name: format!("arg{index}({}.{})", self.keyspace, self.name),
            cql_type: self.arguments.get(index)?.clone(),
        })
    }

    fn cost(&self) -> Cost {
        let is_any_size = matches!(self.returns.base(), CqlType::Varint | CqlType::Decimal);
        match &self.body {
            Body::Scalar(Scalar::Math(math)) if is_any_size && math.is_power() => Cost::Power,
            Body::Scalar(Scalar::Math(_)) if is_any_size => Cost::Sum,
            Body::Scalar(Scalar::Math(_) | Scalar::Convert | Scalar::ToText) => Cost::Digits,
            Body::Scalar(Scalar::ToJson | Scalar::FromJson) => Cost::Json,
            _ => Cost::Bytes,
        }
    }

    fn too_large(&self) -> Error {
        Error::FunctionFailure {
            function: self.full_name(),
            arguments: self.arguments.iter().map(CqlType::cql_name).collect(),
            message: format!(
                "execution of '{}' failed: a number of more than {MAX_NUMBER} bytes",
                self.signature()
            ),
        }
    }

    /// The result for serialized arguments; `None` is null. An aggregate gives null.
    pub fn call(
        &self,
        arguments: &[Option<&[u8]>],
        execution: &Execution<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let cost = cost::of_call(self.cost(), &self.arguments, arguments);
        execution.work.spend(cost.ok_or_else(|| self.too_large())?)?;
        match &self.body {
            Body::Scalar(scalar) => scalar.call(self, arguments, execution),
            Body::Aggregate(_) | Body::Fold(_) => Ok(None),
            Body::User(function) => user::call(function, arguments, execution.work),
        }
    }

    /// `system.now : () -> timeuuid`
    pub fn signature(&self) -> String {
        let arguments: Vec<String> = self.arguments.iter().map(spelled_argument).collect();
        let name = quote_identifier_if_needed(&self.name);
        let keyspace = &self.keyspace;
        format!("{keyspace}.{name} : ({}) -> {}", arguments.join(", "), self.returns.cql_name())
    }

    /// Whether a greater argument never gives a smaller result: only such may round the groups of a GROUP BY.
    pub fn is_monotonic(&self) -> bool {
        matches!(
            self.body,
            Body::Scalar(Scalar::Time(
                Time::Floor | Time::ToDate | Time::ToTimestamp | Time::ToUnix
            ))
        )
    }

    pub fn full_name(&self) -> String {
        format!("{}.{}", self.keyspace, self.name)
    }
}

/// The name of the casts to a type.
pub(crate) fn cast_name(to: &CqlType) -> String {
    format!("cast_as_{}", to.cql_name())
}

/// The message about a call's argument.
pub(in crate::plan) fn unset_argument(function: &str) -> Error {
    Error::InvalidRequest(format!(
        "Invalid unset value for argument in call to function {function}"
    ))
}
