//! HEADER: the bases of the deltas, the types and the columns, without which Data.db cannot be read.
//!
//! ```text
//! uvint min timestamp − epoch │ uvint32 min local deletion time − epoch │ uvint32 min TTL
//! vbytes key type │ uvint32 n, n × vbytes clustering type
//! uvint32 n, n × (vbytes name, vbytes type)   static columns
//! uvint32 n, n × (vbytes name, vbytes type)   regular columns
//! ```
//!
//! The epoch is 2015-09-22T00:00:00Z; differences wrap.  The bases are hints: smaller values occur in the data.

use halcyon_model::bytes::Put;
use halcyon_model::{Clusterings, CqlType, Cursor, DecodeError, DecodeResult};

/// µs.
pub const TIMESTAMP_EPOCH: i64 = 1_442_880_000_000_000;
/// Seconds.
pub const DELETION_TIME_EPOCH: i64 = 1_442_880_000;
const DELETION_TIME_EPOCH_32: u32 = DELETION_TIME_EPOCH as u32;

/// A type, and its spelling in the file, which is kept byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderType {
    text: String,
    cql: CqlType,
}

impl HeaderType {
    /// Parses a class spelling.
    pub fn parse(text: &str) -> Result<HeaderType, String> {
        let cql = CqlType::parse(text).map_err(|error| error.to_string())?;
        Ok(HeaderType { text: text.to_string(), cql })
    }

    /// The spelling in the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn cql(&self) -> &CqlType {
        &self.cql
    }

    pub(super) fn decode(cursor: &mut Cursor<'_>, what: &str) -> DecodeResult<HeaderType> {
        let offset = cursor.offset();
        let bytes = cursor.vbytes()?;
        let text = std::str::from_utf8(bytes)
            .map_err(|_| DecodeError { offset, what: format!("{what}: type is not UTF-8") })?;
        let decoded = HeaderType::parse(text)
            .map_err(|why| DecodeError { offset, what: format!("{what}: {why}") })?;
        Ok(decoded)
    }

    pub(super) fn decode_list(
        cursor: &mut Cursor<'_>,
        what: &str,
    ) -> DecodeResult<Vec<HeaderType>> {
        let n = decode_count(cursor, 1, what)?;
        let mut types = Vec::with_capacity(n);
        for i in 0..n {
            let decoded = HeaderType::decode(cursor, what)?;
            cursor.note(|| format!("{what} {i}: {}", decoded.text));
            types.push(decoded);
        }
        Ok(types)
    }

    pub(super) fn encode_list(types: &[HeaderType], out: &mut Vec<u8>) {
        out.put_uvint32(types.len() as i32);
        types.iter().for_each(|t| out.put_vbytes(t.text.as_bytes()));
    }
}

impl From<CqlType> for HeaderType {
    fn from(cql: CqlType) -> HeaderType {
        HeaderType { text: cql.to_string(), cql }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderColumn {
    pub name: Vec<u8>,
    pub column_type: HeaderType,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerializationHeader {
    /// Base of timestamps (µs).
    pub min_timestamp: i64,
    /// Base of local deletion times (s): unsigned 32 bits, like all sums of it and a difference in the data.
    pub min_local_deletion_time: i64,
    pub min_ttl: i32,
    pub key_type: HeaderType,
    pub clustering_types: Vec<HeaderType>,
    /// In the order of Data.db: simple columns before complex ones, each by name.
    pub static_columns: Vec<HeaderColumn>,
    pub regular_columns: Vec<HeaderColumn>,
}

impl SerializationHeader {
    /// A header with the bases of a file without timestamps, deletions and TTLs.
    pub fn new(key_type: HeaderType, clustering_types: Vec<HeaderType>) -> SerializationHeader {
        SerializationHeader {
            min_timestamp: TIMESTAMP_EPOCH,
            min_local_deletion_time: DELETION_TIME_EPOCH,
            min_ttl: 0,
            key_type,
            clustering_types,
            static_columns: Vec::new(),
            regular_columns: Vec::new(),
        }
    }

    pub fn clusterings(&self) -> Clusterings {
        clusterings_of(&self.clustering_types)
    }

    pub fn decode(cursor: &mut Cursor<'_>) -> DecodeResult<SerializationHeader> {
        let min_timestamp = TIMESTAMP_EPOCH.wrapping_add(cursor.uvint()? as i64);
        cursor.note(|| format!("base of timestamps {min_timestamp}"));
        let difference = cursor.uvint32()? as u32;
        let min_local_deletion_time = i64::from(DELETION_TIME_EPOCH_32.wrapping_add(difference));
        cursor.note(|| format!("base of local deletion times {min_local_deletion_time}"));
        let min_ttl = cursor.uvint32()?;
        cursor.note(|| format!("base of TTLs {min_ttl}"));
        let key_type = HeaderType::decode(cursor, "partition key")?;
        cursor.note(|| format!("partition key: {}", key_type.text));
        let clustering_types = HeaderType::decode_list(cursor, "clustering")?;
        Ok(SerializationHeader {
            min_timestamp,
            min_local_deletion_time,
            min_ttl,
            key_type,
            clustering_types,
            static_columns: decode_columns(cursor, "static column")?,
            regular_columns: decode_columns(cursor, "regular column")?,
        })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_uvint(self.min_timestamp.wrapping_sub(TIMESTAMP_EPOCH) as u64);
        out.put_uvint32(self.min_local_deletion_time.wrapping_sub(DELETION_TIME_EPOCH) as i32);
        out.put_uvint32(self.min_ttl);
        out.put_vbytes(self.key_type.text.as_bytes());
        HeaderType::encode_list(&self.clustering_types, out);
        for columns in [&self.static_columns, &self.regular_columns] {
            out.put_uvint32(columns.len() as i32);
            for column in columns {
                out.put_vbytes(&column.name);
                out.put_vbytes(column.column_type.text.as_bytes());
            }
        }
    }
}

pub(super) fn clusterings_of(types: &[HeaderType]) -> Clusterings {
    let types: Vec<CqlType> = types.iter().map(|t| t.cql.clone()).collect();
    Clusterings::new(&types)
}

/// A count of things of at least `least` bytes each.
fn decode_count(cursor: &mut Cursor<'_>, least: usize, what: &str) -> DecodeResult<usize> {
    let n = cursor.count()?;
    if n > cursor.remaining() / least {
        return Err(cursor.error(format!("{what}: {n} entries do not fit")));
    }
    cursor.note(|| format!("{what}: {n} entries"));
    Ok(n)
}

fn decode_columns(cursor: &mut Cursor<'_>, what: &str) -> DecodeResult<Vec<HeaderColumn>> {
    let n = decode_count(cursor, 2, what)?;
    let mut columns = Vec::with_capacity(n);
    for _ in 0..n {
        let name = cursor.vbytes()?.to_vec();
        let column_type = HeaderType::decode(cursor, what)?;
        cursor.note(|| format!("{what} {}: {}", String::from_utf8_lossy(&name), column_type.text));
        columns.push(HeaderColumn { name, column_type });
    }
    Ok(columns)
}
