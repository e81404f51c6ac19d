//! Draws the progress of a compaction on a separate thread.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use halcyon_compaction::Progress;
use halcyon_io::{ThreadPriority, spawn_thread};
use indicatif::ProgressBar;

use crate::console::Console;

pub(super) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<()>,
    bar: ProgressBar,
}

impl Watch {
    pub(super) fn start(progress: &Progress, console: Console, total: u64, wanted: bool) -> Watch {
        let bar = console.progress("compact", total, wanted);
        let (stop, stopped) = channel();
        let (drawn, watched) = (bar.clone(), progress.clone());
        let thread = spawn_thread("progress", ThreadPriority::Normal, move || {
            while stopped.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout)
            {
                drawn.set_position(watched.snapshot().data_read);
            }
        });
        Watch { stop, thread, bar }
    }

    pub(super) fn stop(self) {
        // An error means that the thread has ended already.
        let _ = self.stop.send(());
        let _ = self.thread.join();
        self.bar.finish_and_clear();
    }
}
