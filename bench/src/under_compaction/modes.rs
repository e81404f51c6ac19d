//! The servers that take part, and their settings.

use std::path::PathBuf;

use halcyon_oracle::Version;

use crate::dataset::Shape;
use crate::record::Contender;
use crate::server::Plan;

/// A server in one of its modes.
#[derive(Clone, Debug)]
pub(super) struct Mode {
    pub(super) contender: Contender,
    /// As `--modes` calls it.
    pub(super) short: &'static str,
    /// How it reads and writes its files.
    access: &'static str,
    /// None of Halcyon.
    pub(super) version: Option<Version>,
    /// Lines of its configuration.
    pub(super) settings: Vec<String>,
    /// It gets one part in this many of the memory.
    pub(super) share: u64,
    /// A hot set of its own size, in rows.
    pub(super) hot_rows: Option<u64>,
    /// Of the rows.
    pub(super) shape: Shape,
}

impl Mode {
    fn halcyon(access: &'static str) -> Mode {
        let keys = [
            "disk_access_mode",
            "background_read_disk_access_mode",
            "background_write_disk_access_mode",
        ];
        let mut settings: Vec<String> = keys.map(|key| format!("{key}: {access}")).to_vec();
        settings.push("compaction_throughput: 0MiB/s".to_owned());
        settings.push(format!("{LATENCY_TARGET}: 0us"));
        Mode::new("halcyon", access, None, settings)
    }

    fn cassandra(version: Version, access: &'static str) -> Mode {
        // About its default for this heap, which the oracle does without.
        let settings = vec!["key_cache_size: 50MiB".to_owned()];
        Mode::new(version.name(), access, Some(version), settings)
    }

    fn new(
        peer: &str,
        access: &'static str,
        version: Option<Version>,
        settings: Vec<String>,
    ) -> Mode {
        let contender = Contender::new(peer, access);
        let (share, hot_rows, shape) = (1, None, Shape::Rows);
        Mode { contender, short: access, access, version, settings, share, hot_rows, shape }
    }

    /// Without a throttle, but with the default target.
    fn with_default_target(self) -> Mode {
        let mode = self.with_target("direct, auto", AUTO);
        Mode { short: AUTO, ..mode }
    }

    fn with_a_quarter(mut self, short: &'static str) -> Mode {
        self.contender.mode += ", a quarter of the memory";
        Mode { short, share: 4, ..self }
    }

    fn with_many_hot_rows(mut self) -> Mode {
        self.contender.mode += &format!(", {MANY_HOT_ROWS} hot rows");
        Mode { short: MANY, hot_rows: Some(MANY_HOT_ROWS), ..self }
    }

    fn with_wide_values(mut self) -> Mode {
        self.contender.mode += WIDE_VALUES;
        Mode { short: "wide", shape: Shape::Wide, ..self }
    }

    /// The modes in which `latte` reads too: those that should hide a compaction, and Cassandra's best.
    pub(super) fn has_latte(&self) -> bool {
        [DIRECT, AUTO, MANY].contains(&self.short)
    }

    pub(super) fn plan<'a>(&self, dir: PathBuf) -> Plan<'a> {
        let access = self.access;
        let plan = match self.version {
            None => Plan::halcyon(access, dir),
            Some(version) => Plan::cassandra(version, access, dir).compacting(version, access),
        };
        plan.set_all(&self.settings)
    }

    /// The same, holding the latency of reads at a target.
    pub(super) fn with_target(&self, name: &str, target: &str) -> Mode {
        let mut mode = self.clone();
        mode.contender.mode = name.to_owned();
        mode.settings.retain(|line| !line.starts_with(LATENCY_TARGET));
        mode.settings.push(format!("{LATENCY_TARGET}: {target}"));
        mode
    }

    /// As a folder is called.
    pub(super) fn slug(&self) -> String {
        let Contender { peer, mode } = &self.contender;
        format!("{peer}-{}", mode.replace([' ', ','], "-"))
    }
}

/// What is called throttled.
pub(super) const THROTTLE_MIB: u64 = 64;

pub(super) const DIRECT: &str = "direct";
const LATENCY_TARGET: &str = "compaction_latency_target";
const AUTO: &str = "auto";
const MANY: &str = "many";
const MANY_HOT_ROWS: u64 = 100_000;
/// Behind a mode's name.
pub(super) const WIDE_VALUES: &str = ", wide values";

/// All, in the order of their turns.
pub(super) fn all() -> Vec<Mode> {
    vec![
        Mode::halcyon(DIRECT),
        Mode::cassandra(Version::V6, DIRECT),
        Mode::halcyon(DIRECT).with_default_target(),
        Mode::halcyon(DIRECT).with_a_quarter("quarter"),
        Mode::halcyon(DIRECT).with_default_target().with_a_quarter("auto-quarter"),
        Mode::halcyon(DIRECT).with_default_target().with_many_hot_rows(),
        Mode::cassandra(Version::V6, DIRECT).with_many_hot_rows(),
        Mode::halcyon(DIRECT).with_wide_values(),
        Mode::cassandra(Version::V6, DIRECT).with_wide_values(),
        Mode::cassandra(Version::V6, "direct-reads"),
        Mode::halcyon("uncached"),
        Mode::cassandra(Version::V6, "buffered"),
        Mode::halcyon("standard"),
        Mode::cassandra(Version::V5, "buffered"),
    ]
}
