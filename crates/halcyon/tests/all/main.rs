//! The binary as users call it. One program, which links once.

mod cli;
mod doctor;
mod golden;
mod golden_compact;
mod golden_dump;
mod in_use;
mod plugin;
mod schema_sources;
