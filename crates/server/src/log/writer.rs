//! The thread that writes the log, behind a bounded queue.
//!
//! ```text
//! Log ─► queue, at most WAITING_MAX lines ─► thread `log` ─► sinks: stderr, system.log, debug.log
//! ```
//!
//! 1. A line that finds the queue full is lost and counted, and so is one that a sink cannot write; the next caller learns the count.
//! 2. The thread flushes when the queue is empty.
//! 3. Dropping [`LogWriter`] waits until the thread has written the queue, but not forever: the reader may be stuck.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use halcyon_io::{Condvar, Mutex, ThreadPriority, spawn_thread};

use super::level::Level;

/// Lines that may wait for the writer. Chosen: ten times as many would hold some megabytes for a reader that is stuck.
pub(crate) const WAITING_MAX: usize = 10_000;
/// How long the end of the process waits for a reader. Chosen: a stuck terminal must not keep a node from its restart.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where lines go: those of a level and worse.
pub(super) struct Sink {
    pub(super) most: Level,
    pub(super) to: Box<dyn Write + Send>,
    /// Standard error is read by systemd.
    pub(super) is_journal: bool,
}

impl Sink {
    fn write(&mut self, level: Level, line: &str) -> io::Result<()> {
        match self.is_journal {
            true => self.to.write_all(super::line::for_journal(level, line).as_bytes()),
            false => self.to.write_all(line.as_bytes()),
        }
    }
}

/// The lines that wait.
#[derive(Default)]
pub(crate) struct Waiting {
    lines: VecDeque<(Level, String)>,
    lost: usize,
    is_ending: bool,
    has_ended: bool,
}

impl Waiting {
    pub(crate) fn push(&mut self, level: Level, line: String) {
        if self.lines.len() < WAITING_MAX {
            self.lines.push_back((level, line));
        } else {
            self.lost += 1;
        }
    }

    /// The number of lines lost since the last call; zero while the queue has no room for a line that reports them.
    pub(crate) fn take_lost(&mut self) -> usize {
        if self.lines.len() < WAITING_MAX { std::mem::take(&mut self.lost) } else { 0 }
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Queue {
    /// Adds lines, which nothing else comes between.
    pub(crate) fn add(&self, lines: impl FnOnce(&mut Waiting)) {
        lines(&mut self.waiting.lock());
        self.changed.notify_all();
    }

    /// The next line if there is one, or else after a wait; `None` at the end.
    fn next(&self) -> Option<(Level, String)> {
        let is_idle = |waiting: &mut Waiting| waiting.lines.is_empty() && !waiting.is_ending;
        let mut waiting = self.changed.wait_while(self.waiting.lock(), is_idle);
        waiting.lines.pop_front()
    }

    fn write_all(&self, mut sinks: Vec<Sink>) {
        while let Some((level, line)) = self.next() {
            let mut is_lost = false;
            for sink in sinks.iter_mut().filter(|sink| level <= sink.most) {
                is_lost |= sink.write(level, &line).is_err();
            }
            let mut waiting = self.waiting.lock();
            waiting.lost += usize::from(is_lost);
            if waiting.lines.is_empty() {
                drop(waiting);
                // An error comes back at the next write.
                sinks.iter_mut().for_each(|sink| drop(sink.to.flush()));
            }
        }
        drop(sinks);
        self.add(|waiting| waiting.has_ended = true);
    }
}

/// Writes the rest of the queue when it is dropped.
pub struct LogWriter(Arc<Queue>);

impl LogWriter {
    /// Starts the thread.
    pub(super) fn start(sinks: Vec<Sink>) -> (Arc<Queue>, LogWriter) {
        let queue = Arc::<Queue>::default();
        let written = queue.clone();
        // The thread ends when the writer is dropped.
        drop(spawn_thread("log", ThreadPriority::Normal, move || written.write_all(sinks)));
        (queue.clone(), LogWriter(queue))
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.0.add(|waiting| waiting.is_ending = true);
        let is_writing = |waiting: &mut Waiting| !waiting.has_ended;
        // Whatever the outcome, the process ends.
        drop(self.0.changed.wait_timeout_while(self.0.waiting.lock(), PATIENCE, is_writing));
    }
}
