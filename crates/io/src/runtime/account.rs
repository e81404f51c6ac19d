//! Accounts of processor time: what a piece of work has had of the cores, on all of its threads.
//!
//! A thread that enters an account is charged to it until it leaves, and so are the threads that it starts meanwhile, and theirs. Running
//! threads are asked by their clocks when the account is read, so it need not wait for their end.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::mutex::Mutex;

#[derive(Debug, Clone, Default)]
pub struct CpuAccount(Arc<Mutex<Charges>>);

#[derive(Debug, Default)]
struct Charges {
    /// Of threads that have left.
    left: Duration,
    /// Of each thread that is charged: its clock, and what that said when the thread entered.
    running: Vec<(libc::clockid_t, Duration)>,
}

/// The calling thread is charged as long as this lives.
#[must_use]
#[derive(Debug)]
pub struct Charged {
    account: CpuAccount,
    clock: libc::clockid_t,
    outside: Option<CpuAccount>,
}

thread_local! {
    static ACCOUNT: RefCell<Option<CpuAccount>> = const { RefCell::new(None) };
}

impl CpuAccount {
    /// Charges the calling thread, and the threads that it starts.
    pub fn enter(&self) -> Charged {
        let clock = own_clock();
        self.0.lock().running.push((clock, time(clock)));
        let outside = ACCOUNT.replace(Some(self.clone()));
        Charged { account: self.clone(), clock, outside }
    }

    /// Of the calling thread.
    pub(super) fn current() -> Option<CpuAccount> {
        ACCOUNT.with_borrow(Clone::clone)
    }

    /// User and system time so far.
    pub fn spent(&self) -> Duration {
        let charges = self.0.lock();
        let running = charges.running.iter();
        charges.left
            + running
                .map(|(clock, entered)| time(*clock).saturating_sub(*entered))
                .sum::<Duration>()
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        ACCOUNT.replace(self.outside.take());
        let mut charges = self.account.0.lock();
        if let Some(at) = charges.running.iter().position(|(clock, _)| *clock == self.clock) {
            let (clock, entered) = charges.running.swap_remove(at);
            charges.left += time(clock).saturating_sub(entered);
        }
    }
}

fn own_clock() -> libc::clockid_t {
    let mut clock = libc::CLOCK_THREAD_CPUTIME_ID;
    // SAFETY: the thread is the calling one, which lives; the clock is a live local.
    unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
    clock
}

/// Zero if the thread has ended.
fn time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is a live, writable local.
    let status = unsafe { libc::clock_gettime(clock, &mut time) };
    if status == 0 {
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ThreadPriority, spawn_thread};

    fn work(account: &CpuAccount) {
        let before = account.spent();
        while account.spent() == before {
            std::hint::black_box(before);
        }
    }

    /// Proves that work on a thread, and on one that it starts, is charged while both run and after; that work outside is not.
    #[test]
    fn threads_are_charged_to_the_account_that_started_them() {
        let account = CpuAccount::default();
        assert_eq!(account.spent(), Duration::ZERO);
        let charged = account.enter();
        work(&account);
        let own = account.spent();
        let of_thread = account.clone();
        let started = spawn_thread("charged", ThreadPriority::Normal, move || {
            assert!(CpuAccount::current().is_some());
            work(&of_thread);
        });
        started.join().unwrap();
        drop(charged);
        let all = account.spent();
        assert!(all > own && own > Duration::ZERO);
        let other = CpuAccount::default();
        let outside = spawn_thread("outside", ThreadPriority::Normal, move || {
            assert!(CpuAccount::current().is_none());
            let _charged = other.enter();
            work(&other);
        });
        outside.join().unwrap();
        assert_eq!(account.spent(), all);
    }
}
