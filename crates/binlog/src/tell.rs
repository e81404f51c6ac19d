//! Where the operator reads what happens to a log.

use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

pub type Tell = Arc<dyn Fn(Severity, String) + Send + Sync>;
