//! User-defined functions: in Java as Cassandra has them, in WebAssembly for those who want no JVM. Both have the same limits.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod definition;
mod java;
mod limits;
mod wasm;

use std::path::Path;
use std::pin::pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::{Either, select};
use halcyon_cql::plan::Runner;
use halcyon_io::clock::{self, Instant};
use halcyon_io::{JobLost, Pool, core_count};
use halcyon_schema::function::{FunctionSettings, JAVA, UserFunction, WASM};
use halcyon_syntax::{Error, Result};

pub use self::limits::SlowCalls;
use self::limits::{Allowed, Folded};

/// One for the process, like the threads for computations that call it.
static RUNNING: LazyLock<Running> = LazyLock::new(|| Running {
    are_enabled: AtomicBool::new(false),
    fail_millis: AtomicU64::new(0),
    warn_millis: AtomicU64::new(0),
    java: java::Host::default(),
    wasm: wasm::Modules::default(),
});

/// There is one JVM, which does one call after the other.
static JAVA_THREAD: LazyLock<Pool> = LazyLock::new(|| Pool::start("java", 1));
/// As many as there are for computations.
static WASM_THREADS: LazyLock<Pool> =
    LazyLock::new(|| Pool::start("wasm", core_count().div_ceil(2)));

/// Does a job that calls functions, the first of them in this language; `None` if the deadline came first. Each language has threads of its
/// own, because a call may take its whole limit and a JVM takes seconds to start: only calls in the same language wait for that.
pub async fn apart<T: Send + 'static>(
    language: &str,
    deadline: Instant,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, JobLost> {
    let pool = if language == JAVA { *JAVA_THREAD } else { *WASM_THREADS };
    let late = clock::sleep(deadline - clock::now());
    match select(pin!(pool.run(job)), pin!(late)).await {
        Either::Left((done, _)) => done.map(Some),
        Either::Right(_) => Ok(None),
    }
}

/// Compiles a function that is about to be made; `None` if the deadline came first.
pub async fn check(
    function: UserFunction,
    deadline: Instant,
) -> Result<Option<Result<()>>, JobLost> {
    let language = function.language.clone();
    apart(&language, deadline, move || RUNNING.check(&function)).await
}

/// What a node's settings say. `folder`: for files, of which only those of this process are there.
pub fn configure(settings: &FunctionSettings, folder: &Path) {
    RUNNING.java.keep_in(folder.to_owned());
    RUNNING.are_enabled.store(settings.are_enabled, Relaxed);
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    RUNNING.fail_millis.store(millis(settings.fail_timeout), Relaxed);
    RUNNING.warn_millis.store(millis(settings.warn_timeout), Relaxed);
}

struct Running {
    are_enabled: AtomicBool,
    fail_millis: AtomicU64,
    warn_millis: AtomicU64,
    java: java::Host,
    wasm: wasm::Modules,
}

impl Running {
    /// Compiles a function that is about to be made.
    fn check(&self, function: &UserFunction) -> Result<()> {
        let limit = self.limit()?;
        match function.language.as_str() {
            JAVA => self.java.check(function, limit),
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

/// The calls of one request.
#[derive(Default)]
pub struct Calls {
    pub slow: SlowCalls,
}

impl Calls {
    fn allowed(&self) -> Result<Allowed<'_>> {
        let warn = Duration::from_millis(RUNNING.warn_millis.load(Relaxed));
        Ok(Allowed { fail: RUNNING.limit()?, warn, slow: &self.slow })
    }
}

impl Runner for Calls {
    fn call(
        &self,
        function: &UserFunction,
        arguments: &[Option<&[u8]>],
    ) -> Result<Option<Vec<u8>>> {
        let allowed = self.allowed()?;
        match function.language.as_str() {
            JAVA => RUNNING.java.call(function, arguments, &allowed),
            WASM => RUNNING.wasm.call(function, arguments, &allowed),
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
        let allowed = self.allowed()?;
        match function.language.as_str() {
            JAVA => RUNNING.java.fold(function, state, (arguments, rows), &allowed),
            WASM => RUNNING.wasm.fold(function, state, (arguments, rows), &allowed),
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
