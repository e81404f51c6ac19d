//! The components of an SSTable but Data.db.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use halcyon_model::{Clusterings, CqlType, Cursor, DecodeError, Partitioner};
use halcyon_sstable::big::{EntryScan, PromotedIndex, Scanned, describe_entry};
use halcyon_sstable::bti::{
    PartitionIndex, Payload, RowIndexEntry, TrieCursor, describe_partitions, describe_rows,
};
use halcyon_sstable::format::{
    compression_info::CompressionInfo, crc::ChunkCrcs, digest::Digest, filter::Filter,
    statistics::Statistics, summary::Summary, toc::Toc,
};
use halcyon_sstable::row_index::IndexSource;
use halcyon_sstable::{Format, Version};

/// An index component in memory.
struct Memory<'a>(&'a [u8]);

impl<'a> IndexSource for Memory<'a> {
    type Bytes = &'a [u8];
    type Error = DecodeError;

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    async fn read(&self, offset: u64, length: usize) -> Result<&'a [u8], DecodeError> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        Ok(rest.get(..length).unwrap_or(rest))
    }

    fn corrupt(&self, error: DecodeError) -> DecodeError {
        error
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("memory is always ready"),
    }
}

fn versions() -> impl Iterator<Item = Version> {
    let big = ["mc", "na", "nb", "oa", "pa"].map(|letters| (Format::Big, letters));
    let bti = ["da", "ea"].map(|letters| (Format::Bti, letters));
    big.into_iter().chain(bti).filter_map(|(format, letters)| Version::parse(format, letters).ok())
}

pub fn statistics(bytes: &[u8]) {
    for version in versions() {
        let Ok(statistics) = Statistics::decode(&mut Cursor::new(bytes), version) else { continue };
        if let Some(Ok(sketch)) = statistics.compaction.as_ref().map(|c| c.cardinality()) {
            sketch.estimate();
        }
        if version.writable().is_ok() {
            statistics.encode(version, &mut Vec::new());
        }
    }
}

pub fn compression_info(bytes: &[u8]) {
    for version in versions() {
        for file_length in [0, 1000, 1 << 40] {
            let mut cursor = Cursor::new(bytes);
            let Ok(info) = CompressionInfo::decode(&mut cursor, version, file_length) else {
                continue;
            };
            for i in 0..info.chunk_count() {
                info.chunk(i).expect("a chunk that is counted");
            }
            assert_eq!(info.chunk(info.chunk_count()), None);
        }
    }
}

pub fn summary(bytes: &[u8]) {
    let Ok(summary) = Summary::decode(&mut Cursor::new(bytes)) else { return };
    let key = Partitioner::Murmur3.decorate(b"key");
    summary.floor(&Partitioner::Murmur3, &key);
    summary.iter().for_each(drop);
}

pub fn filter(bytes: &[u8]) {
    for version in versions() {
        if let Ok(filter) = Filter::decode(&mut Cursor::new(bytes), version) {
            filter.may_contain((1, -1));
            filter.may_contain((i64::MIN, i64::MAX));
        }
    }
}

/// Index.db, its promoted indexes included.
pub fn index_entries(bytes: &[u8]) {
    let clusterings = Clusterings::new(&[CqlType::Int, CqlType::Text]);
    let source = Memory(bytes);
    for is_oa in [false, true] {
        let mut cursor = Cursor::describing(bytes, 0);
        while cursor.remaining() > 0 && describe_entry(is_oa, &clusterings, &mut cursor).is_ok() {}
        let mut scan = EntryScan::new(0, bytes.len() as u64);
        while let Ok(Scanned::Entry(entry)) =
            scan.next(bytes.get(scan.offset() as usize..).unwrap_or_default(), scan.offset())
        {
            if entry.promoted.is_empty() {
                continue;
            }
            let index = now(PromotedIndex::open(is_oa, &clusterings, &source, &entry.promoted));
            let Ok(index) = index else { continue };
            for i in 0..index.len().min(100) {
                let _ = now(index.block(i, |_| ()));
                let _ = now(index.open_at_start(i));
            }
        }
    }
}

/// Both ways through a trie, as far as a sound file of this size could go.
fn walk<P: Payload>(mut cursor: TrieCursor<'_, Memory<'_>, P>, limit: usize) {
    let mut entry = now(cursor.first());
    for _ in 0..limit {
        let Ok(Some(_)) = entry else { break };
        entry = now(cursor.next());
    }
    let mut entry = now(cursor.last());
    for _ in 0..limit {
        let Ok(Some(_)) = entry else { break };
        entry = now(cursor.previous());
    }
    let _ = now(cursor.seek_floor(b"\x40\x80key\x00\x38"));
    let _ = now(cursor.seek_candidate(b"\x40\x80key\x00\x38"));
}

pub fn partitions_trie(bytes: &[u8]) {
    let _ = describe_partitions(bytes);
    let source = Memory(bytes);
    let Ok(index) = now(PartitionIndex::open(&source)) else { return };
    walk(index.cursor(&source), 200);
    let _ = now(index.candidate(&source, b"\x40\x80key\x00\x38", 7));
}

/// Rows.db; the last two bytes say where its entry begins.
pub fn rows_trie(bytes: &[u8]) {
    let Some((file, at)) = bytes.split_last_chunk::<2>() else { return };
    let at = u64::from(u16::from_be_bytes(*at));
    let _ = describe_rows(file, &[at]);
    let source = Memory(file);
    if let Ok(entry) = now(RowIndexEntry::read(&source, at)) {
        walk(entry.cursor(&source), 200);
    }
}

pub fn toc(bytes: &[u8]) {
    if let Ok(toc) = Toc::decode(&mut Cursor::new(bytes)) {
        toc.encode(&mut Vec::new());
    }
    let _ = Digest::decode(&mut Cursor::new(bytes));
}

pub fn crc(bytes: &[u8]) {
    if let Ok(crcs) = ChunkCrcs::decode(&mut Cursor::new(bytes)) {
        let _ = crcs.verify(0, b"data");
        crcs.chunk_index(u64::MAX);
    }
}
