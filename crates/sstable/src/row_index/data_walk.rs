//! For tests: the contents of an index, computed from Data.db by the simplest code.

use std::fs;
use std::path::{Path, PathBuf};

use halcyon_model::clustering::Position;
use halcyon_model::{BoundKind, Clusterings, Cursor, DecodeResult, DeletionTime, Partitioner};

use super::Block;
use crate::data::compress::Decompressor;
use crate::format::compression_info::CompressionInfo;
use crate::format::deletion_time::read_deletion_time;
use crate::format::listing::group;
use crate::format::statistics::Statistics;
use crate::{Component, Descriptor, Version};

/// Every SSTable in `testdata/` and in the corpus that the environment variable HALCYON_CORPUS names.
pub(super) fn sstables() -> Vec<SSTable> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let corpus = std::env::var_os("HALCYON_CORPUS").map(PathBuf::from);
    let children = |directory: &PathBuf| -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let mut found = Vec::new();
    let tables = std::iter::once(testdata).chain(corpus).flat_map(|root| children(&root));
    for table in tables.flat_map(|version| children(&version)) {
        for directory in [table.join("sstables"), table.join("compacted")] {
            let names = children(&directory);
            let names =
                names.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
            let listing = group(&directory, names);
            found.extend(
                listing.sstables.into_iter().map(|listed| SSTable::read(listed.descriptor)),
            );
        }
    }
    assert!(found.len() > 100, "{} SSTables", found.len());
    found
}

pub(super) struct SSTable {
    pub(super) descriptor: Descriptor,
    pub(super) version: Version,
    pub(super) clusterings: Clusterings,
    pub(super) partitioner: Partitioner,
    pub(super) partitions: Vec<Partition>,
}

pub(super) struct Partition {
    pub(super) key: Vec<u8>,
    pub(super) position: u64,
    pub(super) header_length: u64,
    pub(super) deletion: DeletionTime,
    pub(super) unfiltereds: Vec<Unfiltered>,
    /// Of the end-of-partition flag, relative to the partition.
    pub(super) end_offset: u64,
}

pub(super) struct Unfiltered {
    pub(super) kind: BoundKind,
    count: usize,
    serialized: Vec<u8>,
    /// Relative to the partition.
    pub(super) offset: u64,
    pub(super) end: u64,
    /// Range tombstone open behind it.
    open: Option<DeletionTime>,
}

impl Unfiltered {
    pub(super) fn position(&self) -> Position<'_> {
        Position { kind: self.kind, count: self.count, serialized: &self.serialized }
    }
}

impl Partition {
    /// The blocks by the rule of both formats: closed after the unfiltered that fills `granularity`, and at the
    /// end if one was closed before.
    pub(super) fn blocks(&self, granularity: u64) -> Vec<Block<'_>> {
        let (mut blocks, mut start): (Vec<Block<'_>>, _) = (Vec::new(), 0);
        for (i, unfiltered) in self.unfiltereds.iter().enumerate() {
            let offset = self.unfiltereds[start].offset;
            let is_last = i + 1 == self.unfiltereds.len();
            let full = unfiltered.end - offset >= granularity;
            if full || (is_last && !blocks.is_empty()) {
                let before = start.checked_sub(1).and_then(|before| self.unfiltereds.get(before));
                blocks.push(Block {
                    first: self.unfiltereds[start].position(),
                    last: unfiltered.position(),
                    offset,
                    width: unfiltered.end - offset + u64::from(!full),
                    open_at_start: before.and_then(|before| before.open),
                    open_at_end: unfiltered.open,
                });
                start = i + 1;
            }
        }
        blocks
    }
}

impl SSTable {
    fn read(descriptor: Descriptor) -> SSTable {
        let version = descriptor.version;
        let bytes = fs::read(descriptor.component_path(Component::Statistics)).expect("Statistics");
        let statistics = Statistics::decode(&mut Cursor::new(&bytes), version).expect("sound");
        let partitioner = statistics.validation.as_ref().expect("validation");
        let partitioner = Partitioner::parse(&partitioner.partitioner).expect("known");
        let partitioner = partitioner.with_key_type(statistics.header.key_type.cql());
        let clusterings = statistics.header.clusterings();
        let data = data(&descriptor);
        let walk = Walk { version, statistics: &statistics, clusterings: &clusterings };
        let partitions = walk.partitions(&data).expect("sound");
        SSTable { descriptor, version, clusterings, partitioner, partitions }
    }

