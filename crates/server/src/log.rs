//! The operator's log: lines with level, thread and time, as in Cassandra's `system.log`.
//!
//! ```text
//! INFO  [shard-0] 2026-05-04 12:00:00,123 - ready after 42 ms
//! ```
//!
//! A caller hands its line to a writer's thread and continues: a terminal or a pipe without a reader must not stop a shard. If the
//! writer is far behind, lines are lost, and a later line says how many.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use halcyon_io::clock::unix_micros;
use halcyon_model::value::timestamp_json_string;

use crate::log_writer::LogWriter;

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
        let (queue, writer) = LogWriter::start(to);
        let to = move |line: Line| {
            if line.level > most {
                return;
            }
            queue.add(|waiting| {
                let newly = waiting.take_lost();
                if newly > 0 {
                    let text =
                        format!("{newly} lines of this log were lost: it is read too slowly");
                    waiting.push(stamped(&Line { level: Level::Warn, text }));
                }
                waiting.push(stamped(&line));
            });
        };
        (Log { to: Arc::new(to), most }, writer)
    }

    /// Has panics logged, on whatever thread they are, with the thread's name.
    pub fn take_panics(&self) {
        let log = self.clone();
        halcyon_io::tell_panics(move |what| {
            log.error(format_args!(
                "{what}; what was being done has failed, the node goes on: report this defect of Halcyon"
            ));
        });
    }

    pub fn say(&self, what: fmt::Arguments<'_>) {
        self.line(Level::Info, what);
    }

    pub(crate) fn warning(&self, what: fmt::Arguments<'_>) {
        self.line(Level::Warn, what);
    }

    pub(crate) fn error(&self, what: fmt::Arguments<'_>) {
        self.line(Level::Error, what);
    }

    pub(crate) fn debug(&self, what: fmt::Arguments<'_>) {
        self.line(Level::Debug, what);
    }

    fn line(&self, level: Level, what: fmt::Arguments<'_>) {
        (self.to)(Line { level, text: visible(&what.to_string()) });
    }
}

/// Names and texts of clients are in lines: what moves a terminal's cursor, or shows text in another order than it stands, is escaped. The
/// ends of lines stay: other lines of a text are indented.
pub(crate) fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
            || (c.is_control() && c != '\n')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// A line of this thread, now.
fn stamped(line: &Line) -> String {
    let thread = std::thread::current();
    formatted(line, thread.name().unwrap_or("main"), unix_micros() / 1000)
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
    use std::io;
    use std::sync::Mutex;

    use super::*;
    use crate::log_writer::WAITING_MAX;

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

    /// Proves that no text of a client can move the cursor, begin a line of its own or turn the order of what is shown.
    #[test]
    fn control_characters_are_escaped() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let to = kept.clone();
        let log = Log::new(move |line| to.lock().unwrap().push(line));
        let controls = ('\0'..='\u{9f}').filter(|c| c.is_control());
        let turns = "\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}\u{200b}\u{feff}";
        for hidden in controls.chain(turns.chars()) {
            log.say(format_args!("snapshot a{hidden}b"));
            log.warning(format_args!("{hidden}"));
            log.error(format_args!("{hidden}"));
            log.debug(format_args!("{hidden}"));
            for line in kept.lock().unwrap().drain(..) {
                let formatted = formatted(&line, "t", 0);
                let shown = formatted.strip_suffix('\n').unwrap().replace("\n    ", "");
                assert!(shown.chars().all(|c| c != hidden && !c.is_control()), "{shown:?}");
            }
        }
        log.say(format_args!("\u{1b}[2Jé\r漢字"));
        assert_eq!(kept.lock().unwrap()[0].text, "\\u{1b}[2Jé\\r漢字");
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

    /// Proves that lost lines are counted, and that a later line says how many.
    #[test]
    fn lost_lines_are_counted() {
        struct Slow(std::sync::mpsc::Receiver<()>, Kept);
        impl Write for Slow {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let _ = self.0.recv();
                self.1.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let kept = Kept::default();
        let (go_on, stuck) = std::sync::mpsc::channel();
        let (log, writer) = Log::written(Level::Info, Slow(stuck, kept.clone()));
        let all = 3 + WAITING_MAX;
        for number in 0..all {
            log.say(format_args!("{number}"));
        }
        drop(go_on);
        let count = || kept.0.lock().unwrap().iter().filter(|byte| **byte == b'\n').count();
        while count() < WAITING_MAX {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        log.say(format_args!("last"));
        drop((log, writer));
        let written = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let told = written.lines().rev().nth(1).unwrap();
        let lost = all - (written.lines().count() - 2);
        assert!(
            lost > 0
                && told.ends_with(&format!(
                    "- {lost} lines of this log were lost: it is read too slowly"
                )),
            "{told}"
        );
    }

    /// Proves that a reader that does not read loses lines, and delays no caller.
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
