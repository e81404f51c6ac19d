//! Statistics.db: four components behind a table of contents.
//!
//! ```text
//! i32 4 │ u32 crc │ 4 × (i32 type, i32 offset) │ u32 crc │ VALIDATION │ crc │ COMPACTION │ crc │ STATS │ crc │ HEADER │ crc
//!       └ of the count            of count and table ┘        each crc that of its component
//! ```
//!
//! CRC32s exist from `na` on.  Offsets are absolute; a component reaches to the next one, or to the end of the file.

pub mod cardinality;
pub mod collector;
pub mod covered;
pub mod header;
pub mod histogram;
pub mod mutation;
pub mod stats;
pub mod tombstones;

use std::ops::Range;

use halcyon_model::bytes::Put;
use halcyon_model::{Cursor, DecodeError, DecodeResult};

use super::version::Version;
use cardinality::Cardinality;
use header::SerializationHeader;
use stats::{MutableFields, Stats};

pub use collector::MetadataCollector;

#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    pub validation: Option<Validation>,
    pub compaction: Option<Compaction>,
    pub stats: Stats,
    pub header: SerializationHeader,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// Class name, as `Partitioner::parse` takes it.
    pub partitioner: String,
    pub bloom_filter_fp_chance: f64,
}

/// The sketch of partition keys, not decoded: an SSTable can be read without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    pub sketch: Vec<u8>,
}

impl Compaction {
    pub fn new(cardinality: &Cardinality) -> Compaction {
        let mut sketch = Vec::new();
        cardinality.encode(&mut sketch);
        Compaction { sketch }
    }

    /// An error means that keys have to be counted in another way.
    pub fn cardinality(&self) -> DecodeResult<Cardinality> {
        Cardinality::decode(&mut Cursor::new(&self.sketch))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Validation,
    Compaction,
    Stats,
    Header,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Validation, Kind::Compaction, Kind::Stats, Kind::Header];

    fn from_ordinal(ordinal: u32) -> Option<Kind> {
        Kind::ALL.get(ordinal as usize).copied()
    }
}

/// Components with their bytes, without the CRC.
type Contents = Vec<(Kind, Range<usize>)>;

impl Statistics {
    /// The cursor holds the whole file.
    pub fn decode(cursor: &mut Cursor<'_>, version: Version) -> DecodeResult<Statistics> {
        decode_with_fields(cursor, version).map(|(statistics, ..)| statistics)
    }

    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        let mut components: Vec<(Kind, Vec<u8>)> = Vec::with_capacity(4);
        if let Some(validation) = &self.validation {
            let mut bytes = Vec::new();
            bytes.put_utf(&validation.partitioner);
            bytes.put_f64(validation.bloom_filter_fp_chance);
            components.push((Kind::Validation, bytes));
        }
        if let Some(compaction) = &self.compaction {
            let mut bytes = Vec::new();
            bytes.put_ibytes(&compaction.sketch);
            components.push((Kind::Compaction, bytes));
        }
        let mut stats = Vec::new();
        self.stats.encode(version, &mut stats);
        components.push((Kind::Stats, stats));
        let mut header = Vec::new();
        self.header.encode(&mut header);
        components.push((Kind::Header, header));
        let components: Vec<(Kind, &[u8])> = components.iter().map(|(k, b)| (*k, &b[..])).collect();
        encode_contents(&components, version, out);
    }
}

fn decode_with_fields(
    cursor: &mut Cursor<'_>,
    version: Version,
) -> DecodeResult<(Statistics, Contents, MutableFields)> {
    let file = cursor.rest();
    let mut contents = decode_contents(cursor, version)?;
    // STATS before `oa` are spelled in the header's types.
    let find = |kind| contents.iter().find(|(k, _)| *k == kind).map(|(_, range)| range.clone());
    let header = find(Kind::Header).ok_or_else(|| cursor.error("no HEADER component"))?;
    let bytes = file.get(header.clone()).unwrap_or_default();
    let header = SerializationHeader::decode(&mut Cursor::at_offset(bytes, header.start as u64))?;
    let (mut validation, mut compaction, mut stats) = (None, None, None);
    for (kind, range) in &contents {
        let bytes = file.get(range.clone()).unwrap_or_default();
        let checked = check_crc(cursor, bytes, range.end, version, file);
        match kind {
            Kind::Validation => {
                checked?;
                validation = Some(Validation::decode(cursor)?);
            }
            Kind::Compaction => match checked.and_then(|()| probe_compaction(bytes, range.start)) {
                Ok(()) => compaction = Some(decode_compaction(cursor)?),
                // Only compactions have a use for it, and count keys in another way without it.
                Err(error) => cursor.remark_damage(error),
            },
            Kind::Stats => {
                checked?;
                let types = &header.clustering_types;
                stats = Some(Stats::decode_with_fields(cursor, version, types)?);
            }
            Kind::Header => {
                checked?;
                SerializationHeader::decode(cursor)?;
            }
        }
        end_component(cursor, range.end, *kind, version)?;
    }
    let (stats, fields) = stats.ok_or_else(|| cursor.error("no STATS component"))?;
    // A damaged component gets no new checksum when the others are written again.
    contents.retain(|(kind, _)| *kind != Kind::Compaction || compaction.is_some());
    Ok((Statistics { validation, compaction, stats, header }, contents, fields))
}

