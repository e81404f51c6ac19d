//! Options as DESCRIBE prints them.

use super::map_option::{Entries, MapOption, SubOptions};
use super::{TableOptions, defaults};
use crate::value::double_to_string;

/// A string of CQL.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn map(entries: &Entries) -> String {
    let pairs: Vec<String> = entries
        .iter()
        .map(|(name, value)| format!("{}: {}", literal(name), literal(value)))
        .collect();
    format!("{{{}}}", pairs.join(", "))
}

fn stated<T: SubOptions + Clone>(option: &Option<MapOption<T>>) -> String {
    map(option.clone().unwrap_or_default().entries())
}

impl TableOptions {
    pub fn print_comment(&self) -> String {
        format!("comment = {}", literal(&self.comment))
    }

    /// `name = value` of each, in DESCRIBE's order.
    pub fn print(&self) -> Vec<String> {
        let policy = |policy: &Option<String>| {
            literal(policy.as_deref().unwrap_or(defaults::SPECULATIVE_RETRY))
        };
        let min_index_interval = self.min_index_interval.unwrap_or(defaults::MIN_INDEX_INTERVAL);
        let max_index_interval = self.max_index_interval.unwrap_or(defaults::MAX_INDEX_INTERVAL);
        let gc_grace_seconds = self.gc_grace_seconds.unwrap_or(defaults::GC_GRACE_SECONDS);
        let fp_chance = double_to_string(self.bloom_filter_fp_chance());
        vec![
            format!("additional_write_policy = {}", policy(&self.additional_write_policy)),
            format!("allow_auto_snapshot = {}", self.allow_auto_snapshot.unwrap_or(true)),
            format!("bloom_filter_fp_chance = {fp_chance}"),
            format!("caching = {}", stated(&self.caching)),
            format!("cdc = {}", self.cdc.unwrap_or(false)),
            self.print_comment(),
            format!("compaction = {}", stated(&self.compaction)),
            format!("compression = {}", stated(&self.compression)),
            format!("memtable = {}", literal(self.memtable.as_deref().unwrap_or("default"))),
            format!("crc_check_chance = {}", double_to_string(self.crc_check_chance())),
            format!("default_time_to_live = {}", self.default_time_to_live),
            "extensions = {}".to_owned(),
            format!("gc_grace_seconds = {gc_grace_seconds}"),
            format!("incremental_backups = {}", self.incremental_backups.unwrap_or(true)),
            format!("max_index_interval = {max_index_interval}"),
            format!("memtable_flush_period_in_ms = {}", self.memtable_flush_period_in_ms),
            format!("min_index_interval = {min_index_interval}"),
            format!("read_repair = {}", literal(self.read_repair.as_deref().unwrap_or("BLOCKING"))),
            format!("speculative_retry = {}", policy(&self.speculative_retry)),
        ]
    }
}
