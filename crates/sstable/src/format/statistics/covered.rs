//! The slice of clusterings that an SSTable covers, so that reads outside of it can skip the file.
//!
//! ```text
//! ≥ oa   uvint32 n, n × vbytes type │ bound │ bound        bound: u8 kind, u16 size, values
//! < oa   i32 n, n × sbytes value │ i32 n, n × sbytes value     smallest and largest value of each column, inclusive
//! ```
//!
//! It only helps to skip: where it cannot be, it is read as "everything", too.
//!
//! Before `md` the lists cannot be trusted (CASSANDRA-14861): they are read as "everything".

use halcyon_model::bytes::Put;
use halcyon_model::clustering::{ClusteringValue, Position};
use halcyon_model::{Clusterings, Cursor, DecodeError, DecodeResult};

use halcyon_model::BoundKind;

use super::header::{HeaderType, clusterings_of};
use crate::format::version::Version;

/// One end of a slice. No values: the end of the partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusteringBound {
    pub kind: BoundKind,
    /// Number of values in `serialized`.
    pub count: u16,
    pub serialized: Vec<u8>,
}

impl ClusteringBound {
    fn empty(kind: BoundKind) -> ClusteringBound {
        ClusteringBound { kind, count: 0, serialized: Vec::new() }
    }

    pub fn position(&self) -> Position<'_> {
        Position { kind: self.kind, count: usize::from(self.count), serialized: &self.serialized }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoveredClustering {
    pub types: Vec<HeaderType>,
    pub start: ClusteringBound,
    pub end: ClusteringBound,
}

impl CoveredClustering {
    pub fn everything(types: Vec<HeaderType>) -> CoveredClustering {
        CoveredClustering {
            types,
            start: ClusteringBound::empty(BoundKind::InclStart),
            end: ClusteringBound::empty(BoundKind::InclEnd),
        }
    }

    pub fn nothing(types: Vec<HeaderType>) -> CoveredClustering {
        CoveredClustering {
            types,
            start: ClusteringBound::empty(BoundKind::ExclStart),
            end: ClusteringBound::empty(BoundKind::ExclEnd),
        }
    }

    /// `types` are the header's: older files do not repeat them.
    pub(super) fn decode(
        cursor: &mut Cursor<'_>,
        version: Version,
        types: &[HeaderType],
    ) -> DecodeResult<CoveredClustering> {
        if version.has_improved_min_max() {
            let types = HeaderType::decode_list(cursor, "covered clustering")?;
            let clusterings = clusterings_of(&types);
            let start = decode_bound(cursor, &clusterings, "covered from")?;
            let end = decode_bound(cursor, &clusterings, "covered to")?;
            if !start.kind.opens() || !end.kind.closes() {
                let (from, to) = (start.kind, end.kind);
                cursor.remark(format!("covered clustering from {from:?} to {to:?}"));
                return Ok(CoveredClustering::everything(types));
            }
            return Ok(CoveredClustering { types, start, end });
        }
        let clusterings = clusterings_of(types);
        let start = decode_values(cursor, &clusterings, BoundKind::InclStart, "smallest")?;
        let end = decode_values(cursor, &clusterings, BoundKind::InclEnd, "largest")?;
        match (version.has_accurate_min_max(), start, end) {
            (true, Some(start), Some(end)) => {
                Ok(CoveredClustering { types: types.to_vec(), start, end })
            }
            (true, ..) => {
                cursor.remark("clustering values do not fit their types");
                Ok(CoveredClustering::everything(types.to_vec()))
            }
            (false, ..) => Ok(CoveredClustering::everything(types.to_vec())),
        }
    }

    pub(super) fn encode(&self, version: Version, out: &mut Vec<u8>) {
        if version.has_improved_min_max() {
            HeaderType::encode_list(&self.types, out);
            for bound in [&self.start, &self.end] {
                out.put_u8(bound.kind as u8);
                out.put_u16(bound.count);
                out.put(&bound.serialized);
            }
            return;
        }
        let clusterings = clusterings_of(&self.types);
        for bound in [&self.start, &self.end] {
            let values = clusterings.values(&bound.serialized, usize::from(bound.count));
            let values: Vec<&[u8]> = values
                .map_while(|value| match value {
                    ClusteringValue::Null => None,
                    ClusteringValue::Bytes(bytes) => Some(bytes),
                })
                .collect();
            out.put_i32(values.len() as i32);
            values.iter().for_each(|value| out.put_sbytes(value));
        }
    }
}

fn decode_bound(
    cursor: &mut Cursor<'_>,
    clusterings: &Clusterings,
    what: &str,
) -> DecodeResult<ClusteringBound> {
    let kind = BoundKind::read_marker(cursor)?;
    let count = cursor.u16()?;
    let serialized = clusterings.read(cursor, usize::from(count))?.to_vec();
    cursor.note(|| format!("{what} {kind:?}, {count} values"));
    Ok(ClusteringBound { kind, count, serialized })
}

/// A list of values as a bound; none if they do not fit the types.
fn decode_values(
    cursor: &mut Cursor<'_>,
    clusterings: &Clusterings,
    kind: BoundKind,
    what: &str,
) -> DecodeResult<Option<ClusteringBound>> {
    let offset = cursor.offset();
    let n = cursor.i32()?;
    let sound = usize::try_from(n).ok().filter(|n| *n <= cursor.remaining() / 2);
    let n = sound.ok_or_else(|| DecodeError { offset, what: format!("{n} clustering values") })?;
    cursor.note(|| format!("{what} clusterings of {n} columns"));
    let mut values = Vec::with_capacity(n);
    for i in 0..n {
        let value = cursor.sbytes()?;
        cursor.note(|| format!("{what} value of clustering {i}"));
        values.push(ClusteringValue::Bytes(value));
    }
    let fits = |(i, value): (usize, &ClusteringValue<'_>)| match value {
        ClusteringValue::Null | ClusteringValue::Bytes([]) => true,
        ClusteringValue::Bytes(bytes) => {
            let fixed = clusterings.type_at(i).and_then(|t| t.fixed_len());
            fixed.is_none_or(|length| length as usize == bytes.len())
        }
    };
    if n > clusterings.len() || !values.iter().enumerate().all(fits) {
        return Ok(None);
    }
    let mut bound = ClusteringBound { count: n as u16, ..ClusteringBound::empty(kind) };
    clusterings.write(&values, &mut bound.serialized);
    Ok(Some(bound))
}
