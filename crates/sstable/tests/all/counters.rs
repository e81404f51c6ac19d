//! What the statistics say of counters.

use std::path::Path;
use std::sync::Arc;

use halcyon_io::{Disk, block_on};
use halcyon_model::{Clusterings, CqlType, DeletionTime, NO_DELETION_TIME, NO_TTL, Partitioner};
use halcyon_sstable::{Bases, Descriptor, OpenOptions, SSTable, SSTableId, SSTableWriter, Version};
use halcyon_stream::{Cell, Column, Fragment, Layout, PartitionKey, PartitionStart, RowBuf, Span};

use crate::writing::options;

/// Whether an SSTable of one counter cell with this context is marked as having shards from before 2.1.
async fn is_marked(context: &[u8]) -> bool {
    let (disk, _) = Disk::simulated(1);
    let folder = Path::new("/counters");
    disk.create_dir_all(folder).await.expect("creates a folder");
    let layout = Arc::new(Layout {
        partitioner: Partitioner::Murmur3,
        key_type: CqlType::Int,
        clusterings: Clusterings::new(&[]),
        clustering_types: Vec::new(),
        statics: Vec::new(),
        regulars: vec![Column::new(b"hits".to_vec(), CqlType::Counter)],
    });
    let descriptor = Descriptor::new(folder, Version::OA, SSTableId::Sequence(1));
    let options = options(&layout.partitioner, None);
    let created = SSTableWriter::create(&disk, descriptor, layout, Bases::NONE, options).await;
    let mut writer = created.expect("creates");
    let key = PartitionKey::of(&[0, 0, 0, 1]);
    let start = PartitionStart { key: &key, deletion: DeletionTime::LIVE };
    let mut row = RowBuf::new();
    let value = row.store(context);
    row.parts.cells.push(Cell {
        column: 0,
        ttl: NO_TTL,
        timestamp: 1,
        local_deletion_time: NO_DELETION_TIME,
        path: Span::default(),
        value,
    });
    for fragment in [Fragment::Start(start), Fragment::Row(row.row()), Fragment::End] {
        writer.append(fragment).expect("appends");
    }
    let sealed = writer.seal().await.expect("seals");
    let written = SSTable::open(&disk, &sealed.descriptor, OpenOptions::default()).await;
    written.expect("opens").statistics().stats.has_legacy_counter_shards
}

/// The header of a context lists the shards that are global (8000 | index) or local (index); others are remote.
#[test]
fn shards_from_before_2_1_are_noted() {
    let shard = [&[7; 16][..], &1i64.to_be_bytes(), &10i64.to_be_bytes()].concat();
    let context = |header: &[u8]| [header, &shard].concat();
    assert!(!block_on(is_marked(&context(&[0, 1, 0x80, 0]))), "global");
    assert!(block_on(is_marked(&context(&[0, 1, 0, 0]))), "local");
    assert!(block_on(is_marked(&context(&[0, 0]))), "remote");
}
