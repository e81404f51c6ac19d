//! Waiting for other tasks and other threads.

pub(crate) mod mesh;
pub(crate) mod notify;
