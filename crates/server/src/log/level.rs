//! Levels of lines, and which levels of which loggers are written.
//!
//! A logger is named by the module that writes (`server.connection.receive`, `engine.compact`). The level of a logger is its own, else
//! the one of the longest name above it, else the root's. Most lines that are not written cost one comparison: their level is below
//! that of every logger.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use halcyon_io::Mutex;

/// The severity of a line, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error = 1,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    pub const ALL: [Level; 5] =
        [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace];

    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "ERROR",
            Level::Warn => "WARN",
            Level::Info => "INFO",
            Level::Debug => "DEBUG",
            Level::Trace => "TRACE",
        }
    }
}

impl std::str::FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        let found = Level::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            format!("invalid log level '{text}'; expected error, warn, info, debug, trace")
        })
    }
}

/// What a logger writes: lines of a level and worse, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Threshold(Option<Level>);

impl Threshold {
    pub fn name(self) -> &'static str {
        self.0.map_or("OFF", Level::name)
    }

    fn number(self) -> u8 {
        self.0.map_or(0, |level| level as u8)
    }
}

impl From<Level> for Threshold {
    fn from(level: Level) -> Threshold {
        Threshold(Some(level))
    }
}

impl std::str::FromStr for Threshold {
    type Err = String;

    /// Logback's words: a level, `OFF` or `ALL`.
    fn from_str(text: &str) -> Result<Threshold, String> {
        match text.to_ascii_lowercase().as_str() {
            "off" => Ok(Threshold(None)),
            "all" => Ok(Level::Trace.into()),
            _ => text
                .parse::<Level>()
                .map(Threshold::from)
                .map_err(|why| format!("{why}, off or all")),
        }
    }
}

/// The root logger, as Cassandra's tools show it.
pub(crate) const ROOT: &str = "ROOT";

/// Thresholds by logger; the root's is always there.
pub(crate) type ByLogger = BTreeMap<String, Threshold>;

pub(crate) struct Levels {
    /// The most verbose of all loggers.
    most: AtomicU8,
    configured: ByLogger,
    now: Mutex<ByLogger>,
}

impl Levels {
    pub(super) fn new(root: Threshold, mut loggers: ByLogger) -> Levels {
        loggers.insert(ROOT.to_owned(), root);
        let levels =
            Levels { most: 0.into(), configured: loggers.clone(), now: Mutex::new(loggers) };
        levels.count(&levels.now.lock());
        levels
    }

    fn count(&self, now: &ByLogger) {
        let most = now.values().map(|threshold| threshold.number()).max();
        self.most.store(most.unwrap_or_default(), Relaxed);
    }

    /// Whether some logger writes lines of a level.
    pub(super) fn may_write(&self, level: Level) -> bool {
        level as u8 <= self.most.load(Relaxed)
    }

    pub(super) fn writes(&self, level: Level, logger: &str) -> bool {
        let now = self.now.lock();
        let mut name = logger;
        let threshold = loop {
            if let Some(threshold) = now.get(name) {
                break Some(threshold);
            }
            match name.rsplit_once('.') {
                Some((above, _)) => name = above,
                None => break now.get(ROOT),
            }
        };
        threshold.is_some_and(|threshold| level as u8 <= threshold.number())
    }

    pub(crate) fn root(&self) -> Threshold {
        self.now.lock().get(ROOT).copied().unwrap_or(Threshold(None))
    }

    pub(crate) fn all(&self) -> ByLogger {
        self.now.lock().clone()
    }

    /// Sets the level of a logger; without one, the logger takes the level of the name above it. The root keeps one.
    pub(crate) fn set(&self, logger: &str, threshold: Option<Threshold>) {
        let mut now = self.now.lock();
        match threshold {
            Some(threshold) => drop(now.insert(logger.to_owned(), threshold)),
            None if logger == ROOT => {}
            None => drop(now.remove(logger)),
        }
        self.count(&now);
    }

    /// Back to what the settings say.
    pub(crate) fn reset(&self) {
        let mut now = self.now.lock();
        now.clone_from(&self.configured);
        self.count(&now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the longest name above a logger decides, that a whole part of a name is meant, and that a reset restores settings.
    #[test]
    fn the_longest_name_decides() {
        let configured = ByLogger::from([("engine".to_owned(), "warn".parse().unwrap())]);
        let levels = Levels::new(Level::Info.into(), configured);
        levels.set("engine.compact", Some(Level::Debug.into()));
        assert!(levels.may_write(Level::Debug) && !levels.may_write(Level::Trace));
        assert!(levels.writes(Level::Debug, "engine.compact.job"));
        assert!(!levels.writes(Level::Info, "engine.compaction"));
        assert!(levels.writes(Level::Info, "server") && !levels.writes(Level::Debug, "server"));
        levels.set("engine.compact", None);
        assert!(!levels.writes(Level::Info, "engine.compact.job"));
        levels.set(ROOT, Some("OFF".parse().unwrap()));
        assert!(!levels.writes(Level::Error, "server"));
        levels.reset();
        assert!(levels.writes(Level::Info, "server") && !levels.may_write(Level::Debug));
    }

    /// Proves that words are logback's, in any case, and that others are named with what is expected.
    #[test]
    fn levels_are_logbacks() {
        assert_eq!("All".parse(), Ok(Threshold::from(Level::Trace)));
        assert_eq!("oFF".parse::<Threshold>().unwrap().name(), "OFF");
        let why = "loud".parse::<Threshold>().unwrap_err();
        let expected =
            "invalid log level 'loud'; expected error, warn, info, debug, trace, off or all";
        assert_eq!(why, expected);
    }
}
