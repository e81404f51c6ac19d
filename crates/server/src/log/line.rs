//! One line of the log, and its forms.
//!
//! ```text
//! INFO  [shard-0] 2026-05-04T12:00:00,123 node.rs:142 - ready
//! {"time":"2026-05-04T12:00:00.123Z","level":"INFO","thread":"shard-0","logger":"server.node","source":"node.rs:142","message":"ready"}
//! ```

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::panic::Location;

use halcyon_io::clock::unix_micros;
use halcyon_model::value::timestamp_iso_string;
use serde_json::json;

use super::level::Level;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub level: Level,
    /// The module that writes.
    pub logger: Cow<'static, str>,
    /// File and line, or the logger where an event comes from another crate.
    pub source: Cow<'static, str>,
    pub text: String,
}

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Logback's `%-5level [%thread] %date{"yyyy-MM-dd'T'HH:mm:ss,SSS", UTC} %F:%L - %msg%n`, as in Cassandra's `system.log`.
    Text,
    /// A JSON object in each line.
    Json,
}

/// `crates/server/src/connection/mod.rs` is the logger `server.connection`.
pub(super) fn logger_of(at: &Location<'_>) -> String {
    let path = at.file().rsplit_once("crates/").map_or(at.file(), |(_, path)| path);
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/lib");
    path.replacen("/src/", ".", 1).replace('/', ".")
}

/// `receive.rs:109`
pub(super) fn source_of(at: &Location<'_>) -> String {
    let file = at.file().rsplit('/').next().unwrap_or_default();
    format!("{file}:{}", at.line())
}

/// Lines of systemd's journal begin with their priority (`sd-daemon(3)`).
fn priority(level: Level) -> &'static str {
    match level {
        Level::Error => "<3>",
        Level::Warn => "<4>",
        Level::Info => "<6>",
        Level::Debug | Level::Trace => "<7>",
    }
}

impl Line {
    /// As the calling thread says it now.
    pub(super) fn formatted(&self, format: Format) -> String {
        let thread = std::thread::current();
        self.formatted_at(format, thread.name().unwrap_or("main"), unix_micros() / 1000)
    }

    fn formatted_at(&self, format: Format, thread: &str, millis: i64) -> String {
        let Line { level, logger, source, text } = self;
        let time = timestamp_iso_string(millis);
        match format {
            Format::Text => {
                let time = time.trim_end_matches('Z').replace('.', ",");
                format!("{:<5} [{thread}] {time} {source} - {text}\n", level.name())
            }
            Format::Json => {
                // Field by field: an object of `serde_json` has its names in another order.
                let mut out = String::from("{");
                let fields: [(&str, &str); 6] = [
                    ("time", &time),
                    ("level", level.name()),
                    ("thread", thread),
                    ("logger", logger),
                    ("source", source),
                    ("message", text),
                ];
                for (index, (name, value)) in fields.into_iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    // Writing to a string cannot fail.
                    let _: fmt::Result = write!(out, "{comma}\"{name}\":{}", json!(value));
                }
                out + "}\n"
            }
        }
    }
}

/// The line with its priority, for systemd's journal: each of its lines is an entry.
pub(super) fn for_journal(level: Level, text: &str) -> String {
    text.split_inclusive('\n').flat_map(|line| [priority(level), line]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line {
            level: Level::Warn,
            logger: "server.node".into(),
            source: "node.rs:1".into(),
            text: text.to_owned(),
        }
    }

    /// Proves the text form: level, thread, time in UTC, source, as Cassandra's pattern has them.
    #[test]
    fn text_has_the_pattern_of_system_log() {
        let shown = line("a").formatted_at(Format::Text, "shard-1", 1_777_896_000_123);
        assert_eq!(shown, "WARN  [shard-1] 2026-05-04T12:00:00,123 node.rs:1 - a\n");
    }

    /// Proves that each line of the JSON form is an object of its own, whatever a text has in it.
    #[test]
    fn each_line_of_json_is_an_object() {
        for c in ('\0'..='\u{ff}').chain(['"', '\\', '\u{2028}', '漢']) {
            let shown =
                line(&format!("a{c}\nb")).formatted_at(Format::Json, "t", 1_777_896_000_123);
            assert_eq!(shown.matches('\n').count(), 1, "{shown}");
            let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
            assert_eq!(read["message"], format!("a{c}\nb"));
            assert_eq!(read["time"], "2026-05-04T12:00:00.123Z");
            assert_eq!((&read["level"], &read["logger"]), (&json!("WARN"), &json!("server.node")));
        }
    }

    /// Proves that the journal gets the priority of every line of an event.
    #[test]
    fn the_journal_gets_priorities() {
        assert_eq!(for_journal(Level::Error, "a\nb\n"), "<3>a\n<3>b\n");
    }

    /// Proves how a logger and a source are named.
    #[test]
    fn loggers_are_named_by_modules() {
        let here = Location::caller();
        assert_eq!(logger_of(here), "server.log.line");
        assert_eq!(source_of(here), format!("line.rs:{}", here.line()));
    }
}
