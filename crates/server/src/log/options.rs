//! What settings say about the log.

use std::io;

use super::files::{FileOptions, RotatedFile};
use super::level::{ByLogger, Level, Threshold};
use super::line::Format;
use super::writer::Sink;

/// Where lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    Stderr,
    Files,
    Both,
}

impl std::str::FromStr for Destination {
    type Err = ();

    fn from_str(text: &str) -> Result<Destination, ()> {
        match text {
            "stderr" => Ok(Destination::Stderr),
            "files" => Ok(Destination::Files),
            "both" => Ok(Destination::Both),
            _ => Err(()),
        }
    }
}

impl std::str::FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> Result<Format, ()> {
        match text {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            _ => Err(()),
        }
    }
}

/// The log of a node, as settings and command line describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    pub(crate) destination: Destination,
    pub(crate) format: Format,
    pub(crate) root: Threshold,
    pub(crate) loggers: ByLogger,
    pub(crate) files: FileOptions,
}

impl LogOptions {
    /// As in Cassandra's `logback.xml`, standard error and `system.log` have INFO and worse beside a `debug.log` that has all lines; alone,
    /// standard error has all of them.
    pub(super) fn sinks(&self, is_journal: bool) -> Result<Vec<Sink>, String> {
        let (has_stderr, has_files) = match self.destination {
            Destination::Stderr => (true, false),
            Destination::Files => (false, true),
            Destination::Both => (true, true),
        };
        let mut sinks = Vec::new();
        if has_stderr {
            let most = if has_files { Level::Info } else { Level::Trace };
            sinks.push(Sink { most, to: Box::new(io::stderr()), is_journal });
        }
        if has_files {
            for (name, most) in [("system.log", Level::Info), ("debug.log", Level::Trace)] {
                let file = RotatedFile::open(self.files.clone(), name).map_err(|e| {
                    let directory = self.files.directory.display();
                    format!("cannot write the log to {directory}: {e}; set log_directory")
                })?;
                sinks.push(Sink { most, to: Box::new(file), is_journal: false });
            }
        }
        Ok(sinks)
    }
}
