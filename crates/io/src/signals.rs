//! What the signals of the system mean to a server: most of them end a process that says nothing, and a server is ended by its operator
//! alone.
//!
//! | signals | here |
//! |---|---|
//! | TERM, INT, HUP, PWR, XCPU | stop: a task can await them. A HUP that the parent ignores (`nohup`) stays ignored |
//! | QUIT | a word in the log: who operates Cassandra asks a JVM for its threads with it |
//! | XFSZ | ignored, by all commands: the write fails with EFBIG |
//! | PIPE | ignored by Rust's start: the write fails with EPIPE |
//! | USR1, USR2, ALRM, VTALRM, PROF, IO, STKFLT, real-time ones | ignored: this process sets no timer and asks for none of them |
//! | ABRT, SEGV, BUS, ILL, FPE, TRAP, SYS | the system's default: a fault, with its core |
//! | KILL, STOP, TSTP, TTIN, TTOU, CONT, CHLD, URG, WINCH | the system's default, which ends nothing but for KILL |
//!
//! Other commands take TERM, INT and HUP only ([`on_stop`]); the others keep the system's default.
//!
//! The handler may do almost nothing, so it writes one byte into a pipe; a thread reads the pipe and wakes the task, or calls a function.

use std::io::{self, Read};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

use futures_channel::mpsc;
use futures_util::StreamExt;

use crate::{ThreadPriority, spawn_thread};

/// A signal that a task handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// By its name.
    Stop(&'static str),
    /// SIGQUIT
    Threads,
}

const HANDLED: [(libc::c_int, Signal); 6] = [
    (libc::SIGTERM, Signal::Stop("SIGTERM")),
    (libc::SIGINT, Signal::Stop("SIGINT")),
    (libc::SIGHUP, Signal::Stop("SIGHUP")),
    (libc::SIGPWR, Signal::Stop("SIGPWR")),
    (libc::SIGXCPU, Signal::Stop("SIGXCPU")),
    (libc::SIGQUIT, Signal::Threads),
];

const IGNORED: [libc::c_int; 7] = [
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGSTKFLT,
];

/// A file that may not grow is an error of the write, not the end of the process.
pub fn ignore_file_size_signal() -> io::Result<()> {
    dispose(libc::SIGXFSZ, libc::SIG_IGN)
}

fn dispose(signal: libc::c_int, how: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: a zeroed sigaction is valid; the only handler does only what a handler may.
    let outcome = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = how;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &action, std::ptr::null_mut())
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: a zeroed sigaction is valid, and is only filled.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// The stop signals of this process, from now on.
#[derive(Debug)]
pub struct Signals(mpsc::UnboundedReceiver<Signal>);

static PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn note(signal: libc::c_int) {
    let byte = signal as u8;
    // SAFETY: write is async-signal-safe; the byte is a live local. A full pipe has signals enough. errno is that of the code
    // the signal interrupted.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(PIPE.load(SeqCst), (&raw const byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// Has a thread call `each` for every signal of [`HANDLED`] that is taken, until it returns `false`.
fn take(
    is_taken: impl Fn(libc::c_int) -> bool,
    mut each: impl FnMut(Signal) -> bool + Send + 'static,
) -> io::Result<()> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and only this code has it.
    let mut reader = unsafe { std::fs::File::from_raw_fd(ends[0]) };
    PIPE.store(ends[1], SeqCst);
    let handler: extern "C" fn(libc::c_int) = note;
    for (signal, _) in HANDLED {
        if is_taken(signal) {
            dispose(signal, handler as libc::sighandler_t)?;
        }
    }
    // The thread ends with the process.
    drop(spawn_thread("signals", ThreadPriority::Normal, move || {
        let mut byte = [0];
        while matches!(reader.read(&mut byte), Ok(1)) {
            let of_byte = |(number, _): &&(i32, Signal)| *number == i32::from(byte[0]);
            let Some((_, signal)) = HANDLED.iter().find(of_byte) else { continue };
            if !each(*signal) {
                return;
            }
        }
    }));
    Ok(())
}

/// Has a thread call `stop` for every TERM, INT and HUP, which end the process otherwise.
pub fn on_stop(mut stop: impl FnMut() + Send + 'static) -> io::Result<()> {
    let is_taken = |signal| [libc::SIGTERM, libc::SIGINT, libc::SIGHUP].contains(&signal);
    take(is_taken, move |_| {
        stop();
        true
    })
}

impl Signals {
    /// Takes the signals over from the system's default, which ends the process at once.
    pub fn catch() -> io::Result<Signals> {
        let (sender, receiver) = mpsc::unbounded();
        let is_taken = |signal| signal != libc::SIGHUP || !is_ignored(signal);
        take(is_taken, move |signal| sender.unbounded_send(signal).is_ok())?;
        for signal in IGNORED.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
            dispose(signal, libc::SIG_IGN)?;
        }
        Ok(Signals(receiver))
    }

    /// The next signal.
    pub async fn next(&mut self) -> Signal {
        match self.0.next().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a signal reaches the task that waits for it, that others do nothing, and that none ends the process.
    #[test]
    fn signals_arrive() {
        // A parent such as `nohup` has this process ignore SIGHUP.
        dispose(libc::SIGHUP, libc::SIG_DFL).unwrap();
        let mut signals = Signals::catch().unwrap();
        ignore_file_size_signal().unwrap();
        crate::block_on(async {
            for number in
                IGNORED.into_iter().chain([libc::SIGXFSZ, libc::SIGRTMIN(), libc::SIGPIPE])
            {
                // SAFETY: it is ignored.
                unsafe { libc::kill(libc::getpid(), number) };
            }
            for (number, expected) in HANDLED {
                // SAFETY: the handler is installed.
                unsafe { libc::kill(libc::getpid(), number) };
                assert_eq!(signals.next().await, expected);
            }
        });
    }
}
