//! Wake-ups on one thread: a flag that tasks wait for, and the answer of a group that all its writers wait for.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use crate::Result;

/// A flag. Whoever waits takes it down; raised twice before that, it is up once.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    up: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Signal {
    pub(crate) fn raise(&self) {
        if !self.up.replace(true) {
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.up.replace(false) {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    pub(crate) async fn wait(&self) {
        poll_fn(|cx| self.poll(cx)).await;
    }
}

/// The answer to everybody who wrote into one group: given once, then all are woken in one pass.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    outcome: OnceCell<Result<()>>,
    waiting: RefCell<Vec<Waker>>,
}

impl Ticket {
    pub(crate) fn outcome(&self) -> Option<Result<()>> {
        self.outcome.get().cloned()
    }

    pub(crate) fn answer(&self, outcome: Result<()>) {
        // Only the first answer counts: a failed log never turns into a success.
        let _ = self.outcome.set(outcome);
        self.waiting.take().into_iter().for_each(Waker::wake);
    }

    /// `place` is where this waiter stands in the list: polled again, it does not stand there twice.
    pub(crate) fn poll(&self, place: &mut Option<usize>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if let Some(outcome) = self.outcome() {
            return Poll::Ready(outcome);
        }
        let mut waiting = self.waiting.borrow_mut();
        match place.and_then(|at| waiting.get_mut(at)) {
            Some(waker) => waker.clone_from(cx.waker()),
            None => {
                *place = Some(waiting.len());
                waiting.push(cx.waker().clone());
            }
        }
        Poll::Pending
    }

    pub(crate) async fn answered(&self) -> Result<()> {
        let mut place = None;
        poll_fn(|cx| self.poll(&mut place, cx)).await
    }
}
