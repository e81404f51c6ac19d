//! `partition_denylist_enabled` and `denylist_…`.

use halcyon_model::request::Consistency;
use halcyon_query::DenylistOptions;

use super::{Result, Values};

impl Values {
    /// `None`: no partition is denied. Values are checked in any case.
    pub(super) fn denylist(&self) -> Result<Option<DenylistOptions>> {
        let keys = |name| {
            let most = self.integer(name)?.unwrap_or_default();
            let most = usize::try_from(most).ok().filter(|most| *most > 0);
            most.ok_or_else(|| self.wrong(name, "1 or more"))
        };
        let level = self.text("denylist_consistency_level").unwrap_or_default();
        let level = level.to_ascii_uppercase();
        let mut levels = (0..).map_while(Consistency::from_code);
        let options = DenylistOptions {
            writes_enabled: self.boolean("denylist_writes_enabled")?,
            reads_enabled: self.boolean("denylist_reads_enabled")?,
            range_reads_enabled: self.boolean("denylist_range_reads_enabled")?,
            refresh: self.duration("denylist_refresh")?.unwrap_or_default(),
            initial_load_retry: self.duration("denylist_initial_load_retry")?.unwrap_or_default(),
            max_keys_per_table: keys("denylist_max_keys_per_table")?,
            max_keys_total: keys("denylist_max_keys_total")?,
            consistency_level: levels.find(|known| known.name() == level).unwrap_or_default(),
        };
        Ok(self.boolean("partition_denylist_enabled")?.then_some(options))
    }
}
