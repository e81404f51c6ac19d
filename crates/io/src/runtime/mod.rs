//! What runs code: executors, threads, tasks, time, randomness.

pub(crate) mod account;
pub(crate) mod backend;
pub mod clock;
pub(crate) mod compute;
pub(crate) mod entered;
pub(crate) mod handle;
pub(crate) mod panics;
pub(crate) mod random;
mod sim_clock;
pub(crate) mod task;
pub(crate) mod thread;
mod time;
pub(crate) mod yield_now;
