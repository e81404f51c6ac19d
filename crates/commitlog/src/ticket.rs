//! The outcome of one group, for which all its writers wait: given once, then all are woken in one pass.

use std::cell::OnceCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use halcyon_io::{Notified, Notify};

use crate::Result;

#[derive(Debug, Default)]
pub(crate) struct Ticket {
    outcome: OnceCell<Result<()>>,
    answered: Notify,
}

impl Ticket {
    pub(crate) fn outcome(&self) -> Option<Result<()>> {
        self.outcome.get().cloned()
    }

    pub(crate) fn answer(&self, outcome: Result<()>) {
        // Only the first answer counts: a failed log never turns into a success.
        let _ = self.outcome.set(outcome);
        self.answered.notify_all();
    }

    pub(crate) fn waiting(&self) -> Notified<'_> {
        self.answered.notified()
    }

    pub(crate) fn poll(
        &self,
        waiting: &mut Notified<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        match self.outcome() {
            Some(outcome) => Poll::Ready(outcome),
            // The outcome is set before `answered` is notified, so this cannot be ready.
            None => Pin::new(waiting).poll(cx).map(|()| Ok(())),
        }
    }

    pub(crate) async fn answered(&self) -> Result<()> {
        let mut waiting = self.waiting();
        poll_fn(|cx| self.poll(&mut waiting, cx)).await
    }
}
