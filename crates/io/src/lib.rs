//! Everything that is not deterministic enters Halcyon here: disks, time, randomness, threads.
//!
//! ```text
//!                        Disk  (real or simulated)
//!          ┌───────────────┼────────────────────┬──────────────┐
//!      ReadFile     SequentialReader     SequentialWriter    names: list, rename, sync_dir …
//!          └───────────────┼────────────────────┘
//!                        File ── queue(region, AlignedBuf) ──► InFlight
//!                 ┌────────┴─────────┐
//!              region               sim
//!        (ring or thread pool)   (in memory)
//! ```
//!
//! Only this crate names the runtime, `libc`, the file system and the system clock.
#![deny(clippy::expect_used)]

pub mod append;
mod background;
mod block;
mod buffer;
pub mod child;
mod confine;
pub mod descriptors;
pub mod device;
mod disk;
mod error;
mod file;
mod kernel;
mod metrics;
mod mode;
mod prefetch;
mod probe;
mod processes;
mod rate_limiter;
mod reader;
mod real;
mod region;
mod removal;
mod replace;
pub mod resources;
mod runtime;
mod signals;
mod sim;
mod socket;
pub mod spent;
pub mod startup;
mod sync;
mod trickle;
mod volume;
mod writer;

pub use block::BlockFile;
pub use buffer::{AlignedBuf, BUFFER_ALIGNMENT, BufferPool};
pub use disk::{DirEntry, DirLock, Disk, DiskOptions, FileStat};
pub use error::{Error, Operation, Result};
pub use file::{AlignedRead, ReadFile};
pub use kernel::KernelVersion;
pub use metrics::{IoLatency, PurposeStats};
pub use mode::{AccessMode, Alignment, ModeChoice, Purpose, UnknownAccessMode};
pub use prefetch::prefetch;
pub use processes::{OpenElsewhere, Process};
pub use rate_limiter::RateLimiter;
pub use reader::{SequentialReader, StreamOptions};
pub use replace::replace;
pub use runtime::account::{Charged, CpuAccount};
pub use runtime::backend::{
    Backend, BackendChoice, BackendReport, UnknownBackend, block_on, block_on_backend,
};
pub use runtime::clock::{self, Clock, SimClock};
pub use runtime::compute::{Pool, compute, drop_apart};
pub use runtime::entered::random;
pub use runtime::handle::{Runtime, Thread};
#[cfg(debug_assertions)]
pub use runtime::panics::panic_at;
pub use runtime::panics::{caught, contained, panic_point, tell_panics};
pub use runtime::random::Random;
pub use runtime::task::{Task, kept, spawn, start};
pub use runtime::thread::{
    IdleThread, ThreadPriority, core_count, give_way, hurry_idle_threads, idle_threads,
    idle_threads_can_hurry, pin_to_core, spawn_thread, thread_priority,
};
pub use runtime::yield_now::yield_now;
pub use signals::{Signal, Signals, ignore_file_size_signal, on_stop};
pub use sim::{Fault, FaultRule, SimDisk, SimRuntime, SimSnapshot};
pub use socket::{Claim, DetachedSocket, Listener, Socket};
pub use sync::mesh::{Inbox, JobLost, Mesh};
pub use sync::mutex::{Condvar, Mutex};
pub use sync::notify::{Notified, Notify};
pub use writer::{SequentialWriter, WriteOptions};
