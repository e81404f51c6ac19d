//! What the statistics of a folder's SSTables add up to: the cheap way to compare what two programs made of the same inputs.

use halcyon_io::Disk;

use crate::{Result, Words, open_all};

pub(crate) async fn run(disk: &Disk, words: &Words) -> Result<String> {
    let sstables = open_all(disk, &words.directory).await?;
    let stats = || sstables.iter().map(|sstable| &sstable.statistics().stats);
    let choice = disk.resolve_mode(&words.directory, words.access()?)?;
    Ok(format!(
        r#"{{"sstables":{},"partitions":{},"rows":{},"cells":{},"tombstones":{},"min_timestamp":{},"max_timestamp":{},"data_bytes":{},"file_bytes":{},"engine":"{}","access":"{}"}}"#,
        sstables.len(),
        stats().map(|s| s.partition_sizes.count()).sum::<i64>(),
        stats().map(|s| s.total_rows).sum::<i64>(),
        stats().map(|s| s.total_columns_set).sum::<i64>(),
        stats().map(|s| s.tombstone_drop_times.sum(u32::MAX)).sum::<f64>().round(),
        stats().map(|s| s.min_timestamp).min().unwrap_or_default(),
        stats().map(|s| s.max_timestamp).max().unwrap_or_default(),
        sstables.iter().map(|sstable| sstable.data_length()).sum::<u64>(),
        sstables.iter().map(|sstable| sstable.file_length()).sum::<u64>(),
        disk.backend().backend,
        choice.mode,
    ))
}
