//! The operator's log: lines with level, thread, time and source, as in Cassandra's `system.log`.
//!
//! ```text
//! Log::say ─► level of the logger? ─► line.rs: text or JSON ─► writer.rs: queue, thread `log` ─► stderr, journal, files.rs
//! ```
//!
//! 1. The logger of a line is the module that calls; `level.rs` decides whether it is written.
//! 2. A caller hands its line to a writer's thread and continues: a terminal, a pipe without a reader or a slow device must not stop a
//!    shard. If the writer is far behind, lines are lost, and a later line says how many.
//! 3. A text from outside is escaped, line ends included.
//!
//! Why not `tracing`: its dispatcher belongs to a process or a thread, but a process may run several nodes (unit tests, `sim`), each with
//! a log of its own, and work of one node is on many threads; and what is long here (queue with counted losses, files by size, time and
//! total, logback's and journald's forms) is not in `tracing-subscriber` and `tracing-appender`. The engine reports typed events and
//! knows no logger.

pub(crate) mod cassandra;
mod files;
pub(crate) mod level;
mod line;
pub(crate) mod options;
mod recent;
mod writer;

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use halcyon_metrics::Counter;
use halcyon_model::in_one_line;

pub(crate) use files::FileOptions;
use level::{ByLogger, Levels};
pub use level::{Level, Threshold};
pub use line::{Format, Line};
use line::{logger_of, source_of};
pub use options::LogOptions;
use recent::Recent;
pub(crate) use recent::Said;
pub use writer::LogWriter;
use writer::Sink;

/// The destination of the lines, chosen by the binary.
#[derive(Clone)]
pub struct Log {
    to: Arc<dyn Fn(Line) + Send + Sync>,
    levels: Arc<Levels>,
    recent: Arc<Recent>,
    /// Panics that were logged.
    panics: Arc<Counter>,
}

impl Log {
    /// A log of all lines.
    pub fn new(to: impl Fn(Line) + Send + Sync + 'static) -> Log {
        let levels = Levels::new(Level::Trace.into(), ByLogger::new());
        Log::of(levels, to)
    }

    fn of(levels: Levels, to: impl Fn(Line) + Send + Sync + 'static) -> Log {
        let (recent, panics) = Default::default();
        Log { to: Arc::new(to), levels: Arc::new(levels), recent, panics }
    }

    /// The log that settings describe. `is_journal`: systemd reads standard error.
    pub fn open(options: &LogOptions, is_journal: bool) -> Result<(Log, LogWriter), String> {
        let sinks = options.sinks(is_journal)?;
        let levels = Levels::new(options.root, options.loggers.clone());
        Ok(Log::written(levels, options.format, sinks))
    }

    /// A log that a thread of its own writes.
    fn written(levels: Levels, format: Format, sinks: Vec<Sink>) -> (Log, LogWriter) {
        let (queue, writer) = LogWriter::start(sinks);
        let to = move |line: Line| {
            queue.add(|waiting| {
                let lost = waiting.take_lost();
                if lost > 0 {
                    let text = format!(
                        "{lost} lines of this log were lost: its reader is too slow, or its device is full or too slow"
                    );
                    let logger = Cow::Borrowed("server.log");
                    let line = Line { level: Level::Warn, source: logger.clone(), logger, text };
                    waiting.push(line.level, line.formatted(format));
                }
                waiting.push(line.level, line.formatted(format));
            });
        };
        (Log::of(levels, to), writer)
    }

    pub(crate) fn levels(&self) -> &Levels {
        &self.levels
    }

    /// `nodetool setlogginglevel`: a class or component and a level. Without a level, the one of the name above it; without both, the
    /// settings' levels.
    pub(crate) fn set_level(&self, name: Option<&str>, level: Option<&str>) -> Result<(), String> {
        let Some(name) = name else {
            self.levels.reset();
            self.say(format_args!("levels of the log are those of the settings again"));
            return Ok(());
        };
        let threshold = level.map(str::parse::<Threshold>).transpose()?;
        let loggers = cassandra::loggers(name)?;
        loggers.iter().for_each(|logger| self.levels.set(logger, threshold));
        let (loggers, level) = (loggers.join(", "), level.unwrap_or("that of the name above"));
        self.say(format_args!("level of {loggers} is {level} from now on"));
        Ok(())
    }

    /// Has panics logged, on whatever thread they are, with the thread's name.
    pub fn take_panics(&self) {
        let log = self.clone();
        halcyon_io::tell_panics(move |what| {
            log.panics.add_shared(1);
            log.error(format_args!(
                "{what}; what was being done has failed, the node keeps serving: report this defect of Halcyon"
            ));
        });
    }

    /// Panics since [`Log::take_panics`].
    pub(crate) fn panics(&self) -> u64 {
        self.panics.get()
    }

    #[track_caller]
    pub fn say(&self, what: fmt::Arguments<'_>) {
        self.line(Level::Info, what);
    }

    #[track_caller]
    pub(crate) fn warning(&self, what: fmt::Arguments<'_>) {
        self.line(Level::Warn, what);
    }

    #[track_caller]
    pub(crate) fn error(&self, what: fmt::Arguments<'_>) {
        self.line(Level::Error, what);
    }

    #[track_caller]
    pub(crate) fn debug(&self, what: fmt::Arguments<'_>) {
        self.line(Level::Debug, what);
    }

    fn write(&self, line: Line) {
        self.recent.keep(&line);
        (self.to)(line);
    }

    /// In the order in which they were written.
    pub(crate) fn last_lines(&self) -> Vec<Said> {
        self.recent.lines()
    }

    #[track_caller]
    fn line(&self, level: Level, what: fmt::Arguments<'_>) {
        if !self.levels.may_write(level) {
            return;
        }
        let at = Location::caller();
        let logger = logger_of(at);
        if self.levels.writes(level, &logger) {
            let (logger, source) = (logger.into(), source_of(at).into());
            self.write(Line { level, logger, source, text: in_one_line(&what.to_string()) });
        }
    }

    /// An event with a line for each item, each escaped.
    pub(crate) fn list(&self, level: Level, logger: &'static str, head: &str, items: Vec<String>) {
        if self.levels.may_write(level) && self.levels.writes(level, logger) {
            let lines = std::iter::once(head).chain(items.iter().map(String::as_str));
            let text = lines.map(in_one_line).collect::<Vec<_>>().join("\n");
            self.write(Line { level, logger: logger.into(), source: logger.into(), text });
        }
    }

    /// What another crate reports, under the name of its module.
    pub(crate) fn event(&self, level: Level, logger: &'static str, what: &dyn fmt::Display) {
        if self.levels.may_write(level) && self.levels.writes(level, logger) {
            let text = in_one_line(&what.to_string());
            self.write(Line { level, logger: logger.into(), source: logger.into(), text });
        }
    }
}

#[cfg(test)]
mod tests;
