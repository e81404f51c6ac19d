//! Threads with a scheduling class.

use std::thread::JoinHandle;

/// How the kernel's scheduler treats a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadPriority {
    Normal,
    /// `SCHED_BATCH`: a full share, but never preempts one that wakes up.
    Batch,
    /// `SCHED_IDLE`: gives the core to any other thread at once.
    Idle,
}

/// Starts a named thread. Where the class cannot be had, the thread runs as a normal one: the class
/// is about latency, not correctness.
///
/// # Panics
/// If the system starts no more threads, as `std::thread::spawn` does.
pub fn spawn_thread<T: Send + 'static>(
    name: &str,
    priority: ThreadPriority,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let policy = match priority {
            ThreadPriority::Normal => None,
            ThreadPriority::Batch => Some(libc::SCHED_BATCH),
            ThreadPriority::Idle => Some(libc::SCHED_IDLE),
        };
        if let Some(policy) = policy {
            set_policy(policy);
        }
        body()
    });
    started.unwrap_or_else(|e| {
        panic!(
            "cannot start the thread {name}: {e}; raise the limit on threads (ulimit -u, TasksMax=)"
        )
    })
}

fn set_policy(policy: libc::c_int) {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: zero means the calling thread; the parameters are a live local.
    unsafe { libc::sched_setscheduler(0, policy, &parameters) };
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
