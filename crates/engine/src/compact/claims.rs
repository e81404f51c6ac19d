//! Claims on SSTables: two compactions never share an input.
//!
//! A truncation or major compaction needs all SSTables of a table. It closes the claims: no compaction can start, running ones are
//! cancelled, and once their claims are dropped the closer has the table to itself.

use std::collections::HashSet;
use std::sync::Arc;

use halcyon_io::Mutex;

use futures_channel::oneshot;
use futures_util::lock::OwnedMutexGuard;

#[derive(Default)]
pub(crate) struct Claims {
    state: Mutex<ClaimSet>,
    /// Held by the closer.
    closing: Arc<futures_util::lock::Mutex<()>>,
}

#[derive(Default)]
struct ClaimSet {
    /// Serial numbers.
    taken: HashSet<u64>,
    held: usize,
    closed: bool,
    waiting: Vec<oneshot::Sender<()>>,
}

/// SSTables that belong to one compaction until this is dropped.
pub(crate) struct Claim {
    claims: Arc<Claims>,
    serials: Vec<u64>,
}

/// While this is held, no compaction of the table can start.
pub(crate) struct Closed {
    claims: Arc<Claims>,
    _turn: OwnedMutexGuard<()>,
}

impl Claims {
    /// Claims the SSTables that `choose` picks; `choose` gets the set of claimed ones. Claims nothing while the claims are closed.
    pub(crate) fn claim<T>(
        self: &Arc<Claims>,
        choose: impl FnOnce(&HashSet<u64>) -> Option<(Vec<u64>, T)>,
    ) -> Option<(Claim, T)> {
        let mut state = self.state.lock();
        if state.closed {
            return None;
        }
        let (serials, chosen) = choose(&state.taken)?;
        Some((self.take(&mut state, serials), chosen))
    }

    fn take(self: &Arc<Claims>, state: &mut ClaimSet, serials: Vec<u64>) -> Claim {
        state.taken.extend(&serials);
        state.held += 1;
        Claim { claims: self.clone(), serials }
    }

    /// Closes the claims, then calls `cancel` to stop running compactions, and waits for them.
    pub(crate) async fn close(self: &Arc<Claims>, cancel: impl FnOnce()) -> Closed {
        let closed =
            Closed { claims: self.clone(), _turn: self.closing.clone().lock_owned().await };
        self.state.lock().closed = true;
        cancel();
        loop {
            let gone = {
                let mut state = self.state.lock();
                if state.held == 0 {
                    return closed;
                }
                let (sender, receiver) = oneshot::channel();
                state.waiting.push(sender);
                receiver
            };
            // The sender is dropped only with the table.
            let _ = gone.await;
        }
    }
}

impl Closed {
    /// A claim of the closer, which outlives the closing.
    pub(crate) fn claim(&self, serials: Vec<u64>) -> Claim {
        self.claims.take(&mut self.claims.state.lock(), serials)
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.claims.state.lock().closed = false;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.claims.state.lock();
        for serial in &self.serials {
            state.taken.remove(serial);
        }
        state.held -= 1;
        for waiting in state.waiting.drain(..) {
            let _ = waiting.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn claim(claims: &Arc<Claims>, serial: u64) -> Option<Claim> {
        let free = |taken: &HashSet<u64>| (!taken.contains(&serial)).then(|| (vec![serial], ()));
        claims.claim(free).map(|(claim, ())| claim)
    }

    /// Proves that an SSTable has at most one claim, that closing waits for all claims and prevents new ones, and that closers wait for
    /// each other.
    #[test]
    fn claims_are_disjoint_and_can_be_closed() {
        let claims = Arc::<Claims>::default();
        let first = claim(&claims, 1).expect("free");
        assert!(claim(&claims, 1).is_none());
        let second = claim(&claims, 2).expect("free");
        let mut told = false;
        {
            let mut closing = Box::pin(claims.close(|| told = true));
            assert!(closing.as_mut().now_or_never().is_none());
            assert!(claim(&claims, 3).is_none());
            drop(first);
            assert!(closing.as_mut().now_or_never().is_none());
            drop(second);
            let closed = closing.now_or_never().expect("nothing is claimed");
            assert!(claims.close(|| ()).now_or_never().is_none());
            let own = closed.claim(vec![1]);
            drop(closed);
            assert!(claim(&claims, 1).is_none());
            drop(own);
        }
        assert!(told && claim(&claims, 1).is_some());
    }
}
