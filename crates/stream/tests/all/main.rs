//! The merge against a model. One program, which links once.

mod histories;
mod reconciliation;
mod text;
