//! The outcome of one group, for which all its writers wait: given once, then all are woken in one pass.

use std::cell::OnceCell;
use std::rc::Rc;

use halcyon_io::Notify;

use crate::{Error, Result};

#[derive(Debug, Default)]
pub(crate) struct Ticket {
    outcome: OnceCell<Result<()>>,
    answered: Notify,
}

impl Ticket {
    pub(crate) fn answer(&self, outcome: Result<()>) {
        // Only the first answer counts: a failed log never turns into a success.
        let _ = self.outcome.set(outcome);
        self.answered.notify_all();
    }

    pub(crate) async fn answered(&self) -> Result<()> {
        loop {
            let answered = self.answered.notified();
            if let Some(outcome) = self.outcome.get() {
                return outcome.clone();
            }
            answered.await;
        }
    }
}

pub(crate) fn answer(tickets: Vec<Rc<Ticket>>, error: &Error) {
    for ticket in tickets {
        ticket.answer(Err(error.clone()));
    }
}
