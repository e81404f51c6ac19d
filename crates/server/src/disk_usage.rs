//! Watches which part of its disks the node's data takes (`DiskUsageMonitor`): guardrails refuse writes before they are full.
//!
//! The data are all files of tables, those of snapshots too, and what memtables hold. The whole is the data and what is free on the file
//! systems of the data directories, or `data_disk_usage_max_disk_size`, if that is less.

use std::rc::Rc;
use std::time::Duration;

use halcyon_guardrails::Threshold;
use halcyon_io::clock;

use crate::shard::ShardServer;

/// While the shard serves.
pub(crate) async fn watch(server: Rc<ShardServer>, interval: Duration) {
    while !server.is_draining() {
        let guardrails = &server.coordinator.engine().options().guardrails;
        let bounds = guardrails.of_node().map(|config| {
            (config.bounds(Threshold::DataDiskUsage), config.data_disk_usage_max_disk_size)
        });
        let is_on = bounds.is_some_and(|(bounds, _)| bounds.warn.or(bounds.fail).is_some());
        let percent = match is_on {
            true => used(&server, bounds.and_then(|(_, max)| max)).await,
            // What was noted before holds no longer.
            false => Ok(0),
        };
        let log = &server.shared.log;
        match percent.map(|percent| guardrails.note_disk_usage(percent)) {
            Ok(Some(said)) if !server.shared.told.is_new(&said.text) => {}
            Ok(Some(said)) if said.is_failure => log.error(format_args!("{}", said.text)),
            Ok(Some(said)) => log.warning(format_args!("{}", said.text)),
            Ok(None) => {}
            Err(why) => log.warning(format_args!("the use of the disks is unknown: {why}")),
        }
        clock::sleep(interval).await;
    }
}

/// In percent, rounded up.
async fn used(server: &ShardServer, max: Option<u64>) -> halcyon_engine::Result<i64> {
    let engine = server.coordinator.engine();
    let tables = engine.table_stats();
    let snapshots = engine.snapshots().all().await?;
    let files = tables.iter().map(|table| table.disk_space).sum::<u64>()
        + snapshots.iter().map(|snapshot| snapshot.true_size).sum::<u64>();
    let memtables = tables.iter().map(|table| table.memtable_bytes).sum::<u64>();
    let directories = &engine.options().data_directories;
    let free = engine.disk().free_space_of_all(directories).await?;
    Ok(percent((files, memtables), free, max))
}

fn percent((files, memtables): (u64, u64), free: u64, max: Option<u64>) -> i64 {
    let all = files.saturating_add(free);
    let whole = u128::from(max.map_or(all, |max| all.min(max)).max(1));
    let used = u128::from(files) + u128::from(memtables);
    i64::try_from((used * 100).div_ceil(whole)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that memtables count as data, that less than a percent is one, and that a smaller disk can be feigned.
    #[test]
    fn data_are_a_part_of_the_disk() {
        assert_eq!(percent((0, 0), 0, None), 0);
        assert_eq!(percent((1, 0), 999, None), 1);
        assert_eq!(percent((500, 250), 500, None), 75);
        assert_eq!(percent((500, 0), 500, Some(2_000)), 50);
        assert_eq!(percent((500, 0), 500, Some(250)), 200);
    }
}
