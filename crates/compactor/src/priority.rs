//! The priority of the tasks.
//!
//! 1. A node's requests come before its compactions, so those run on idle threads: with reads going on they take as long as at the node's
//!    priority, and the reads half as long at p99 (E7).
//! 2. Where everything else always takes all cores, idle threads get nothing, and what is not compacted makes reads slower still. So
//!    what they had is looked at each second; after three in which those that want a core had less than a fifth of one each, they are
//!    not idle for ten.
//!    They are also raised when a task is cancelled, so that it notices.
//! 3. A process that may not leave it (no CAP_SYS_NICE, no RLIMIT_NICE) would be stuck there. It has its tasks at the node's priority.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use halcyon_io::{
    IdleThread, ThreadPriority, hurry_idle_threads, idle_threads, idle_threads_can_hurry,
    spawn_thread,
};

use crate::messages::Idle;

const LOOK: Duration = Duration::from_secs(1);
/// A thread that wants a core and has had less of it in a second is hungry.
const FIFTH: Duration = Duration::from_millis(200);
/// Hungry seconds in a row after which they hurry, and for how many. One that waits for the disk all the time is seen wanting a core
/// now and then, but not so often.
const PATIENCE: u32 = 3;
const HURRY: u32 = 10;

/// Tasks at the priority that is wanted, as long as this lives.
pub(crate) struct Priority {
    pub(crate) of_tasks: ThreadPriority,
    /// Its end is the guard's.
    guard: Option<Sender<()>>,
}

impl Priority {
    pub(crate) fn wanted(idle: Idle) -> Priority {
        match idle {
            Idle::Never => Priority { of_tasks: ThreadPriority::Normal, guard: None },
            Idle::Always => Priority { of_tasks: ThreadPriority::Idle, guard: None },
            Idle::WithAShare if !idle_threads_can_hurry() => Priority::wanted(Idle::Never),
            Idle::WithAShare => {
                let (guard, heard) = channel();
                spawn_thread("priority", ThreadPriority::Normal, move || watch(&heard));
                Priority { of_tasks: ThreadPriority::Idle, guard: Some(guard) }
            }
        }
    }

    /// Lets tasks have a share of the cores now.
    pub(crate) fn hurry(&self) {
        // Without a guard they have the configured priority.
        let _ = self.guard.as_ref().map(|guard| guard.send(()));
    }
}

fn watch(heard: &Receiver<()>) {
    let mut hunger = Hunger::default();
    loop {
        match heard.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => hurry_idle_threads(hunger.look(&idle_threads())),
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(()) => {
                hunger.hurries = HURRY;
                hurry_idle_threads(true);
            }
        }
    }
}

#[derive(Default)]
struct Hunger {
    ran: HashMap<i32, Duration>,
    hungry: u32,
    hurries: u32,
}

impl Hunger {
    /// Whether they are to hurry; a second after the last look.
    fn look(&mut self, threads: &[IdleThread]) -> bool {
        let before = std::mem::take(&mut self.ran);
        let (mut ready, mut had) = (0, Duration::ZERO);
        for IdleThread { number, ran, is_ready } in threads {
            self.ran.insert(*number, *ran);
            if let Some(before) = before.get(number).filter(|_| *is_ready) {
                ready += 1;
                had += ran.saturating_sub(*before);
            }
        }
        self.hurries = self.hurries.saturating_sub(1);
        self.hungry = if ready > 0 && had < FIFTH * ready { self.hungry + 1 } else { 0 };
        if self.hungry >= PATIENCE {
            self.hurries = HURRY;
        }
        self.hurries > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that threads hurry after seconds in which the waiting ones had next to nothing, for as long as configured, and then
    /// wait to be hungry again; that one that runs, sleeps, or has just started is not hungry.
    #[test]
    fn hunger() {
        let mut hunger = Hunger::default();
        let mut ran = Duration::ZERO;
        let mut second = |millis: u64, is_ready: bool| {
            ran += Duration::from_millis(millis);
            let asleep = IdleThread { number: 8, ran: Duration::ZERO, is_ready: false };
            hunger.look(&[IdleThread { number: 7, ran, is_ready }, asleep])
        };
        let fed = [(0, true), (0, true), (0, true), (200, true), (0, true), (0, true), (0, false)];
        for (millis, is_ready) in fed {
            assert!(!second(millis, is_ready));
        }
        let mut hurried = Vec::new();
        for _ in 0..16 {
            let fed = if hurried.last() == Some(&true) { 500 } else { 10 };
            hurried.push(second(fed, true));
        }
        let first = hurried.iter().position(|hurries| *hurries).unwrap() as u32;
        let then = hurried.iter().skip_while(|hurries| !**hurries).take_while(|hurries| **hurries);
        assert_eq!((first + 1, then.count() as u32), (PATIENCE, HURRY), "{hurried:?}");
        assert!(hurried.ends_with(&[false, false, false, true]), "{hurried:?}");
    }

    /// Proves that a thread that has ended leaves nothing behind.
    #[test]
    fn threads_end() {
        let mut hunger = Hunger::default();
        let thread = |number| IdleThread { number, ran: Duration::ZERO, is_ready: true };
        for number in 0..2 * PATIENCE as i32 {
            assert!(!hunger.look(&[thread(number)]));
        }
        assert_eq!(hunger.ran.len(), 1);
    }
}
