//! Saved caches, as Cassandra 5.0 keeps them in `saved_caches_directory`: `KeyCache-g` and `RowCache-g`, each of three files.
//!
//! ```text
//!   .db        schema version (16 bytes) │ entry │ entry │ …
//!     keys     number of the SSTable:uvint  key:i32 length + bytes  position:uvint  kind:u8
//!                kind 0   nothing more: the partition has no row index
//!                kind 1   header length:uvint  DeletionTime  count:uvint32  IndexInfo × count
//!                kind 2   offset in Index.db:uvint  header length:uvint  DeletionTime  count:uvint32  size:uvint32
//!     rows     number of the table:uvint  key:i32 length + bytes
//!   .crc       as CRC.db of the .db file
//!   .metadata  count:uvint32, tables: id (16 bytes), name of an index:utf
//!     keys     and count:uvint32, SSTables: number of the table:uvint  format:utf  version:utf  id:sbytes (16 or 4 bytes)
//! ```
//! A saved position is only a hint: after loading it, look the key up in the index.

use halcyon_model::bytes::Put;
use halcyon_model::{Clusterings, Cursor, DecodeError, DecodeResult};

use super::crc::{ChunkCrcs, DEFAULT_CRC_CHUNK_SIZE};
use super::id::SSTableId;
use super::version::{Format, Version};
use crate::big::promoted::skip_index;
use crate::format::deletion_time::read_deletion_time;

/// `AutoSavingCache.CURRENT_VERSION` of 5.0.
pub const VERSION: &str = "g";
/// The fewest bytes of a table and of an SSTable in the metadata.
const MIN_TABLE: usize = 18;
const MIN_SSTABLE: usize = 1 + 2 + 2 + 2;

const NOT_INDEXED: u8 = 0;
const INDEXED: u8 = 1;
const INDEXED_SHALLOW: u8 = 2;

/// What entries count by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedMetadata {
    /// With the name of a secondary index, mostly empty.
    pub tables: Vec<([u8; 16], String)>,
    /// Of the key cache.
    pub sstables: Vec<SavedSSTable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSSTable {
    /// Number of its table.
    pub table: usize,
    pub version: Version,
    pub id: SSTableId,
}

fn count(cursor: &mut Cursor<'_>, least: usize, what: &str) -> DecodeResult<usize> {
    let offset = cursor.offset();
    let count = cursor.uvint32()?;
    let most = cursor.remaining() / least;
    let valid = usize::try_from(count).ok().filter(|count| *count <= most);
    valid.ok_or_else(|| DecodeError { offset, what: format!("{count} {what} in {most} or fewer") })
}

impl SavedMetadata {
    /// `keys`: of the key cache.
    pub fn decode(bytes: &[u8], keys: bool) -> DecodeResult<SavedMetadata> {
        let cursor = &mut Cursor::new(bytes);
        let mut metadata = SavedMetadata::default();
        for _ in 0..count(cursor, MIN_TABLE, "tables")? {
            let mut id = [0; 16];
            id.copy_from_slice(cursor.take(16)?);
            metadata.tables.push((id, cursor.utf()?));
        }
        let sstables = if keys { count(cursor, MIN_SSTABLE, "SSTables")? } else { 0 };
        for _ in 0..sstables {
            metadata.sstables.push(read_sstable(cursor)?);
        }
        Ok(metadata)
    }

    pub fn encode(&self, keys: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        out.put_uvint32(number(self.tables.len()));
        for (id, index) in &self.tables {
            out.put(id);
            out.put_sbytes(index.as_bytes());
        }
        if keys {
            out.put_uvint32(number(self.sstables.len()));
            for sstable in &self.sstables {
                out.put_uvint32(number(sstable.table));
                out.put_sbytes(sstable.version.format.name().as_bytes());
                out.put_sbytes(&sstable.version.letters);
                match (sstable.id.to_uuid(), sstable.id) {
                    (Some(uuid), _) => out.put_sbytes(&uuid),
                    (None, SSTableId::Sequence(n)) => out.put_sbytes(&n.to_be_bytes()),
                    (None, SSTableId::Uuid(_)) => out.put_sbytes(&[]),
                }
            }
        }
        out
    }
}

