//! Whether the engine takes requests, and if not, why.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::{Error, Result};

#[derive(Debug, Default)]
pub(crate) struct Health {
    stopped: AtomicBool,
    why: Mutex<Option<String>>,
}

impl Health {
    /// Refuses a write if the engine has stopped.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.stopped.load(Relaxed) { Err(self.refusal()) } else { Ok(()) }
    }

    fn refusal(&self) -> Error {
        Error::Stopped(self.why().unwrap_or_default())
    }

    pub(crate) fn why(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on writes are refused; the first reason stays.
    pub(crate) fn stop(&self, why: String) {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.stopped.store(true, Relaxed);
    }
}
