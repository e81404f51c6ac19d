//! The operator's log.

use std::fmt;
use std::sync::Arc;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Said(String),
    Warning(String),
}

/// The destination of the lines, chosen by the binary.
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