fn read_sstable(cursor: &mut Cursor<'_>) -> DecodeResult<SavedSSTable> {
    let offset = cursor.offset();
    let wrong = |what: &str| DecodeError { offset, what: format!("{what} of an SSTable expected") };
    let table = usize::try_from(cursor.uvint32()?).map_err(|_| wrong("number of the table"))?;
    let format = cursor.utf()?;
    let letters = cursor.utf()?;
    let format = match format.as_str() {
        "big" => Format::Big,
        "bti" => Format::Bti,
        _ => return Err(wrong("format")),
    };
    let letters = letters.as_bytes().try_into().map_err(|_| wrong("version"))?;
    let id = cursor.sbytes()?;
    let id = match (<[u8; 16]>::try_from(id), <[u8; 4]>::try_from(id)) {
        (Ok(uuid), _) => SSTableId::from_uuid(uuid),
        (_, Ok(number)) => Some(SSTableId::Sequence(u32::from_be_bytes(number))),
        _ => None,
    };
    let id = id.ok_or_else(|| wrong("identifier"))?;
    Ok(SavedSSTable { table, version: Version { format, letters }, id })
}

/// Checks the whole `.db` file, and returns the entries, which follow the schema version.
pub fn entries<'a>(db: &'a [u8], crc: &[u8]) -> DecodeResult<Cursor<'a>> {
    let crcs = ChunkCrcs::decode(&mut Cursor::new(crc))?;
    for (number, chunk) in db.chunks(crcs.chunk_size as usize).enumerate() {
        let offset = number as u64 * u64::from(crcs.chunk_size);
        crcs.verify(number, chunk).map_err(|what| DecodeError { offset, what })?;
    }
    let mut cursor = Cursor::new(db);
    cursor.take(16)?;
    Ok(cursor)
}

fn read_key<'a>(cursor: &mut Cursor<'a>) -> DecodeResult<&'a [u8]> {
    let offset = cursor.offset();
    let length = cursor.i32()?;
    let valid = usize::try_from(length).ok().filter(|length| *length <= usize::from(u16::MAX));
    let wrong = || DecodeError { offset, what: format!("key of {length} bytes") };
    cursor.take(valid.ok_or_else(wrong)?)
}

/// The number of the table, and the key.
pub fn read_row(cursor: &mut Cursor<'_>) -> DecodeResult<(usize, Vec<u8>)> {
    let table = usize::try_from(cursor.uvint()?).unwrap_or(usize::MAX);
    Ok((table, read_key(cursor)?.to_vec()))
}

/// The number of the SSTable, and the key. `clusterings` are those of the SSTable of that number; where they are not known, an entry with
/// a row index cannot be stepped over.
pub fn read_position<'c>(
    cursor: &mut Cursor<'_>,
    metadata: &SavedMetadata,
    clusterings: impl FnOnce(usize) -> Option<&'c Clusterings>,
) -> DecodeResult<(usize, Vec<u8>)> {
    let offset = cursor.offset();
    let number = usize::try_from(cursor.uvint()?).unwrap_or(usize::MAX);
    let wrong = |what: &str| DecodeError { offset, what: what.to_owned() };
    let sstable = metadata.sstables.get(number).ok_or_else(|| wrong("entry of no SSTable"))?;
    let key = read_key(cursor)?.to_vec();
    let oa = sstable.version.letters >= *b"oa";
    cursor.uvint()?;
    match cursor.u8()? {
        NOT_INDEXED => {}
        INDEXED => {
            let clusterings = clusterings(number)
                .ok_or_else(|| wrong("entry with the row index of an unknown SSTable"))?;
            cursor.uvint()?;
            read_deletion_time(oa, cursor)?;
            skip_index(oa, clusterings, cursor)?;
        }
        INDEXED_SHALLOW => {
            cursor.uvint()?;
            cursor.uvint()?;
            read_deletion_time(oa, cursor)?;
            cursor.uvint32()?;
            cursor.uvint32()?;
        }
        kind => return Err(wrong(&format!("entry of kind {kind}"))),
    }
    Ok((number, key))
}

fn put_key(key: &[u8], out: &mut Vec<u8>) {
    out.put_i32(i32::try_from(key.len()).unwrap_or(i32::MAX));
    out.put(key);
}

pub fn put_row(table: usize, key: &[u8], out: &mut Vec<u8>) {
    out.put_uvint(table as u64);
    put_key(key, out);
}

/// A partition without a row index.
pub fn put_position(sstable: usize, key: &[u8], position: u64, out: &mut Vec<u8>) {
    out.put_uvint(sstable as u64);
    put_key(key, out);
    out.put_uvint(position);
    out.put_u8(NOT_INDEXED);
}

