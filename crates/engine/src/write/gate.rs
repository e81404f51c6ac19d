//! The writes of clients that run on a shard: a caller may wait for their end, or keep new ones from beginning.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_channel::oneshot;
use halcyon_io::Notify;

pub struct WriteGate {
    /// Every write that runs has the sender; when the last one has dropped it, the receiver hears of it.
    running: RefCell<(Rc<oneshot::Sender<()>>, oneshot::Receiver<()>)>,
    holds: Cell<usize>,
    opened: Notify,
}

/// A write that runs.
pub struct RunningWrite(#[expect(dead_code, reason = "its drop tells")] Rc<oneshot::Sender<()>>);

/// While it is there, no write begins.
pub struct HeldWrites(Rc<WriteGate>);

fn epoch() -> (Rc<oneshot::Sender<()>>, oneshot::Receiver<()>) {
    let (sender, receiver) = oneshot::channel();
    (Rc::new(sender), receiver)
}

impl Default for WriteGate {
    fn default() -> WriteGate {
        WriteGate { running: RefCell::new(epoch()), holds: Cell::new(0), opened: Notify::default() }
    }
}

impl WriteGate {
    /// To be called before a write looks at the schema.
    pub async fn begin(&self) -> RunningWrite {
        while self.holds.get() > 0 {
            self.opened.notified().await;
        }
        RunningWrite(self.running.borrow().0.clone())
    }

    /// Waits until the writes that run now have ended; others may begin meanwhile.
    pub async fn earlier_ended(&self) {
        let (sender, ended) = self.running.replace(epoch());
        drop(sender);
        let _ = ended.await;
    }

    /// Keeps writes from beginning, and waits until those that run have ended.
    pub async fn hold(self: &Rc<Self>) -> HeldWrites {
        self.holds.update(|holds| holds + 1);
        let held = HeldWrites(self.clone());
        self.earlier_ended().await;
        held
    }
}

impl Drop for HeldWrites {
    fn drop(&mut self) {
        self.0.holds.update(|holds| holds - 1);
        self.0.opened.notify_all();
    }
}
