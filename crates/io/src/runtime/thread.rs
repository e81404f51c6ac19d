//! Threads with a scheduling class.

use std::cell::Cell;
use std::fs;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use super::account::CpuAccount;
use super::panics::caught;
use crate::sync::mutex::Mutex;

/// How the kernel's scheduler treats a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadPriority {
    Normal,
    /// `SCHED_BATCH`: a full share, but never preempts one that wakes up.
    Batch,
    /// `SCHED_IDLE`: gives the core to any other thread at once.
    Idle,
}

thread_local! {
    static PRIORITY: Cell<ThreadPriority> = const { Cell::new(ThreadPriority::Normal) };
}

/// Idle threads that run, and whether they are wanted to hurry.
static IDLE: Mutex<Vec<libc::pid_t>> = Mutex::new(Vec::new());
static HURRY: AtomicBool = AtomicBool::new(false);

/// What the calling thread was started as; threads that it starts for its own work should be the same.
pub fn thread_priority() -> ThreadPriority {
    PRIORITY.get()
}

/// Starts a named thread. Where the class cannot be had, the thread runs as a normal one: the class
/// is about latency, not correctness. A thread inherits its starter's class, and one that is idle
/// may not rise from that by itself: an idle thread can only start idle ones.
///
/// # Panics
/// If the system starts no more threads, as `std::thread::spawn` does.
pub fn spawn_thread<T: Send + 'static>(
    name: &str,
    priority: ThreadPriority,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let account = CpuAccount::current();
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _charged = account.as_ref().map(CpuAccount::enter);
        PRIORITY.set(priority);
        let body = || caught(body).unwrap_or_else(|panic| resume_unwind(panic));
        match priority {
            ThreadPriority::Normal => body(),
            ThreadPriority::Batch => {
                set_policy(THIS_THREAD, libc::SCHED_BATCH);
                body()
            }
            ThreadPriority::Idle => {
                let _registered = Registered::as_idle();
                body()
            }
        }
    });
    started.unwrap_or_else(|e| {
        panic!(
            "cannot start the thread {name}: {e}; raise the limit on threads (ulimit -u, TasksMax=)"
        )
    })
}

/// Bytes that a thread works on between two places where it gives its core away: some 50 µs at the speed of LZ4.
const BYTES_BETWEEN: usize = 32 << 10;

/// Called after work on `bytes`: a thread that is not a normal one gives its core to one that waits for it.
///
/// An idle thread that computes is not always interrupted for a normal one. Kernels that preempt lazily (Linux since 6.13) send no
/// interrupt to a core where it runs when another thread wakes up there; and EEVDF (since 6.6) takes the idle thread where the normal one
/// has just had more than its share. Either waits for the next tick, up to 4 ms.
///
/// One that hurries keeps its core: among batch threads, each core given away is a whole turn of everybody else, and beside four busy
/// programs on two cores a fortieth of a core is left.
pub fn give_way(bytes: usize) {
    thread_local! {
        static DONE: Cell<usize> = const { Cell::new(0) };
    }
    if PRIORITY.get() == ThreadPriority::Normal || HURRY.load(Relaxed) {
        return;
    }
    let done = DONE.get() + bytes;
    DONE.set(done % BYTES_BETWEEN);
    if done >= BYTES_BETWEEN {
        std::thread::yield_now();
    }
}

/// Makes idle threads, those that run and those to come, batch threads until further notice, or idle ones again. Where a running one
/// may not rise (without CAP_SYS_NICE), only those to come do.
pub fn hurry_idle_threads(hurry: bool) {
    let idle = IDLE.lock();
    HURRY.store(hurry, Relaxed);
    idle.iter().for_each(|thread| {
        set_policy(*thread, idle_policy());
    });
}

/// Whether running idle threads may become batch threads: with CAP_SYS_NICE, or under an RLIMIT_NICE that allows their niceness.
pub fn idle_threads_can_hurry() -> bool {
    let trial = std::thread::Builder::new().name("can-hurry".to_owned());
    let rises = trial.spawn(|| {
        set_policy(THIS_THREAD, libc::SCHED_IDLE) && set_policy(THIS_THREAD, libc::SCHED_BATCH)
    });
    rises.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// What an idle thread has had of the cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleThread {
    pub number: i32,
    /// Time on cores since it started, in hundredths of a second.
    pub ran: Duration,
    /// It runs, or would if it had a core.
    pub is_ready: bool,
}

/// Each idle thread that runs. (The kernel's own account of the wait for a core, `schedstat`, gets it when the wait is over.)
pub fn idle_threads() -> Vec<IdleThread> {
    let idle = IDLE.lock().clone();
    idle.into_iter().filter_map(idle_thread).collect()
}

fn idle_thread(number: libc::pid_t) -> Option<IdleThread> {
    let said = fs::read(format!("/proc/self/task/{number}/stat")).ok()?;
    // TID (NAME) STATE …, times in user and system mode as fields 14 and 15; a name may have brackets too.
    let behind_name = said.rsplit(|byte| *byte == b')').next()?;
    let mut fields = std::str::from_utf8(behind_name).ok()?.split_whitespace();
    let is_ready = fields.next()? == "R";
    let mut ticks = fields.skip(10).map_while(|field| field.parse::<u64>().ok());
    let ran = Duration::from_millis((ticks.next()? + ticks.next()?) * 10);
    Some(IdleThread { number, ran, is_ready })
}

fn idle_policy() -> libc::c_int {
    if HURRY.load(Relaxed) { libc::SCHED_BATCH } else { libc::SCHED_IDLE }
}

/// An idle thread's place in the list of those.
struct Registered(libc::pid_t);

impl Registered {
    fn as_idle() -> Registered {
        // GLIBC has a function for it since 2.30 only.
        // SAFETY: it has no arguments and cannot fail.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) } as libc::pid_t;
        let mut idle = IDLE.lock();
        idle.push(thread);
        set_policy(THIS_THREAD, idle_policy());
        Registered(thread)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        IDLE.lock().retain(|thread| *thread != self.0);
    }
}

const THIS_THREAD: libc::pid_t = 0;

fn set_policy(thread: libc::pid_t, policy: libc::c_int) -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are a live local; a thread that has ended or is another process's is only refused.
    unsafe { libc::sched_setscheduler(thread, policy, &parameters) == 0 }
}

/// Binds the calling thread to one core; `false` if the core is not this process's to use.
pub fn pin_to_core(core: usize) -> bool {
    // SAFETY: a zeroed cpu_set_t is an empty set; the core is within it; zero is this thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if core >= libc::CPU_SETSIZE as usize {
            return false;
        }
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

/// The cores that this process may use.
pub fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the class is the thread's own.
    #[test]
    fn scheduling_class() {
        // SAFETY: zero is the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        for (priority, expected) in [
            (ThreadPriority::Normal, libc::SCHED_OTHER),
            (ThreadPriority::Batch, libc::SCHED_BATCH),
            (ThreadPriority::Idle, libc::SCHED_IDLE),
        ] {
            let thread = spawn_thread("class", priority, policy);
            assert_eq!(thread.join().unwrap(), expected);
        }
    }
}
