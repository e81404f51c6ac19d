//! The priority of the tasks.
//!
//! 1. A node's requests come before its compactions, so those run on idle threads: with reads going on they take as long as at the node's
//!    priority, and the reads half as long at p99 (E7).
//! 2. Where everything else always takes all cores, idle threads get nothing, and what is not compacted makes reads slower still. So
//!    what they had is looked at each second; after two in which they waited for a core four times as long as they ran, they are not
//!    idle for ten.
//! 3. A process that may not leave it (no CAP_SYS_NICE, no RLIMIT_NICE) would be stuck there. It has its tasks at the node's priority.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use halcyon_io::{
    CoreTime, ThreadPriority, hurry_idle_threads, idle_threads_can_hurry, idle_threads_core_time,
    spawn_thread,
};

use crate::messages::Idle;

const LOOK: Duration = Duration::from_secs(1);
/// Waiting by running from which a second counts as a hungry one.
const HUNGRY: u32 = 4;
/// Hungry seconds in a row after which they hurry, and for how many.
const PATIENCE: u32 = 2;
const HURRY: u32 = 10;

/// Tasks at the priority that is wanted, as long as this lives.
pub(crate) struct Priority {
    pub(crate) of_tasks: ThreadPriority,
    /// Its end is the guard's.
    _guarded: Option<Sender<()>>,
}

impl Priority {
    pub(crate) fn wanted(idle: Idle) -> Priority {
        match idle {
            Idle::Never => Priority { of_tasks: ThreadPriority::Normal, _guarded: None },
            Idle::Always => Priority { of_tasks: ThreadPriority::Idle, _guarded: None },
            Idle::WithAShare if !idle_threads_can_hurry() => Priority::wanted(Idle::Never),
            Idle::WithAShare => {
                let (guarded, ended) = channel();
                spawn_thread("priority", ThreadPriority::Normal, move || watch(&ended));
                Priority { of_tasks: ThreadPriority::Idle, _guarded: Some(guarded) }
            }
        }
    }
}

fn watch(ended: &Receiver<()>) {
    let mut hunger = Hunger::default();
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        hurry_idle_threads(hunger.look(&idle_threads_core_time()));
    }
}

#[derive(Default)]
struct Hunger {
    before: HashMap<i32, CoreTime>,
    hungry: u32,
    hurries: u32,
}

impl Hunger {
    /// Whether they are to hurry, by what they have had so far; a second after the last look.
    fn look(&mut self, threads: &[(i32, CoreTime)]) -> bool {
        let mut since = CoreTime::default();
        for (thread, now) in threads {
            let before = self.before.get(thread).copied().unwrap_or_default();
            since.ran += now.ran.saturating_sub(before.ran);
            since.waited += now.waited.saturating_sub(before.waited);
        }
        self.before = threads.iter().copied().collect();
        self.hurries = self.hurries.saturating_sub(1);
        // Some of a second: what has only begun to wait is no sign yet.
        let is_hungry = since.waited >= LOOK / 2 && since.waited >= since.ran * HUNGRY;
        self.hungry = if is_hungry { self.hungry + 1 } else { 0 };
        if self.hungry >= PATIENCE {
            self.hurries = HURRY;
        }
        self.hurries > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(ran: u64, waited: u64) -> CoreTime {
        CoreTime { ran: Duration::from_millis(ran), waited: Duration::from_millis(waited) }
    }

    /// Proves that threads hurry when they had next to nothing twice, for as long as is said, and then wait to be hungry again; that
    /// one that runs, or sleeps, is not hungry.
    #[test]
    fn hunger() {
        let mut hunger = Hunger::default();
        let (mut had, mut seconds) = (CoreTime::default(), Vec::new());
        let mut second = |time: CoreTime| {
            had.ran += time.ran;
            had.waited += time.waited;
            hunger.look(&[(7, had), (8, CoreTime::default())])
        };
        for time in
            [millis(900, 100), millis(300, 700), millis(0, 0), millis(10, 400), millis(50, 900)]
        {
            assert!(!second(time), "{time:?}");
        }
        for _ in 0..14 {
            seconds.push(second(if seconds.last() == Some(&true) {
                millis(500, 500)
            } else {
                millis(0, 1000)
            }));
        }
        let hurried = seconds.iter().filter(|hurried| **hurried).count();
        assert!(seconds[0] && hurried as u32 == HURRY + 1 + 1, "{seconds:?}");
    }

    /// Proves that a thread that has ended leaves nothing behind.
    #[test]
    fn threads_end() {
        let mut hunger = Hunger::default();
        assert!(!hunger.look(&[(7, millis(0, 5000))]));
        assert!(!hunger.look(&[]));
        assert!(!hunger.look(&[(7, millis(800, 100))]));
        assert_eq!(hunger.before.len(), 1);
    }
}
