//! What the operator is told while the server runs.

use std::fmt;
use std::sync::Arc;

/// A sentence for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Said(String),
    Warning(String),
}

/// Where sentences go; the binary decides.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(Line) + Send + Sync>);

impl Log {
    pub fn new(to: impl Fn(Line) + Send + Sync + 'static) -> Log {
        Log(Arc::new(to))
    }

    pub fn say(&self, what: fmt::Arguments<'_>) {
        (self.0)(Line::Said(what.to_string()));
    }

    pub(crate) fn warning(&self, what: fmt::Arguments<'_>) {
        (self.0)(Line::Warning(what.to_string()));
    }
}
