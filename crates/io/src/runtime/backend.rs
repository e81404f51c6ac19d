//! The runtime: one per thread, on a ring or on a pool of threads.
//!
//! 1. [`BackendChoice`] comes from `DiskOptions`, else from `HALCYON_IO_ENGINE`, else it is `auto`.
//! 2. `auto` tries a ring. Where the kernel or a container forbids one it falls back to the pool,
//!    loudly: the report holds one warning with the cause and the cure. `uring` refuses instead.
//! 3. Each thread that calls [`block_on`] gets its own runtime; all of one scheduling class share one pool of threads.
//! 4. `block_on` returns only when the kernel holds none of this thread's buffers any more: a
//!    dropped read must not write into memory that has a new owner.
//!
//! compio enters the ring only when the outermost future yields. A read-ahead that waits for that
//! would start after the computing it should overlap, so [`enter_ring`] hands over what is queued
//! at once, without waiting.

use std::{
    cell::{Cell, OnceCell},
    fmt, io,
    os::fd::AsRawFd,
    panic::resume_unwind,
    pin::pin,
    rc::Rc,
    str::FromStr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

use compio::{
    driver::{AsyncifyPool, DriverType, ProactorBuilder},
    runtime::{Runtime, RuntimeBuilder},
};

use super::panics::caught;
use super::thread::thread_priority;

/// What the operator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendChoice {
    #[default]
    Auto,
    Uring,
    Pool,
}

/// What runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// io_uring.
    Uring,
    /// pread and pwrite on a pool of threads.
    Pool,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Uring => "uring",
            Backend::Pool => "pool",
        })
    }
}

impl fmt::Display for BackendChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BackendChoice::Auto => "auto",
            BackendChoice::Uring => "uring",
            BackendChoice::Pool => "pool",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an I/O engine; use auto, uring or pool")]
pub struct UnknownBackend(pub String);

impl FromStr for BackendChoice {
    type Err = UnknownBackend;

    fn from_str(word: &str) -> Result<BackendChoice, UnknownBackend> {
        match word {
            "auto" => Ok(BackendChoice::Auto),
            "uring" => Ok(BackendChoice::Uring),
            "pool" => Ok(BackendChoice::Pool),
            other => Err(UnknownBackend(other.to_owned())),
        }
    }
}

/// Which backend runs and what there is to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendReport {
    pub choice: BackendChoice,
    pub backend: Backend,
    /// To be logged once: `auto` fell back, or the environment's word was not understood.
    pub warning: Option<String>,
    /// The choice cannot be had: refuse to start.
    pub refusal: Option<String>,
}

impl BackendReport {
    pub(crate) fn of(choice: BackendChoice) -> BackendReport {
        let ring = match choice {
            BackendChoice::Pool => None,
            BackendChoice::Auto | BackendChoice::Uring => ring_refusal(),
        };
        let (backend, warning, refusal) = match (choice, ring) {
            (BackendChoice::Pool, _) => (Backend::Pool, None, None),
            (_, None) => (Backend::Uring, None, None),
            (BackendChoice::Auto, Some(cause)) => {
                let text = format!(
                    "io_uring is not available, falling back to a pool of threads, which costs \
                     several times the CPU per I/O: {cause}"
                );
                (Backend::Pool, Some(text), None)
            }
            (_, Some(cause)) => {
                let text = format!("engine `uring` was asked for but is not available: {cause}");
                (Backend::Uring, None, Some(text))
            }
        };
        BackendReport { choice, backend, warning, refusal }
    }
}

/// Why the kernel gives no ring, with the cure; `None` if it gives one.
pub(crate) fn ring_refusal() -> Option<String> {
    let refusal = io_uring::IoUring::new(2).err()?;
    let cure = match refusal.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "a container's seccomp profile or the sysctl kernel.io_uring_disabled forbids it; allow \
             the system calls io_uring_setup, io_uring_enter and io_uring_register in the profile \
             (Docker: --security-opt seccomp=<profile>; Kubernetes: seccompProfile Localhost), and \
             set kernel.io_uring_disabled=0"
        }
        Some(libc::ENOSYS) => {
            "the kernel was built without it, is older than 5.6, or a sandbox hides it; use a newer \
             kernel or allow io_uring_setup, io_uring_enter and io_uring_register"
        }
        Some(libc::ENOMEM) => {
            "the locked-memory limit is too low; raise it (ulimit -l, LimitMEMLOCK=)"
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "no file descriptors are left; raise the limit (ulimit -n, LimitNOFILE=)"
        }
        _ => "set the I/O engine to `pool` to run without it",
    };
    Some(format!("io_uring_setup said `{refusal}`: {cure}"))
}

