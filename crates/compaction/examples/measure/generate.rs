//! The data set: the same rows for every compressor, whatever the machine.
//!
//! ```sql
//! CREATE TABLE … (device bigint, at bigint, amount int, body text, digest blob, kind text, rate double,
//!                 PRIMARY KEY (device, at))
//! ```
//! 1. A partition's number decides everything about it. Half of the partitions lie in one SSTable, the others in 2–4.
//! 2. Each SSTable has 2–6 rows of about 1 KiB of its own in a partition, at clusterings that no other one uses. Later SSTables also
//!    touch some of the first one's rows: two columns overwritten, one deleted, or the row deleted.
//! 3. One row in ten has a TTL, some of them long over; a later copy of a partition deletes it first, one time in 32; one in 16
//!    of those that lie in one SSTable ends with a range tombstone. What is deleted was so either before 2024 (purged by everybody) or
//!    after 2040 (kept by everybody), so that the result does not depend on the hour.
//!
//! The shape `wide` has one row of about 8 KiB in each partition instead, in a document and a blob; half of the partitions lie in two
//! SSTables, and the later one overwrites the whole row. Nothing is deleted, nothing expires. The shapes `single` and `split` are those of
//! `parts.rs`; `ranges` has the rows of `single`, and of the ring each SSTable has a range of its own, as on a level of
//! LeveledCompactionStrategy.
//!
//! The SSTables differ only by chance in size, as after flushes of one memtable size.

use std::ops::Range;
use std::sync::Arc;

use halcyon_io::{AccessMode, Disk, Purpose, Random};
use halcyon_model::clustering::{ClusteringValue, Position};
use halcyon_model::options::Compression;
use halcyon_model::token::{murmur3_hash, token_of_hash};
use halcyon_model::{
    BoundKind, Clusterings, CqlType, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL, Partitioner,
};
use halcyon_sstable::format::statistics::collector::Provenance;
use halcyon_sstable::{
    Bases, Descriptor, Effort, ExpirationOverflow, SSTableId, SSTableWriter, WriterOptions,
};
use halcyon_stream::{
    Cell, Column, Fragment, Layout, Marker, PartitionKey, PartitionStart, RowBuf, RowDeletion,
};

use crate::{Result, Words, parts, payload};

/// 2023-11-14, in seconds; past every grace.
const LONG_AGO: u32 = 1_700_000_000;
/// 2043-01-24: before it, the expirations are not purged.
const FAR_OFF: u32 = 2_305_000_000;
const TTL: i32 = 86_400;
const WRITTEN: i64 = 1_690_000_000_000_000;
/// Between the clusterings of one SSTable of a partition and the next.
const STRIDE: i64 = 1000;
/// What a partition takes in all its SSTables together: two copies on average, of four rows.
const BYTES_PER_PARTITION: u64 = 2 * 4 * 1040;

/// In the shape `wide`: one copy and a half, of one row.
const BYTES_PER_WIDE_PARTITION: u64 = (WIDE_BODY + WIDE_DIGEST + 60) as u64 * 3 / 2;
const WIDE_BODY: usize = 6 << 10;
const WIDE_DIGEST: usize = 2 << 10;

const AMOUNT: u16 = 0;
const BODY: u16 = 1;
const DIGEST: u16 = 2;
const KIND: u16 = 3;
const RATE: u16 = 4;

