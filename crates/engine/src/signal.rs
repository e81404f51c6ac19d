//! Waiting for something to happen on the same thread.

use std::cell::RefCell;

use futures_channel::oneshot;

#[derive(Default)]
pub(crate) struct Signal(RefCell<Vec<oneshot::Sender<()>>>);

impl Signal {
    /// Until the next `notify`.
    pub(crate) async fn wait(&self) {
        let (sender, receiver) = oneshot::channel();
        self.0.borrow_mut().push(sender);
        // An error means that the signal is gone, and with it what was waited for.
        let _ = receiver.await;
    }

    pub(crate) fn notify(&self) {
        for waiting in std::mem::take(&mut *self.0.borrow_mut()) {
            let _ = waiting.send(());
        }
    }
}
