//! Waiting for other tasks and other threads, and keeping out of other threads' cache lines.

pub(crate) mod mesh;
pub(crate) mod mutex;
pub(crate) mod notify;
pub(crate) mod per_thread;
pub(crate) mod semaphore;