/// The `.crc` file of a `.db` file.
pub fn crc_of(db: &[u8]) -> Vec<u8> {
    let chunks = db.chunks(DEFAULT_CRC_CHUNK_SIZE as usize);
    let crcs = chunks.map(halcyon_codec::crc32).collect();
    let mut out = Vec::new();
    ChunkCrcs { chunk_size: DEFAULT_CRC_CHUNK_SIZE, crcs }.encode(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use halcyon_model::CqlType;

    use super::*;

    fn metadata() -> SavedMetadata {
        SavedMetadata {
            tables: vec![([7; 16], String::new()), ([9; 16], "i".to_owned())],
            sstables: vec![
                SavedSSTable { table: 1, version: Version::NB, id: SSTableId::Sequence(12) },
                SavedSSTable { table: 0, version: Version::OA, id: SSTableId::fresh(1, 2) },
            ],
        }
    }

    /// Proves that what is written is read again, and that any byte that is missing is an error, not a panic.
    #[test]
    fn there_and_back() {
        let metadata = metadata();
        for keys in [false, true] {
            let bytes = metadata.encode(keys);
            let read = SavedMetadata::decode(&bytes, keys).expect("whole");
            assert_eq!(
                (&read.tables, read.sstables.len()),
                (&metadata.tables, 2 * usize::from(keys))
            );
            for length in 0..bytes.len() {
                assert!(SavedMetadata::decode(&bytes[..length], keys).is_err(), "{length}");
            }
        }
        let mut db = vec![1; 16];
        put_position(1, b"key", 300, &mut db);
        put_position(0, b"", 0, &mut db);
        let crc = crc_of(&db);
        let mut cursor = entries(&db, &crc).expect("sound");
        for expected in [(1, b"key".to_vec()), (0, vec![])] {
            let read = read_position(&mut cursor, &metadata, |_| None).expect("entry");
            assert_eq!(read, expected);
        }
        assert_eq!(cursor.remaining(), 0);
        db[17] ^= 1;
        assert!(entries(&db, &crc).is_err());
    }

    /// Proves that what 5.0.9 saved is understood to the end, entries with row indexes too: a table of 40 narrow partitions, one of 3
    /// with four blocks each, one in the row cache with 5, and its own tables.
    #[test]
    fn what_cassandra_saved() {
        const DB: &[u8] = include_bytes!("../../tests/data/saved_caches/KeyCache-g.db");
        const CRC: &[u8] = include_bytes!("../../tests/data/saved_caches/KeyCache-g.crc");
        const METADATA: &[u8] = include_bytes!("../../tests/data/saved_caches/KeyCache-g.metadata");
        let metadata = SavedMetadata::decode(METADATA, true).expect("whole");
        assert_eq!((metadata.tables.len(), metadata.sstables.len()), (4, 11));
        assert_eq!(metadata.encode(true), METADATA);
        assert_eq!(crc_of(DB), CRC);
        let clusterings = Clusterings::new(&[CqlType::Int]);
        let mut cursor = entries(DB, CRC).expect("sound");
        let mut by_table = [0; 4];
        while cursor.remaining() > 0 {
            let entry = read_position(&mut cursor, &metadata, |_| Some(&clusterings));
            by_table[metadata.sstables[entry.expect("entry").0].table] += 1;
        }
        by_table.sort_unstable();
        assert_eq!(by_table, [3, 5, 8, 40]);
        const ROWS: &[u8] = include_bytes!("../../tests/data/saved_caches/RowCache-g.db");
        const ROWS_CRC: &[u8] = include_bytes!("../../tests/data/saved_caches/RowCache-g.crc");
        let mut cursor = entries(ROWS, ROWS_CRC).expect("sound");
        let mut keys = Vec::new();
        while cursor.remaining() > 0 {
            let (table, key) = read_row(&mut cursor).expect("entry");
            assert_eq!(table, 0);
            keys.push(key[3]);
        }
        keys.sort_unstable();
        assert_eq!(keys, [0, 1, 2, 3, 4]);
    }

    /// Proves that entries with row indexes are stepped over where that is possible.
    #[test]
    fn row_indexes_are_stepped_over() {
        let mut db = vec![0; 16];
        put_position(1, b"a", 5, &mut db);
        db.pop();
        db.put(&[INDEXED_SHALLOW, 1, 2, 0x80, 3, 4]);
        put_position(1, b"b", 5, &mut db);
        db.pop();
        // No blocks; Cassandra always has two or more.
        db.put(&[INDEXED, 2, 0x80, 0]);
        put_row(3, b"last", &mut db);
        let crc = crc_of(&db);
        let mut cursor = entries(&db, &crc).expect("sound");
        let clusterings = Clusterings::new(&[]);
        let mut read = |known: bool| {
            read_position(&mut cursor, &metadata(), |_| known.then_some(&clusterings))
        };
        assert_eq!(read(false).expect("shallow").1, b"a");
        assert_eq!(read(true).expect("with blocks").1, b"b");
        assert_eq!(read_row(&mut cursor).expect("row"), (3, b"last".to_vec()));
    }
}
