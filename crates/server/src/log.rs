//! The operator's log: lines with level, thread and time, as in Cassandra's `system.log`.
//!
//! ```text
//! INFO  [shard-0] 2026-05-04 12:00:00,123 - ready after 42 ms
//! ```
//!
//! Whoever logs hands a line to a writer's thread and goes on: a terminal or a pipe that nobody reads must not stop a shard. If the
//! writer is far behind, lines are lost, and a later line says how many.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use halcyon_io::clock::unix_micros;
use halcyon_model::value::timestamp_json_string;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Lines that may wait for the writer.
const WAITING_MAX: usize = 10_000;

/// What happened, from the worst on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

impl Level {
    pub const ALL: [Level; 4] = [Level::Error, Level::Warn, Level::Info, Level::Debug];

    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "ERROR",
            Level::Warn => "WARN",
            Level::Info => "INFO",
            Level::Debug => "DEBUG",
        }
    }
}

impl std::str::FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        let found = Level::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("`{text}` is no level; allowed: error, warn, info, debug"))
    }
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub level: Level,
    pub text: String,
}

/// The destination of the lines, chosen by the binary.
#[derive(Clone)]
pub struct Log {
    to: Arc<dyn Fn(Line) + Send + Sync>,
    most: Level,
}

/// Writes what is left of the log when it is dropped.
pub struct LogWriter(#[allow(dead_code, reason = "it is there to be dropped")] WorkerGuard);

impl Log {
    /// A log of all lines.
    pub fn new(to: impl Fn(Line) + Send + Sync + 'static) -> Log {
        Log { to: Arc::new(to), most: Level::Debug }
    }

    /// What is worse is written too.
    pub(crate) fn level(&self) -> Level {
        self.most
    }

    /// A log of all lines of a level and worse, written to `to` by a thread of its own.
    pub fn written(most: Level, to: impl Write + Send + 'static) -> (Log, LogWriter) {
        let builder = NonBlockingBuilder::default().buffered_lines_limit(WAITING_MAX).lossy(true);
        let (lines, guard) = builder.thread_name("log").finish(to);
        let lost = lines.error_counter();
        let told = AtomicUsize::new(0);
        let lines = Mutex::new(lines);
        let to = move |line: Line| {
            if line.level > most {
                return;
            }
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            let all_lost = lost.dropped_lines();
            let newly = all_lost.saturating_sub(told.swap(all_lost, Relaxed));
            if newly > 0 {
                let text = format!("{newly} lines of this log were lost: it is read too slowly");
                write_line(&mut lines, &Line { level: Level::Warn, text });
            }
            write_line(&mut lines, &line);
        };
        (Log { to: Arc::new(to), most }, LogWriter(guard))
    }

    pub fn say(&self, what: fmt::Arguments<'_>) {
        (self.to)(Line { level: Level::Info, text: what.to_string() });
    }

    pub(crate) fn warning(&self, what: fmt::Arguments<'_>) {
        (self.to)(Line { level: Level::Warn, text: what.to_string() });
    }

    pub(crate) fn error(&self, what: fmt::Arguments<'_>) {
        (self.to)(Line { level: Level::Error, text: what.to_string() });
    }

    pub(crate) fn debug(&self, what: fmt::Arguments<'_>) {
        (self.to)(Line { level: Level::Debug, text: what.to_string() });
    }
}

/// A failure to log is nothing that could be logged.
fn write_line(lines: &mut NonBlocking, line: &Line) {
    let thread = std::thread::current();
    let text = formatted(line, thread.name().unwrap_or("main"), unix_micros() / 1000);
    let _: io::Result<()> = lines.write_all(text.as_bytes());
}

/// `%-5level [%thread] %date{ISO8601} - %msg`, in UTC. A text of several lines stays one event: its other lines are indented.
fn formatted(line: &Line, thread: &str, millis: i64) -> String {
    let time = timestamp_json_string(millis);
    let time = time.trim_end_matches('Z').replace('.', ",");
    let text = line.text.trim_end().replace('\n', "\n    ");
    format!("{:<5} [{thread}] {time} - {text}\n", line.level.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Proves the format: level, thread, time, and one event for a text of several lines.
    #[test]
    fn lines_are_formatted_as_in_system_log() {
        let line = Line { level: Level::Warn, text: "first\nsecond\n".to_owned() };
        let expected = "WARN  [shard-1] 2026-05-04 12:00:00,123 - first\n    second\n";
        assert_eq!(formatted(&line, "shard-1", 1_777_896_000_123), expected);
    }

    /// Proves that lines below the level are left out, and that all others are written when the writer is dropped.
    #[test]
    fn the_level_is_obeyed() {
        let kept = Kept::default();
        let (log, writer) = Log::written("warn".parse().unwrap(), kept.clone());
        log.say(format_args!("quiet"));
        log.warning(format_args!("loud"));
        log.error(format_args!("louder"));
        drop((log, writer));
        let written = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let ends: Vec<_> = written.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
        assert_eq!(ends, ["loud", "louder"]);
        assert!("loud".parse::<Level>().unwrap_err().contains("allowed: error, warn, info, debug"));
    }

    /// Proves that a reader that does not read loses lines, and delays nobody.
    #[test]
    fn a_slow_reader_delays_nobody() {
        struct Stuck(std::sync::mpsc::Receiver<()>);
        impl Write for Stuck {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let _ = self.0.recv();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (go_on, stuck) = std::sync::mpsc::channel();
        let (log, writer) = Log::written(Level::Info, Stuck(stuck));
        for number in 0..2 * WAITING_MAX {
            log.say(format_args!("{number}"));
        }
        drop(go_on);
        drop((log, writer));
    }
}