/// 0: not configured; else 1 + the choice.
static CONFIGURED: AtomicU8 = AtomicU8::new(0);

/// Sets what runtimes made from now on use. Runtimes that threads already have stay.
pub(crate) fn configure(choice: BackendChoice) {
    CONFIGURED.store(1 + choice as u8, SeqCst);
}

/// The choice in force, and a warning if the environment's word was not understood.
pub(crate) fn choice_in_force() -> (BackendChoice, Option<String>) {
    match CONFIGURED.load(SeqCst) {
        1 => (BackendChoice::Auto, None),
        2 => (BackendChoice::Uring, None),
        3 => (BackendChoice::Pool, None),
        _ => match std::env::var("HALCYON_IO_ENGINE") {
            Err(_) => (BackendChoice::Auto, None),
            Ok(word) => match word.parse() {
                Ok(choice) => (choice, None),
                Err(unknown) => {
                    (BackendChoice::Auto, Some(format!("HALCYON_IO_ENGINE: {unknown}")))
                }
            },
        },
    }
}

/// Enough for what one thread keeps in flight; small enough for an 8 MiB locked-memory limit.
const RING_ENTRIES: u32 = 256;
/// Tasks that other threads have woken and that have not run yet. When the queue is full, the thread that wakes another task
/// spins until there is: two threads that wake each other's tasks must never both be there.
const WAKE_UPS: usize = 1 << 14;
/// When all are busy, a thread that needs one more spins; so there are more than streams in flight.
const POOL_THREADS: usize = 128;

/// Rounds of tasks before the ring is looked at although tasks are ready.
const ROUNDS: usize = 8;

/// A thread's runtime and how many of its operations the kernel holds buffers of.
#[derive(Clone)]
pub(crate) struct ThreadRuntime {
    runtime: Runtime,
    pub(crate) backend: Backend,
    pub(crate) in_kernel: Arc<AtomicUsize>,
    running: Rc<Cell<bool>>,
}

thread_local! {
    static RUNTIME: OnceCell<ThreadRuntime> = const { OnceCell::new() };
    static ENTERED: Cell<Option<*const ThreadRuntime>> = const { Cell::new(None) };
}

impl ThreadRuntime {
    fn build(choice: BackendChoice) -> io::Result<ThreadRuntime> {
        let report = BackendReport::of(choice);
        if let Some(refusal) = report.refusal {
            return Err(io::Error::new(io::ErrorKind::Unsupported, refusal));
        }
        let runtime = match report.backend {
            Backend::Pool => build_runtime(DriverType::Poll, false)?,
            // Kernels before 5.19 do not know cooperative task running.
            Backend::Uring => build_runtime(DriverType::IoUring, true)
                .or_else(|_| build_runtime(DriverType::IoUring, false))?,
        };
        Ok(ThreadRuntime {
            runtime,
            backend: report.backend,
            in_kernel: Arc::default(),
            running: Rc::default(),
        })
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        assert!(!self.running.replace(true), "block_on inside block_on: await the future instead");
        let _drained = Drained(self, ENTERED.replace(Some(self)));
        match caught(|| self.turn(future)) {
            Ok(output) => output,
            // The runtime's own loop gives up its tasks when a future panics.
            Err(panic) => self.runtime.block_on(async { resume_unwind(panic) }),
        }
    }