    pub(super) fn component(&self, component: Component) -> Vec<u8> {
        fs::read(self.descriptor.component_path(component)).expect("component")
    }
}

/// The uncompressed stream.
fn data(descriptor: &Descriptor) -> Vec<u8> {
    let stored = fs::read(descriptor.component_path(Component::Data)).expect("Data.db");
    let Ok(info) = fs::read(descriptor.component_path(Component::CompressionInfo)) else {
        return stored;
    };
    let mut cursor = Cursor::new(&info);
    let info = CompressionInfo::decode(&mut cursor, descriptor.version, stored.len() as u64);
    let info = info.expect("sound");
    let mut decompressor = Decompressor::new(&info.compressor, None).expect("known");
    let mut out = Vec::new();
    for i in 0..info.chunk_count() {
        let chunk = info.chunk(i).expect("chunk");
        let payload = &stored[chunk.offset as usize..][..chunk.payload_length as usize];
        let length = chunk.data_length as usize;
        if chunk.is_raw {
            out.extend_from_slice(&payload[..length]);
            continue;
        }
        // Cassandra's compaction writes a last chunk of nothing, whose Deflate stream has no end.
        if length == 0 {
            continue;
        }
        let begin = out.len();
        out.resize(begin + length, 0);
        decompressor.decompress(payload, &mut out[begin..]).expect("sound");
    }
    out
}

struct Walk<'a> {
    version: Version,
    statistics: &'a Statistics,
    clusterings: &'a Clusterings,
}

impl Walk<'_> {
    fn partitions(&self, data: &[u8]) -> DecodeResult<Vec<Partition>> {
        let mut cursor = Cursor::new(data);
        let mut partitions = Vec::new();
        while cursor.remaining() > 0 {
            let position = cursor.offset();
            let key = cursor.sbytes()?.to_vec();
            let oa = self.version.has_uint_deletion_time();
            let deletion = read_deletion_time(oa, &mut cursor)?;
            if !self.statistics.header.static_columns.is_empty() {
                cursor.take(2)?;
                cursor.vbytes()?;
            }
            let header_length = cursor.offset() - position;
            let mut unfiltereds = Vec::new();
            let mut open = None;
            loop {
                let offset = cursor.offset() - position;
                match self.unfiltered(&mut cursor, offset, &mut open)? {
                    Some(mut unfiltered) => {
                        unfiltered.end = cursor.offset() - position;
                        unfiltereds.push(unfiltered);
                    }
                    None => break,
                }
            }
            let end_offset = cursor.offset() - position - 1;
            partitions.push(Partition {
                key,
                position,
                header_length,
                deletion,
                unfiltereds,
                end_offset,
            });
        }
        Ok(partitions)
    }

    fn unfiltered(
        &self,
        cursor: &mut Cursor<'_>,
        offset: u64,
        open: &mut Option<DeletionTime>,
    ) -> DecodeResult<Option<Unfiltered>> {
        let flags = cursor.u8()?;
        if flags & 1 != 0 {
            return Ok(None);
        }
        let is_marker = flags & 2 != 0;
        let (kind, count) = if is_marker {
            (BoundKind::read_marker(cursor)?, usize::from(cursor.u16()?))
        } else {
            (BoundKind::Clustering, self.clusterings.len())
        };
        if flags & 0x80 != 0 {
            cursor.u8()?;
        }
        let serialized = self.clusterings.read(cursor, count)?.to_vec();
        let body = cursor.vbytes()?;
        if is_marker {
            let mut body = Cursor::new(body);
            body.uvint()?;
            let deletion = self.deletion(&mut body)?;
            *open = match kind {
                _ if kind.is_boundary() => Some(self.deletion(&mut body)?),
                _ if kind.opens() => Some(deletion),
                _ => None,
            };
        }
        Ok(Some(Unfiltered { kind, count, serialized, offset, end: offset, open: *open }))
    }

    fn deletion(&self, cursor: &mut Cursor<'_>) -> DecodeResult<DeletionTime> {
        let header = &self.statistics.header;
        let marked = header.min_timestamp.wrapping_add(cursor.uvint()? as i64);
        let local = i64::from(cursor.uvint32()?) + header.min_local_deletion_time;
        Ok(DeletionTime { marked_for_delete_at: marked, local_deletion_time: local as u32 })
    }
}
