//! SIGTERM and SIGINT as something that a task can await.
//!
//! The handler may do almost nothing, so it writes one byte into a pipe; a thread reads the pipe and wakes the task.

use std::io::{self, Read};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

use futures_channel::mpsc;
use futures_util::StreamExt;

use crate::{ThreadPriority, spawn_thread};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM
    Terminate,
    /// SIGINT
    Interrupt,
}

/// The stop signals of this process, from now on.
#[derive(Debug)]
pub struct Signals(mpsc::UnboundedReceiver<Signal>);

static PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn note(signal: libc::c_int) {
    let byte = signal as u8;
    // SAFETY: write is async-signal-safe; the byte is a live local. A full pipe has signals enough. errno is whoever's
    // the signal interrupted.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(PIPE.load(SeqCst), (&raw const byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

impl Signals {
    /// Takes the stop signals over from the system's default, which ends the process at once.
    pub fn catch() -> io::Result<Signals> {
        let mut ends = [0; 2];
        // SAFETY: the array has room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let mut reader = unsafe { std::fs::File::from_raw_fd(ends[0]) };
        PIPE.store(ends[1], SeqCst);
        for signal in [libc::SIGTERM, libc::SIGINT] {
            let handler: extern "C" fn(libc::c_int) = note;
            // SAFETY: a zeroed sigaction is valid; the handler does only what a handler may.
            let outcome = unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &action, std::ptr::null_mut())
            };
            if outcome != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let (sender, receiver) = mpsc::unbounded();
        // The thread ends with the process.
        drop(spawn_thread("signals", ThreadPriority::Normal, move || {
            let mut byte = [0];
            while matches!(reader.read(&mut byte), Ok(1)) {
                let signal = match i32::from(byte[0]) {
                    libc::SIGINT => Signal::Interrupt,
                    _ => Signal::Terminate,
                };
                if sender.unbounded_send(signal).is_err() {
                    return;
                }
            }
        }));
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

    /// Proves that a signal reaches the task that waits for it, and does not end the process.
    #[test]
    fn signals_arrive() {
        let mut signals = Signals::catch().unwrap();
        crate::block_on(async {
            for (number, expected) in
                [(libc::SIGTERM, Signal::Terminate), (libc::SIGINT, Signal::Interrupt)]
            {
                // SAFETY: the handler is installed.
                unsafe { libc::kill(libc::getpid(), number) };
                assert_eq!(signals.next().await, expected);
            }
        });
    }
}
