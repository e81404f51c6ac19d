//! The options of a log, as `BinLogOptions` has them.

use std::path::PathBuf;

/// When a file is rolled (`RollCycles` of Chronicle, those that nodetool names).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollCycle {
    Minutely,
    Hourly,
    Daily,
}

impl RollCycle {
    pub const ALL: [RollCycle; 3] = [RollCycle::Minutely, RollCycle::Hourly, RollCycle::Daily];

    pub fn name(self) -> &'static str {
        match self {
            RollCycle::Minutely => "MINUTELY",
            RollCycle::Hourly => "HOURLY",
            RollCycle::Daily => "DAILY",
        }
    }

    /// In any case, as Cassandra takes it.
    pub fn named(text: &str) -> Option<RollCycle> {
        RollCycle::ALL.into_iter().find(|cycle| cycle.name().eq_ignore_ascii_case(text))
    }

    pub(crate) fn seconds(self) -> i64 {
        match self {
            RollCycle::Minutely => 60,
            RollCycle::Hourly => 3_600,
            RollCycle::Daily => 86_400,
        }
    }
}

/// Cassandra's defaults are the default, except for the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub directory: PathBuf,
    pub roll_cycle: RollCycle,
    /// Whether a request waits for room in the queue, or its record is dropped.
    pub block: bool,
    /// Bytes that may wait for the writer.
    pub max_queue_weight: u64,
    /// Bytes of rolled files that are kept.
    pub max_log_size: u64,
    /// Words separated by blanks; `%path` is the rolled file. Empty: none.
    pub archive_command: String,
    pub max_archive_retries: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            directory: PathBuf::new(),
            roll_cycle: RollCycle::Hourly,
            block: true,
            max_queue_weight: 256 << 20,
            max_log_size: 16 << 30,
            archive_command: String::new(),
            max_archive_retries: 10,
        }
    }
}

/// A file is rolled at a sixteenth of what is kept, so that deleting the oldest keeps most of it, and at most at this size. Chosen: an
/// editor opens it.
const FILE_MAX: u64 = 256 << 20;

impl Options {
    /// Bytes from which a file is rolled.
    pub(crate) fn file_max(&self) -> u64 {
        (self.max_log_size / 16).clamp(1, FILE_MAX)
    }
}
