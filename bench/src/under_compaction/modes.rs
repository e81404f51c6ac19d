//! The servers that take part, and their settings.

use std::path::PathBuf;

use halcyon_oracle::Version;

use crate::record::Contender;
use crate::server::Plan;

/// A server in one of its modes.
#[derive(Clone, Debug)]
pub(super) struct Mode {
    pub(super) contender: Contender,
    /// None of Halcyon.
    pub(super) version: Option<Version>,
    /// Lines of its configuration.
    pub(super) settings: Vec<String>,
    /// It gets one part in so many of the memory.
    pub(super) share: u64,
}

impl Mode {
    fn halcyon(name: &str, access: &str, share: u64) -> Mode {
        let keys = [
            "disk_access_mode",
            "background_read_disk_access_mode",
            "background_write_disk_access_mode",
        ];
        let mut settings: Vec<String> = keys.map(|key| format!("{key}: {access}")).to_vec();
        settings.push("compaction_throughput: 0MiB/s".to_owned());
        Mode { contender: Contender::new("halcyon", name), version: None, settings, share }
    }

    fn cassandra(version: Version, name: &str) -> Mode {
        // About its default for this heap, which the oracle does without.
        let settings = vec!["key_cache_size: 50MiB".to_owned()];
        let contender = Contender::new(version.name(), name);
        Mode { contender, version: Some(version), settings, share: 1 }
    }

    pub(super) fn plan<'a>(&self, dir: PathBuf) -> Plan<'a> {
        let name = &self.contender.mode;
        let plan = match self.version {
            None => Plan::halcyon(name, dir),
            Some(version) => Plan::cassandra(version, name, dir).compacting(version, name),
        };
        plan.set_all(&self.settings)
    }

    /// The same, holding the latency of reads at a target.
    pub(super) fn with_target(&self, name: &str, target_us: u64) -> Mode {
        let mut mode = self.clone();
        mode.contender.mode = name.to_owned();
        mode.settings.push(format!("compaction_latency_target: {target_us}us"));
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

pub(super) const QUARTER: &str = "direct, a quarter of the memory";

/// All, in the order of their turns.
pub(super) fn all() -> Vec<Mode> {
    vec![
        Mode::halcyon("direct", "direct", 1),
        Mode::cassandra(Version::V6, "direct"),
        Mode::halcyon(QUARTER, "direct", 4),
        Mode::cassandra(Version::V6, "direct-reads"),
        Mode::halcyon("uncached", "uncached", 1),
        Mode::cassandra(Version::V6, "buffered"),
        Mode::halcyon("standard", "standard", 1),
        Mode::cassandra(Version::V5, "buffered"),
    ]
}