fn layout() -> Layout {
    let columns = [
        ("amount", CqlType::Int),
        ("body", CqlType::Text),
        ("digest", CqlType::Blob),
        ("kind", CqlType::Text),
        ("rate", CqlType::Double),
    ];
    let regulars = columns.map(|(name, cql_type)| Column::new(name.into(), cql_type));
    Layout {
        partitioner: Partitioner::Murmur3,
        key_type: CqlType::BigInt,
        clusterings: Clusterings::new(&[CqlType::BigInt]),
        clustering_types: vec![CqlType::BigInt],
        statics: Vec::new(),
        regulars: regulars.into(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Rows,
    Wide,
    Single,
    Split,
    Ranges,
}

impl Shape {
    fn of(words: &Words) -> Result<Shape> {
        match words.text("shape").unwrap_or("rows") {
            "rows" => Ok(Shape::Rows),
            "wide" => Ok(Shape::Wide),
            "single" => Ok(Shape::Single),
            "split" => Ok(Shape::Split),
            "ranges" => Ok(Shape::Ranges),
            other => {
                Err(format!("--shape {other}: rows, wide, single, split or ranges expected").into())
            }
        }
    }

    fn layout(self) -> Layout {
        match self {
            Shape::Rows | Shape::Wide => layout(),
            Shape::Single | Shape::Split | Shape::Ranges => parts::layout(),
        }
    }

    fn bytes_per_partition(self) -> u64 {
        match self {
            Shape::Rows => BYTES_PER_PARTITION,
            Shape::Wide => BYTES_PER_WIDE_PARTITION,
            Shape::Single | Shape::Split | Shape::Ranges => parts::BYTES_PER_ROW,
        }
    }

    /// Which copy of a partition an SSTable holds: 0 is the first one.
    fn copy_in(self, partition: &Partition, sstable: u64, sstables: u64) -> Option<u64> {
        match self {
            Shape::Rows | Shape::Wide => partition.copy_in(sstable, sstables),
            Shape::Single => (partition.number % sstables == sstable).then_some(0),
            Shape::Split => Some(sstable),
            Shape::Ranges => Some(0),
        }
    }

    /// The partitions, in the order of the ring, that an SSTable may have copies of.
    fn range_of(self, sstable: u64, sstables: u64, all: &[Partition]) -> &[Partition] {
        let cut = |sstable: u64| all.len() * sstable as usize / sstables.max(1) as usize;
        match self {
            Shape::Ranges => &all[cut(sstable)..cut(sstable + 1)],
            _ => all,
        }
    }

    /// Of one SSTable: its filter is sized for this number.
    fn estimated_keys(self, partitions: u64, sstables: u64) -> u64 {
        match self {
            Shape::Rows | Shape::Wide => partitions / 8,
            Shape::Single | Shape::Ranges => partitions.div_ceil(sstables),
            Shape::Split => partitions,
        }
    }
}

/// A partition and where it is.
struct Partition {
    number: u64,
    key: PartitionKey,
    seed: u64,
    /// In how many SSTables.
    copies: u64,
}

impl Partition {
    fn numbered(number: u64, shape: Shape) -> Partition {
        let bytes = (number as i64).to_be_bytes().to_vec();
        let hashes = murmur3_hash(&bytes);
        let token = token_of_hash(hashes.0).0;
        let seed = Random::seeded(number).next_u64();
        let most_more = if shape == Shape::Wide { 1 } else { 3 };
        let copies = if seed & 1 == 0 { 1 } else { 2 + (seed >> 1) % most_more };
        Partition { number, key: PartitionKey { token, hashes, bytes }, seed, copies }
    }

    fn copy_in(&self, sstable: u64, sstables: u64) -> Option<u64> {
        let first = (self.seed >> 8) % sstables;
        let step = 1 + (self.seed >> 24) % (sstables / 4).max(1);
        (0..self.copies.min(sstables)).find(|copy| (first + copy * step) % sstables == sstable)
    }

    fn own_rows(&self, copy: u64) -> u64 {
        2 + (self.seed >> (40 + 4 * copy)) % 5
    }
}

pub(crate) async fn run(disk: &Disk, words: &Words) -> Result<String> {
    let bytes = words.number("bytes", 64 << 20)?;
    let sstables = words.number("sstables", 24)?;
    let (compression, version) = (words.compression()?, words.version()?);
    let shape = Shape::of(words)?;
    if shape == Shape::Split && sstables != parts::COUNT {
        return Err(format!("a row is split into {} SSTables", parts::COUNT).into());
    }
    let count = (bytes / shape.bytes_per_partition()).max(64);
    let mut partitions: Vec<Partition> =
        (0..count).map(|number| Partition::numbered(number, shape)).collect();
    partitions.sort_by(|a, b| (a.key.token, &a.key.bytes).cmp(&(b.key.token, &b.key.bytes)));
    disk.create_dir_all(&words.directory).await?;
    let (mut data, mut stored) = (0, 0);
    for sstable in 0..sstables {
        let descriptor = Descriptor::new(
            &words.directory,
            version,
            SSTableId::Sequence(u32::try_from(sstable + 1)?),
        );
        let estimated_keys = shape.estimated_keys(count, sstables);
        let layout = shape.layout();
        let mut fill =
            Fill::new(disk, descriptor, layout, &compression, sstable, estimated_keys).await?;
        for partition in shape.range_of(sstable, sstables, &partitions) {
            match (shape.copy_in(partition, sstable, sstables), shape) {
                (None, _) => {}
                (Some(copy), Shape::Rows) => fill.partition(partition, copy).await?,
                (Some(_), Shape::Wide) => fill.wide_partition(partition).await?,
                (Some(_), Shape::Single | Shape::Ranges) => {
                    fill.parts(partition, 0..parts::COUNT).await?
                }
                (Some(part), Shape::Split) => fill.parts(partition, part..part + 1).await?,
            }
        }
        let (raw, file) = fill.seal().await?;
        data += raw;
        stored += file;
    }
    Ok(format!(
        r#"{{"sstables":{sstables},"partitions":{count},"data_bytes":{data},"file_bytes":{stored}}}"#
    ))
}

/// Fills one SSTable.
struct Fill {
    layout: Arc<Layout>,
    writer: SSTableWriter,
    sstable: u64,
    row: RowBuf,
}

impl Fill {
    async fn new(
        disk: &Disk,
        descriptor: Descriptor,
        layout: Layout,
        compression: &Compression,
        sstable: u64,
        estimated_keys: u64,
    ) -> Result<Fill> {
        let layout = Arc::new(layout);
        let options = WriterOptions {
            mode: AccessMode::Auto,
            purpose: Purpose::Flush,
            buffer_size: 1 << 20,
            expected_length: 0,
            compression: Some(compression.clone()),
            effort: Effort::Default,
            estimated_keys,
            min_index_interval: 128,
            column_index_size: None,
            own_thread: true,
            read_back: false,
            expiration_overflow: ExpirationOverflow::Reject,
            provenance: Provenance::new(layout.partitioner.class_name(), 0.01),
        };
        let bases =
            Bases { timestamp: WRITTEN, local_deletion_time: i64::from(LONG_AGO), ttl: TTL };
        let writer =
            SSTableWriter::create(disk, descriptor, layout.clone(), bases, options).await?;
        Ok(Fill { layout, writer, sstable, row: RowBuf::new() })
    }

    async fn seal(self) -> Result<(u64, u64)> {
        let data = self.writer.data_position();
        Ok((data, self.writer.seal().await?.file_length))
    }

    /// µs; the later the SSTable, the newer.
    fn timestamp(&self, row: u64) -> i64 {
        WRITTEN + (self.sstable * 3_600_000_000 + row) as i64
    }

    async fn partition(&mut self, partition: &Partition, copy: u64) -> Result<()> {
        let mut random = Random::seeded(partition.seed ^ (self.sstable + 1) << 32);
        let is_deleted = copy > 0 && random.chance(1, 32);
        let deletion = if is_deleted {
            draw_deletion(&mut random, self.timestamp(0) - 1)
        } else {
            DeletionTime::LIVE
        };
        let key = &partition.key;
        self.writer.append(Fragment::Start(PartitionStart { key, deletion }))?;
        if copy > 0 {
            for i in 0..partition.own_rows(0) {
                if random.chance(1, 4) {
                    self.touch(&mut random, i)?;
                }
            }
        }
        for i in 0..partition.own_rows(copy) {
            self.own_row(&mut random, copy as i64 * STRIDE + i as i64 * 10, i)?;
        }
        if partition.copies == 1 && random.chance(1, 16) {
            let deletion = draw_deletion(&mut random, self.timestamp(99));
            self.range(5 * STRIDE, 6 * STRIDE, deletion)?;
        }
        self.end_partition().await
    }

    async fn wide_partition(&mut self, partition: &Partition) -> Result<()> {
        let mut random = Random::seeded(partition.seed ^ (self.sstable + 1) << 32);
        let (key, deletion) = (&partition.key, DeletionTime::LIVE);
        self.writer.append(Fragment::Start(PartitionStart { key, deletion }))?;
        self.whole_row(&mut random, (0, self.timestamp(0)), NEVER, (WIDE_BODY, WIDE_DIGEST))?;
        self.end_partition().await
    }

    /// A row with some of its parts, as an INSERT of these columns leaves it.
    async fn parts(&mut self, partition: &Partition, parts: Range<u64>) -> Result<()> {
        let (key, deletion) = (&partition.key, DeletionTime::LIVE);
        self.writer.append(Fragment::Start(PartitionStart { key, deletion }))?;
        self.row.clear();
        let timestamp = self.timestamp(0);
        let (ttl, local_expiration_time) = NEVER;
        self.row.parts.liveness = Liveness { timestamp, ttl, local_expiration_time };
        for part in parts {
            let mut random = Random::seeded(partition.seed ^ (part + 1) << 32);
            let column = u16::try_from(part)?;
            self.cell(column, timestamp, NEVER, |to| parts::value(&mut random, to));
        }
        self.writer.append(Fragment::Row(self.row.row()))?;
        self.end_partition().await
    }

    async fn end_partition(&mut self) -> Result<()> {
        self.writer.append(Fragment::End)?;
        if self.writer.wants_drain() {
            self.writer.drain().await?;
        }
        Ok(())
    }

    fn begin_row(&mut self, at: i64) {
        self.row.clear();
        let value = at.to_be_bytes();
        self.layout.clusterings.write(&[ClusteringValue::Bytes(&value)], &mut self.row.bytes);
        self.row.parts.clustering.len = self.row.bytes.len() as u32;
    }

    /// A row of some other SSTable: changed or deleted.
    fn touch(&mut self, random: &mut Random, i: u64) -> Result<()> {
        self.begin_row(i as i64 * 10);
        let timestamp = self.timestamp(i);
        match random.below(8) {
            0 => {
                let time = draw_deletion(random, timestamp);
                self.row.parts.deletion = RowDeletion { time, shadowable: false };
            }
            1 => {
                let time = draw_deletion(random, timestamp).local_deletion_time;
                self.cell(DIGEST, timestamp, (NO_TTL, time), |_| {});
            }
            _ => {
                let amount = random.next_u64() as u32;
                self.cell(AMOUNT, timestamp, NEVER, |to| to.extend(amount.to_be_bytes()));
                self.cell(BODY, timestamp, NEVER, |to| payload::document(random, 420, to));
            }
        }
        self.writer.append(Fragment::Row(self.row.row()))?;
        Ok(())
    }

    /// A whole row of about 1 KiB.
    fn own_row(&mut self, random: &mut Random, at: i64, i: u64) -> Result<()> {
        let life = match random.below(40) {
            0..3 => (TTL, FAR_OFF),
            3 => (TTL, LONG_AGO),
            _ => NEVER,
        };
        self.whole_row(random, (at, self.timestamp(i)), life, (740, 224))
    }

    /// A row at a clustering and a time, with a document and a blob of this many bytes.
    fn whole_row(
        &mut self,
        random: &mut Random,
        (at, timestamp): (i64, i64),
        life: (i32, u32),
        (body, digest): (usize, usize),
    ) -> Result<()> {
        self.begin_row(at);
        self.row.parts.liveness =
            Liveness { timestamp, ttl: life.0, local_expiration_time: life.1 };
        let (amount, rate) = (random.next_u64() as u32 % 100_000, random.below(1000) as f64 / 8.0);
        self.cell(AMOUNT, timestamp, life, |to| to.extend(amount.to_be_bytes()));
        self.cell(BODY, timestamp, life, |to| payload::document(random, body, to));
        self.cell(DIGEST, timestamp, life, |to| payload::noise(random, digest, to));
        self.cell(KIND, timestamp, life, |to| to.extend(payload::word(random).as_bytes()));
        self.cell(RATE, timestamp, life, |to| to.extend(rate.to_be_bytes()));
        self.writer.append(Fragment::Row(self.row.row()))?;
        Ok(())
    }

    fn cell(
        &mut self,
        column: u16,
        timestamp: i64,
        (ttl, local_deletion_time): (i32, u32),
        value: impl FnOnce(&mut Vec<u8>),
    ) {
        let start = self.row.bytes.len();
        value(&mut self.row.bytes);
        let value = halcyon_stream::Span {
            start: start as u32,
            len: (self.row.bytes.len() - start) as u32,
        };
        let path = halcyon_stream::Span::default();
        let cell = Cell { column, ttl, timestamp, local_deletion_time, path, value };
        self.row.parts.cells.push(cell);
    }

    fn range(&mut self, from: i64, to: i64, deletion: DeletionTime) -> Result<()> {
        let ends = [(BoundKind::InclStart, from), (BoundKind::InclEnd, to)];
        for (kind, at) in ends {
            let mut serialized = Vec::new();
            let value = at.to_be_bytes();
            self.layout.clusterings.write(&[ClusteringValue::Bytes(&value)], &mut serialized);
            let position = Position { kind, count: 1, serialized: &serialized };
            let is_start = kind == BoundKind::InclStart;
            let (close, open) =
                if is_start { (None, Some(deletion)) } else { (Some(deletion), None) };
            self.writer.append(Fragment::Marker(Marker { position, close, open }))?;
        }
        Ok(())
    }
}

/// Of a cell that stays.
const NEVER: (i32, u32) = (NO_TTL, NO_DELETION_TIME);

fn draw_deletion(random: &mut Random, timestamp: i64) -> DeletionTime {
    let local_deletion_time = if random.chance(1, 2) { LONG_AGO } else { FAR_OFF };
    DeletionTime { marked_for_delete_at: timestamp, local_deletion_time }
}
