//! What the operator should hear of, until the server asks for it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::engine::Engine;

/// More than anybody reads.
const KEPT: usize = 1000;

/// A sentence for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    pub is_warning: bool,
    pub text: String,
}

impl News {
    pub(crate) fn said(text: String) -> News {
        News { is_warning: false, text }
    }

    pub(crate) fn warning(text: String) -> News {
        News { is_warning: true, text }
    }
}

#[derive(Default)]
pub(crate) struct Untold(Mutex<VecDeque<News>>);

impl Engine {
    pub(crate) fn tell(&self, news: News) {
        let mut untold = self.untold.0.lock().unwrap_or_else(PoisonError::into_inner);
        if untold.len() < KEPT {
            untold.push_back(news);
        }
    }

    /// What has happened since the last time, each once, oldest first.
    pub fn take_news(&self) -> Vec<News> {
        let mut untold = self.untold.0.lock().unwrap_or_else(PoisonError::into_inner);
        untold.drain(..).collect()
    }
}
