//! File descriptors: the limit of this process, a reserve for its files, and patience when none is left.
//!
//! 1. The start raises the soft limit to the hard one.
//! 2. Listeners accept while more than the reserve is free ([`are_short`]): clients take all other descriptors, and the commit log, flushes
//!    and compactions find those of the reserve. The kernel gives out the lowest free number, so one `dup` tells how many are in use.
//! 3. A file that finds none all the same is opened again a little later ([`patiently`]). Its error is not taken for a failed device.

use std::io;
use std::time::Duration;

use crate::runtime::backend;
use crate::runtime::clock::Clock;
use crate::runtime::entered::is_simulated;

/// What is kept for files, of a limit that is large enough.
const RESERVE_MIN: u64 = 32;
const RESERVE_MAX: u64 = 4096;

/// Pauses between attempts double from the first: 10 s in all.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const ATTEMPTS: u32 = 10;

/// Lets this process open as many files as it may allow itself: the usual soft limit is 1024.
pub fn raise_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a live, writable local.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0 {
        limit.rlim_cur = limit.rlim_max;
        // Where it is refused the start tells of the limit. SAFETY: as above.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
    }
}

/// How many descriptors this process may have, and how many of them are not for clients.
pub fn limit_and_reserve() -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a live, writable local.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return (u64::MAX, RESERVE_MIN);
    }
    let reserve = (limit.rlim_cur / 4).clamp(RESERVE_MIN, RESERVE_MAX);
    (limit.rlim_cur, reserve.min(limit.rlim_cur / 2))
}

/// Whether only the reserve is left.
pub fn are_short() -> bool {
    if is_simulated() {
        // A simulated machine has enough.
        return false;
    }
    let (limit, reserve) = limit_and_reserve();
    // SAFETY: no memory is passed. The copy is closed at once and used for nothing.
    let lowest = unsafe { libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 0) };
    if lowest < 0 {
        // Without standard input nothing is known; any other failure is the one that is asked about.
        return io::Error::last_os_error().raw_os_error() != Some(libc::EBADF);
    }
    // SAFETY: it was opened above, and no other code has it.
    unsafe { libc::close(lowest) };
    u64::from(lowest.unsigned_abs()).saturating_add(reserve) >= limit
}

pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Makes a blocking call on the pool; again while it finds no descriptor, for some time.
pub(crate) async fn patiently<T, E>(
    clock: &Clock,
    call: impl Fn() -> Result<T, E> + Send + 'static,
    is_exhausted: impl Fn(&E) -> bool,
) -> Result<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    let mut call = call;
    let mut pause = FIRST_PAUSE;
    for _ in 0..ATTEMPTS {
        let (outcome, back) = backend::on_pool(move || (call(), call)).await;
        match outcome {
            Err(error) if is_exhausted(&error) => clock.sleep(pause).await,
            other => return other,
        }
        pause *= 2;
        call = back;
    }
    backend::on_pool(call).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;
    use crate::error::{Error, Operation};

    /// Proves that a call that finds no descriptor is made again until it finds one, and that other errors come at once.
    #[test]
    fn calls_are_made_again() {
        backend::block_on(async {
            let calls = Arc::new(AtomicU32::new(0));
            let failing = |times: u32, errno: i32| {
                let calls = calls.clone();
                calls.store(0, Relaxed);
                move || match calls.fetch_add(1, Relaxed) < times {
                    true => Err(io::Error::from_raw_os_error(errno)),
                    false => Ok(7),
                }
            };
            let clock = Clock::system();
            let outcome = patiently(&clock, failing(3, libc::EMFILE), is_exhausted).await;
            assert_eq!((outcome.unwrap(), calls.load(Relaxed)), (7, 4));
            let outcome = patiently(&clock, failing(3, libc::EIO), is_exhausted).await;
            assert_eq!((outcome.is_err(), calls.load(Relaxed)), (true, 1));
        });
    }

    /// Proves that a full table of descriptors is not taken for a failed device.
    #[test]
    fn exhaustion_is_no_device_failure() {
        for errno in [libc::EMFILE, libc::ENFILE] {
            let source = io::Error::from_raw_os_error(errno);
            assert!(is_exhausted(&source));
            let error = Error::on_name(source, std::path::Path::new("x"), Operation::Create);
            assert!(error.is_no_descriptors(), "{error:?}");
        }
    }

    /// Proves that a process with few open files is not short of them, and that the reserve is less than the limit.
    #[test]
    fn a_reserve_is_kept() {
        let (limit, reserve) = limit_and_reserve();
        assert!(reserve < limit);
        assert!(!are_short());
    }
}
