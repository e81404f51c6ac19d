//! Files through the runtime. One program, which links once; `machine.rs` counts what its own process reads and is another.

mod concurrency;
mod round_trip;
#[path = "../support/mod.rs"]
mod support;