    /// The loop of a thread. Not the runtime's, which looks at the ring after each round of tasks: a look that finds nothing also
    /// forgets that the thread is awake, and the next wake-up on this very thread then goes through the kernel.
    fn turn<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        self.runtime.enter(|| {
            let waker = self.runtime.waker();
            let mut context = Context::from_waker(&waker);
            loop {
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    return output;
                }
                if (0..ROUNDS).all(|_| self.runtime.run()) {
                    self.runtime.poll_with(Some(Duration::ZERO));
                } else {
                    self.runtime.poll();
                }
            }
        })
    }

    /// Runs the driver until the kernel holds no buffer of this thread.
    fn drain(&self) {
        self.runtime.enter(|| {
            while self.in_kernel.load(SeqCst) > 0 {
                self.runtime.run();
                self.runtime.poll_with(Some(Duration::from_millis(1)));
            }
            self.runtime.run();
        });
    }
}

/// Drains when `block_on` ends, by return or by panic.
struct Drained<'a>(&'a ThreadRuntime, Option<*const ThreadRuntime>);

impl Drop for Drained<'_> {
    fn drop(&mut self) {
        self.0.drain();
        ENTERED.set(self.1);
        self.0.running.set(false);
    }
}

fn build_runtime(driver: DriverType, cooperative: bool) -> io::Result<Runtime> {
    // A pool's threads inherit the class of the thread that first needed them, so each class has its own.
    static POOLS: [OnceLock<AsyncifyPool>; 3] = [const { OnceLock::new() }; 3];
    let pool = POOLS[thread_priority() as usize]
        .get_or_init(|| AsyncifyPool::new(POOL_THREADS, Duration::from_secs(60)));
    let mut proactor = ProactorBuilder::new();
    proactor
        .driver_type(driver)
        .capacity(RING_ENTRIES)
        .coop_taskrun(cooperative)
        .taskrun_flag(cooperative)
        .reuse_thread_pool(pool.clone());
    RuntimeBuilder::new().with_proactor(proactor).sync_queue_size(WAKE_UPS).build()
}

/// Runs a future on this thread's runtime, made on first use with the configured backend.
///
/// # Panics
/// If the backend cannot be had; `startup::check` says so first, with the cure.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = RUNTIME.with(|cell| {
        cell.get_or_init(|| {
            let (choice, _) = choice_in_force();
            ThreadRuntime::build(choice).unwrap_or_else(|e| panic!("no I/O runtime: {e}"))
        })
        .clone()
    });
    runtime.block_on(future)
}

/// Runs a future on a runtime of its own with the given backend: for tests and measurements.
pub fn block_on_backend<F: Future>(choice: BackendChoice, future: F) -> io::Result<F::Output> {
    Ok(ThreadRuntime::build(choice)?.block_on(future))
}

/// Calls `with` on the runtime that is running on this thread, if one is.
pub(crate) fn with_entered<T>(with: impl FnOnce(&ThreadRuntime) -> T) -> Option<T> {
    // SAFETY: the pointer is set by `block_on` from a reference that lives until `Drained` resets
    // it, on the same thread.
    ENTERED.get().map(|entered| with(unsafe { &*entered }))
}

impl ThreadRuntime {
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }
}

/// Hands all queued operations to the kernel now, without waiting for any.
pub(crate) fn enter_ring() {
    with_entered(|entered| {
        if entered.backend == Backend::Uring {
            let ring = entered.runtime.as_raw_fd();
            let no_arguments = std::ptr::null::<libc::c_void>();
            // Not by the runtime's `flush`, which forgets that the thread is awake. What cannot be submitted now is when the
            // ring is looked at next. SAFETY: the ring is open; the kernel takes what is queued, at most as many as asked.
            unsafe {
                libc::syscall(libc::SYS_io_uring_enter, ring, RING_ENTRIES, 0, 0, no_arguments, 0)
            };
        }
    });
}

/// Runs a blocking call on the pool of threads.
///
/// # Panics
/// Outside `block_on`; and resumes the panic of the call.
#[expect(clippy::expect_used, reason = "a blocking call is never cancelled")]
pub(crate) async fn on_pool<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    use compio::runtime::ResumeUnwind;
    let call = || caught(call);
    let Some(handle) = with_entered(|entered| entered.runtime.spawn_blocking(call)) else {
        panic!("an I/O future was polled outside halcyon_io::block_on");
    };
    let outcome = handle.await.resume_unwind().expect("the result of a blocking call");
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}
