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

mod block;
mod buffer;
pub mod clock;
pub mod device;
mod disk;
mod engine;
mod error;
mod file;
mod histogram;
mod mesh;
mod mode;
pub mod pacing;
mod probe;
pub mod random;
mod reader;
mod real;
mod region;
pub mod resources;
mod signals;
mod sim;
mod socket;
pub mod startup;
mod task;
mod thread;
mod writer;

pub use block::BlockFile;
pub use buffer::{AlignedBuf, BUFFER_ALIGNMENT, BufferPool};
pub use clock::{Clock, SimClock};
pub use disk::{DirEntry, DirLock, Disk, DiskOptions, FileStat};
pub use engine::{Engine, EngineChoice, EngineReport, UnknownEngine, block_on, block_on_engine};
pub use error::{Error, Operation, Result};
pub use file::{AlignedRead, ReadFile};
pub use histogram::{BUCKETS, PurposeStats, bucket};
pub use mesh::{Gone, Inbox, Mesh};
pub use mode::{AccessMode, Alignment, ModeChoice, Purpose, UnknownAccessMode};
pub use random::Random;
pub use reader::{SequentialReader, StreamOptions};
pub use signals::{Signal, Signals};
pub use sim::{Fault, FaultRule, SimDisk, SimSnapshot};
pub use socket::{DetachedSocket, Listener, Socket};
pub use task::{Task, spawn, start, yield_now};
pub use thread::{
    ThreadPriority, core_count, give_way, hurry_idle_threads, pin_to_core, spawn_thread,
    thread_priority,
};
pub use writer::{SequentialWriter, WriteOptions};
