//! User-defined functions: in Java as Cassandra has them, in WebAssembly for those who want no JVM. Both have the same limits.

mod definition;
mod java;
mod limits;
mod wasm;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use halcyon_cql::plan::Runner;
use halcyon_schema::function::{FunctionSettings, JAVA, UserFunction, WASM};
use halcyon_syntax::{Error, Result};

use self::limits::Folded;

/// One for the process, like the threads for computations that call it.
pub(crate) static RUNNING: LazyLock<Running> = LazyLock::new(|| Running {
    are_enabled: AtomicBool::new(false),
    fail_millis: AtomicU64::new(1_500),
    java: java::Host::default(),
    wasm: wasm::Modules::default(),
});

/// What a node's settings say.
pub fn configure(settings: &FunctionSettings) {
    RUNNING.are_enabled.store(settings.are_enabled, Relaxed);
    let millis = u64::try_from(settings.fail_timeout.as_millis()).unwrap_or(u64::MAX);
    RUNNING.fail_millis.store(millis, Relaxed);
}

pub(crate) struct Running {
    are_enabled: AtomicBool,
    fail_millis: AtomicU64,
    java: java::Host,
    wasm: wasm::Modules,
}

impl Running {
    /// Compiles a function that is about to be made.
    pub(crate) fn check(&self, function: &UserFunction) -> Result<()> {
        let limit = self.limit()?;
        match function.language.as_str() {
            JAVA => self.java.check(function),
            WASM => self.wasm.check(function, limit),
            _ => Err(not_loaded(function)),
        }
    }

    /// How long a call may take, if there may be any.
    fn limit(&self) -> Result<Duration> {
        if self.are_enabled.load(Relaxed) {
            return Ok(Duration::from_millis(self.fail_millis.load(Relaxed)));
        }
        Err(Error::invalid_request(
            "User-defined functions are disabled in cassandra.yaml - set user_defined_functions_enabled=true to enable",
        ))
    }
}

impl Runner for Running {
    fn call(
        &self,
        function: &UserFunction,
        arguments: &[Option<&[u8]>],
    ) -> Result<Option<Vec<u8>>> {
        let limit = self.limit()?;
        match function.language.as_str() {
            JAVA => self.java.call(function, arguments, limit),
            WASM => self.wasm.call(function, arguments, limit),
            _ => Err(not_loaded(function)),
        }
    }

    fn fold(
        &self,
        function: &UserFunction,
        state: Option<&[u8]>,
        arguments: &[Option<Vec<u8>>],
        rows: usize,
    ) -> Result<Folded> {
        let limit = self.limit()?;
        match function.language.as_str() {
            JAVA => self.java.fold(function, state, (arguments, rows), limit),
            WASM => self.wasm.fold(function, state, (arguments, rows), limit),
            _ => Err(not_loaded(function)),
        }
    }
}

/// A function whose language only earlier versions of Cassandra had.
fn not_loaded(function: &UserFunction) -> Error {
    let (keyspace, name) = (&function.keyspace, &function.name);
    Error::InvalidRequest(format!(
        "Function '{keyspace}.{name}' exists but hasn't been loaded successfully for the following reason: its language is {}. It can be dropped, and made again in {JAVA} or {WASM}",
        function.language
    ))
}