fn decode_contents(cursor: &mut Cursor<'_>, version: Version) -> DecodeResult<Contents> {
    let file = cursor.rest();
    let n = cursor.u32()?;
    if n > Kind::ALL.len() as u32 {
        return Err(cursor.error(format!("{n} components")));
    }
    cursor.note(|| format!("{n} components"));
    let mut crc = halcyon_codec::Crc32::new();
    let mut check = |cursor: &mut Cursor<'_>, bytes: &[u8], what: &str| {
        crc.update(bytes);
        if !version.has_metadata_checksum() {
            return Ok(());
        }
        let computed = crc.clone().finalize();
        let stored = cursor.u32()?;
        if stored != computed {
            return Err(cursor.error(format!(
                "checksum of {what} mismatches: stored {stored:08x}, computed {computed:08x}"
            )));
        }
        cursor.note(|| format!("CRC32 of {what}"));
        Ok(())
    };
    check(cursor, file.get(..4).unwrap_or_default(), "the component count")?;
    let table = cursor.rest().get(..8 * n as usize).unwrap_or_default();
    let mut starts: Vec<(Kind, usize)> = Vec::with_capacity(n as usize);
    for _ in 0..n {
        let ordinal = cursor.u32()?;
        let offset = cursor.u32()?;
        let ascends = |kind: &Kind| starts.last().is_none_or(|(last, _)| last < kind);
        let kind = Kind::from_ordinal(ordinal).filter(ascends);
        let kind = kind.ok_or_else(|| cursor.error(format!("component {ordinal} out of place")))?;
        cursor.note(|| format!("{kind:?} at {offset}"));
        starts.push((kind, offset as usize));
    }
    check(cursor, table, "the table of contents")?;
    let trailer = if version.has_metadata_checksum() { 4 } else { 0 };
    let mut at = file.len() - cursor.remaining();
    let mut contents = Vec::with_capacity(starts.len());
    for (i, (kind, start)) in starts.iter().enumerate() {
        let next = starts.get(i + 1).map_or(file.len(), |(_, next)| *next);
        let end = next.checked_sub(trailer).filter(|end| *start == at && end >= start);
        let end = end
            .filter(|_| next <= file.len())
            .ok_or_else(|| cursor.error(format!("{kind:?} cannot be at {start}, up to {next}")))?;
        contents.push((*kind, *start..end));
        at = next;
    }
    Ok(contents)
}

/// Checks a component's CRC before anything in it is believed.
fn check_crc(
    cursor: &Cursor<'_>,
    bytes: &[u8],
    end: usize,
    version: Version,
    file: &[u8],
) -> DecodeResult<()> {
    if !version.has_metadata_checksum() {
        return Ok(());
    }
    let stored = file.get(end..).and_then(|rest| rest.first_chunk::<4>()).copied();
    let stored = u32::from_be_bytes(stored.unwrap_or_default());
    let computed = halcyon_codec::crc32(bytes);
    if stored == computed {
        return Ok(());
    }
    Err(cursor.error(format!(
        "component checksum mismatch: stored {stored:08x}, computed {computed:08x}"
    )))
}

fn end_component(
    cursor: &mut Cursor<'_>,
    end: usize,
    kind: Kind,
    version: Version,
) -> DecodeResult<()> {
    let left = end.checked_sub(cursor.index());
    let left = left.ok_or_else(|| cursor.error(format!("{kind:?} overruns its end at {end}")))?;
    if left > 0 {
        cursor.take(left)?;
        cursor.note(|| format!("padding of {kind:?}"));
    }
    if version.has_metadata_checksum() {
        cursor.u32()?;
        cursor.note(|| format!("CRC32 of {kind:?}"));
    }
    Ok(())
}

impl Validation {
    fn decode(cursor: &mut Cursor<'_>) -> DecodeResult<Validation> {
        let partitioner = cursor.utf()?;
        cursor.note(|| format!("partitioner {partitioner}"));
        let bloom_filter_fp_chance = cursor.f64()?;
        cursor.note(|| format!("bloom_filter_fp_chance {bloom_filter_fp_chance}"));
        Ok(Validation { partitioner, bloom_filter_fp_chance })
    }
}

fn probe_compaction(bytes: &[u8], start: usize) -> DecodeResult<()> {
    decode_compaction(&mut Cursor::at_offset(bytes, start as u64)).map(drop)
}

fn decode_compaction(cursor: &mut Cursor<'_>) -> DecodeResult<Compaction> {
    let offset = cursor.offset();
    let length = cursor.i32()?;
    cursor.note(|| format!("sketch of partition keys, {length} bytes"));
    let length = u64::try_from(length)
        .map_err(|_| DecodeError { offset, what: format!("sketch of {length} bytes") })?;
    let compaction = Compaction { sketch: cursor.take_u64(length)?.to_vec() };
    if length > 0 {
        cursor.note(|| match compaction.cardinality() {
            Ok(cardinality) => format!("about {} distinct keys", cardinality.estimate()),
            Err(error) => format!("unreadable sketch ({error})"),
        });
    }
    Ok(compaction)
}

fn encode_contents(components: &[(Kind, &[u8])], version: Version, out: &mut Vec<u8>) {
    let checksums = version.has_metadata_checksum();
    let trailer = if checksums { 4 } else { 0 };
    let mut crc = halcyon_codec::Crc32::new();
    let mut put = |bytes: &[u8], out: &mut Vec<u8>| {
        out.put(bytes);
        crc.update(bytes);
        if checksums {
            out.put_u32(crc.clone().finalize());
        }
    };
    put(&(components.len() as u32).to_be_bytes(), out);
    let mut offset = 4 + trailer + 8 * components.len() + trailer;
    let mut table = Vec::new();
    for (kind, bytes) in components {
        table.put_u32(*kind as u32);
        table.put_u32(offset as u32);
        offset += bytes.len() + trailer;
    }
    put(&table, out);
    for (_, bytes) in components {
        out.put(bytes);
        if checksums {
            out.put_u32(halcyon_codec::crc32(bytes));
        }
    }
}

#[cfg(test)]
mod tests;
