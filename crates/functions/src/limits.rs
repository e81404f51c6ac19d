//! What calls in all languages have in common: how far they may go, and how they fail.

use std::sync::MutexGuard;
use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_model::CqlType;
use halcyon_schema::function::UserFunction;
use halcyon_syntax::Error;

/// How long rows are folded before it is said how far that has come.
pub(super) const FOLD_SLICE: Duration = Duration::from_millis(100);

/// The last state, and of how many rows it is.
pub(super) type Folded = (Option<Vec<u8>>, usize);

/// How long a call may take, and where it is noted that it took long.
pub(super) struct Allowed<'a> {
    /// `user_defined_functions_fail_timeout`
    pub(super) fail: Duration,
    /// `user_defined_functions_warn_timeout`; zero: never.
    pub(super) warn: Duration,
    pub(super) slow: &'a SlowCalls,
}

impl Allowed<'_> {
    /// A call has taken so long.
    pub(super) fn took(&self, function: &UserFunction, time: Duration) {
        if !self.warn.is_zero() && time > self.warn {
            self.slow.note(longer_than(function, self.warn));
        }
    }

    /// The failure of a call that has exceeded its time.
    pub(super) fn late(&self, function: &UserFunction) -> Error {
        let why = longer_than(function, self.fail);
        failure(function, &format!("java.util.concurrent.TimeoutException: {why}"))
    }
}

/// The warnings for a client about slow calls: as much as a message can have, as in Cassandra.
#[derive(Debug, Default)]
pub struct SlowCalls(Mutex<Vec<String>>);

impl SlowCalls {
    pub fn note(&self, warning: String) {
        let mut noted = self.noted();
        if noted.len() < usize::from(u16::MAX) {
            noted.push(warning);
        }
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.noted())
    }

    fn noted(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock()
    }
}

/// With a function as Cassandra shows it: `ks.f : (int) -> int`.
fn longer_than(function: &UserFunction, time: Duration) -> String {
    let arguments: Vec<String> = function.argument_types().map(CqlType::cql_name).collect();
    let (keyspace, name, arguments) = (&function.keyspace, &function.name, arguments.join(", "));
    let (returns, millis) = (function.returns.cql_name(), time.as_millis());
    format!(
        "User defined function {keyspace}.{name} : ({arguments}) -> {returns} ran longer than {millis}ms"
    )
}

pub(super) fn failure(function: &UserFunction, what: &str) -> Error {
    let arguments: Vec<String> = function.argument_types().map(CqlType::cql_name).collect();
    let name = format!("{}.{}", function.keyspace, function.name);
    Error::FunctionFailure { function: name, arguments, message: what.to_owned() }
}
