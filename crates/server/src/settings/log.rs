//! `log_…`: where the log goes, in which form, and how its files are rolled; `tracing_otlp_…`: which spans are sent where.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Error, Overrides, Result, Values};
use crate::log::cassandra;
use crate::log::level::ByLogger;
use crate::log::options::Destination;
use crate::log::{FileOptions, Format, Level, LogOptions, Threshold};

/// What settings say about spans.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SpanOptions {
    pub(crate) endpoint: String,
    /// The share of requests that are sampled.
    pub(crate) ratio: f64,
    /// Certificates that the collector's is trusted by.
    pub(crate) truststore: Option<PathBuf>,
}

impl Values {
    pub(super) fn log(&self, data_dir: &Path, overrides: &Overrides) -> Result<LogOptions> {
        let destination = self.parsed("log_destination").unwrap_or(Destination::Stderr);
        let usual = match destination {
            Destination::Stderr => Level::Info,
            // `debug.log` has them, as in Cassandra.
            Destination::Files | Destination::Both => Level::Debug,
        };
        let size = self.bytes("log_file_size")?.unwrap_or_default();
        let period = self.duration("log_file_period")?.unwrap_or_default();
        let count = usize::try_from(self.integer("log_file_count")?.unwrap_or_default());
        Ok(LogOptions {
            destination,
            format: self.parsed("log_format").unwrap_or(Format::Text),
            root: overrides.log_level.or(self.parsed("log_level")).unwrap_or(usual.into()),
            loggers: self.loggers()?,
            files: FileOptions {
                directory: self.directory("log_directory", data_dir, "logs"),
                size: Some(size)
                    .filter(|size| *size > 0)
                    .ok_or_else(|| self.wrong("log_file_size", "1MiB or more"))?,
                period: Some(period).filter(|period| *period > Duration::ZERO),
                count: count.map_err(|_| self.wrong("log_file_count", "0 or more"))?,
                total: self.bytes("log_files_total_size")?.unwrap_or(u64::MAX),
                compresses: self.text("log_file_compression").as_deref() != Some("none"),
            },
        })
    }

    /// `None`: no spans are sent. Values are checked in any case.
    pub(super) fn spans(&self) -> Result<Option<SpanOptions>> {
        let name = "tracing_otlp_sampling_ratio";
        let ratio = self.text(name).and_then(|text| text.parse::<f64>().ok());
        let ratio = ratio.filter(|ratio| (0.0..=1.0).contains(ratio));
        let ratio = ratio.ok_or_else(|| self.wrong(name, "0 to 1"))?;
        let truststore = self.text("tracing_otlp_truststore").map(PathBuf::from);
        let endpoint = self.text("tracing_otlp_endpoint");
        Ok(endpoint.map(|endpoint| SpanOptions { endpoint, ratio, truststore }))
    }

    /// `log_levels`: a mapping of loggers to levels.
    fn loggers(&self) -> Result<ByLogger> {
        const KEY: &str = "log_levels";
        let mut found = ByLogger::new();
        for (name, node) in self.members(KEY)? {
            let refused = |why: String| Error::Refused(format!("{KEY}.{name}: {why}"));
            let level = node.scalar().unwrap_or_default();
            let threshold: Threshold = level.parse().map_err(refused)?;
            let loggers = cassandra::loggers(name).map_err(refused)?;
            found.extend(loggers.into_iter().map(|logger| (logger, threshold)));
        }
        Ok(found)
    }
}
