//! What calls in all languages have in common: how far they may go, and how they fail.

use std::time::Duration;

use halcyon_model::CqlType;
use halcyon_schema::function::UserFunction;
use halcyon_syntax::Error;

/// How long rows are folded before it is said how far that has come.
pub(super) const FOLD_SLICE: Duration = Duration::from_millis(100);

/// The last state, and of how many rows it is.
pub(super) type Folded = (Option<Vec<u8>>, usize);

/// A call that exceeded `user_defined_functions_fail_timeout`.
pub(super) struct Late(pub(super) Duration);

impl Late {
    pub(super) fn of(&self, function: &UserFunction) -> String {
        let shown = shown(function);
        let millis = self.0.as_millis();
        format!(
            "java.util.concurrent.TimeoutException: User defined function {shown} ran longer than {millis}ms"
        )
    }
}

/// `ks.f : (int) -> int`
fn shown(function: &UserFunction) -> String {
    let arguments: Vec<String> = function.argument_types().map(CqlType::cql_name).collect();
    let (keyspace, name) = (&function.keyspace, &function.name);
    format!("{keyspace}.{name} : ({}) -> {}", arguments.join(", "), function.returns.cql_name())
}

pub(super) fn failure(function: &UserFunction, what: &str) -> Error {
    let arguments: Vec<String> = function.argument_types().map(CqlType::cql_name).collect();
    let name = format!("{}.{}", function.keyspace, function.name);
    Error::FunctionFailure { function: name, arguments, message: what.to_owned() }
}
