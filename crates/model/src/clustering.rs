//! Clusterings and bounds in their serialized form, which is also the form in which the merge compares them.
//!
//! A clustering is stored as batches of up to 32 values: a `uvint` header with two bits per value (bit 2i: empty,
//! bit 2i+1: null), then each value that is neither, framed by its type (fixed length: raw; else `uvint` length).
//! A table without clustering columns stores zero bytes.  Bounds hold a prefix of the columns.
//!
//! Keeping the serialized bytes means that a row which passes through a merge unchanged has its clustering
//! copied, never decoded.

use std::cmp::Ordering;

use crate::bytes::{Cursor, DecodeError, DecodeResult, Put};
use crate::types::CqlType;

/// Kinds of clustering prefix, with the ordinals that files store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BoundKind {
    ExclEnd = 0,
    InclStart = 1,
    ExclEndInclStart = 2,
    Static = 3,
    Clustering = 4,
    InclEndExclStart = 5,
    InclEnd = 6,
    ExclStart = 7,
}

impl BoundKind {
    pub fn from_ordinal(ordinal: u8) -> Option<BoundKind> {
        Some(match ordinal {
            0 => BoundKind::ExclEnd,
            1 => BoundKind::InclStart,
            2 => BoundKind::ExclEndInclStart,
            3 => BoundKind::Static,
            4 => BoundKind::Clustering,
            5 => BoundKind::InclEndExclStart,
            6 => BoundKind::InclEnd,
            7 => BoundKind::ExclStart,
            _ => return None,
        })
    }

    /// Reads the kind of a range tombstone marker.
    pub fn read_marker(cursor: &mut Cursor<'_>) -> DecodeResult<BoundKind> {
        let offset = cursor.offset();
        let ordinal = cursor.u8()?;
        match BoundKind::from_ordinal(ordinal) {
            Some(kind) if !matches!(kind, BoundKind::Static | BoundKind::Clustering) => Ok(kind),
            _ => Err(DecodeError {
                offset,
                what: format!("kind of range tombstone bound expected, found {ordinal}"),
            }),
        }
    }

    /// The order relative to a clustering with the same prefix: before, at, or after it.
    #[inline]
    pub fn side(self) -> Ordering {
        match self {
            BoundKind::ExclEnd | BoundKind::InclStart | BoundKind::ExclEndInclStart => {
                Ordering::Less
            }
            BoundKind::Static | BoundKind::Clustering => Ordering::Equal,
            BoundKind::InclEndExclStart | BoundKind::InclEnd | BoundKind::ExclStart => {
                Ordering::Greater
            }
        }
    }

    pub fn is_boundary(self) -> bool {
        matches!(self, BoundKind::ExclEndInclStart | BoundKind::InclEndExclStart)
    }

    /// Opens a range (a boundary does both).
    pub fn opens(self) -> bool {
        matches!(self, BoundKind::InclStart | BoundKind::ExclStart) || self.is_boundary()
    }

    pub fn closes(self) -> bool {
        matches!(self, BoundKind::InclEnd | BoundKind::ExclEnd) || self.is_boundary()
    }

    /// The closing bound at the same position.
    pub fn as_close(self) -> BoundKind {
        if self.side() == Ordering::Less { BoundKind::ExclEnd } else { BoundKind::InclEnd }
    }

    /// The opening bound at the same position.
    pub fn as_open(self) -> BoundKind {
        if self.side() == Ordering::Less { BoundKind::InclStart } else { BoundKind::ExclStart }
    }

    /// The same place in descending order: the other side of its prefix, and what opened now closes.
    #[must_use]
    pub fn reversed(self) -> BoundKind {
        match self {
            BoundKind::InclStart => BoundKind::InclEnd,
            BoundKind::InclEnd => BoundKind::InclStart,
            BoundKind::ExclStart => BoundKind::ExclEnd,
            BoundKind::ExclEnd => BoundKind::ExclStart,
            BoundKind::ExclEndInclStart => BoundKind::InclEndExclStart,
            BoundKind::InclEndExclStart => BoundKind::ExclEndInclStart,
            BoundKind::Static | BoundKind::Clustering => self,
        }
    }

    /// The boundary at the same position.
    pub fn as_boundary(self) -> BoundKind {
        if self.side() == Ordering::Less {
            BoundKind::ExclEndInclStart
        } else {
            BoundKind::InclEndExclStart
        }
    }
}

/// One value of a clustering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusteringValue<'a> {
    Null,
    /// Present, zero or more bytes.
    Bytes(&'a [u8]),
}

/// The facts about each clustering column that files depend on, prepared once per table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clusterings {
    columns: Vec<ClusteringColumn>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ClusteringColumn {
    cql_type: CqlType,
    reversed: bool,
    fixed_len: Option<u32>,
}

const BATCH: usize = 32;

impl Clusterings {
    pub fn new(types: &[CqlType]) -> Self {
        let columns = types
            .iter()
            .map(|t| ClusteringColumn {
                cql_type: t.base().clone(),
                reversed: matches!(t, CqlType::Reversed(_)),
                fixed_len: t.fixed_len(),
            })
            .collect();
        Self { columns }
    }

    pub fn len(&self) -> usize {
        self.columns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The base type (without `Reversed`) of column `i`.
    pub fn type_at(&self, i: usize) -> Option<&CqlType> {
        self.columns.get(i).map(|c| &c.cql_type)
    }

    pub fn is_reversed(&self, i: usize) -> bool {
        self.columns.get(i).is_some_and(|c| c.reversed)
    }

    /// Skips a serialized prefix of `count` values, checking its framing; returns its bytes.
    #[inline]
    pub fn read<'a>(&self, cursor: &mut Cursor<'a>, count: usize) -> DecodeResult<&'a [u8]> {
        let rest = cursor.rest();
        let start = cursor.index();
        let Some(columns) = self.columns.get(..count) else {
            return Err(cursor.error(format!(
                "bound of {count} clustering values in a table of {}",
                self.columns.len()
            )));
        };
        for batch in columns.chunks(BATCH) {
            let header = cursor.uvint()?;
            if batch.len() < BATCH && header >> (2 * batch.len()) != 0 {
                return Err(cursor.error("clustering header has bits beyond its values"));
            }
            for (i, column) in batch.iter().enumerate() {
                match header >> (2 * i) & 3 {
                    0 => match column.fixed_len {
                        Some(len) => cursor.take(len as usize)?,
                        None => cursor.vbytes()?,
                    },
                    1 | 2 => &[],
                    _ => {
                        return Err(cursor.error("clustering value marked both empty and null"));
                    }
                };
            }
        }
        Ok(rest.get(..cursor.index() - start).unwrap_or_default())
    }

    /// Iterates over the values of a serialized prefix of `count` values that `read` accepted.
    pub fn values<'a>(&'a self, serialized: &'a [u8], count: usize) -> ClusteringValues<'a> {
        ClusteringValues {
            columns: self.columns.get(..count).unwrap_or(&self.columns),
            cursor: Cursor::new(serialized),
            header: 0,
            next: 0,
        }
    }

    /// Serializes values (7.1).
    pub fn write(&self, values: &[ClusteringValue<'_>], out: &mut Vec<u8>) {
        for (columns, batch) in self.columns.chunks(BATCH).zip(values.chunks(BATCH)) {
            let header = batch.iter().enumerate().fold(0u64, |header, (i, value)| match value {
                ClusteringValue::Null => header | 2 << (2 * i),
                ClusteringValue::Bytes([]) => header | 1 << (2 * i),
                ClusteringValue::Bytes(_) => header,
            });
            out.put_uvint(header);
            for (column, value) in columns.iter().zip(batch) {
                match value {
                    ClusteringValue::Null | ClusteringValue::Bytes([]) => {}
                    ClusteringValue::Bytes(bytes) if column.fixed_len.is_some() => out.put(bytes),
                    ClusteringValue::Bytes(bytes) => out.put_vbytes(bytes),
                }
            }
        }
    }

    /// Compares two positions of a partition: serialized prefixes with their number of values and kind.
    pub fn compare(&self, a: Position<'_>, b: Position<'_>) -> Ordering {
        let mut left = self.values(a.serialized, a.count);
        let mut right = self.values(b.serialized, b.count);
        for column in &self.columns {
            match (left.next(), right.next()) {
                (Some(l), Some(r)) => {
                    let order = column.compare(l, r);
                    if order != Ordering::Equal {
                        return order;
                    }
                }
                // The shorter prefix is before or after all clusterings that start with it.
                (None, Some(_)) => return a.kind.side(),
                (Some(_), None) => return b.kind.side().reverse(),
                (None, None) => break,
            }
        }
        a.kind.side().cmp(&b.kind.side())
    }
}

impl ClusteringColumn {
    #[inline]
    fn compare(&self, left: ClusteringValue<'_>, right: ClusteringValue<'_>) -> Ordering {
        match (left, right) {
            (ClusteringValue::Null, ClusteringValue::Null) => Ordering::Equal,
            // Null sorts first, also on DESC columns.
            (ClusteringValue::Null, _) => Ordering::Less,
            (_, ClusteringValue::Null) => Ordering::Greater,
            (ClusteringValue::Bytes(l), ClusteringValue::Bytes(r)) => {
                let order = self.cql_type.compare(l, r);
                if self.reversed { order.reverse() } else { order }
            }
        }
    }
}

/// A position in the clustering order of a partition.
#[derive(Debug, Clone, Copy)]
pub struct Position<'a> {
    pub kind: BoundKind,
    /// Number of values in `serialized`.
    pub count: usize,
    pub serialized: &'a [u8],
}

/// A position with its own bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PositionBuf {
    pub kind: BoundKind,
    /// Number of values in `serialized`.
    pub count: usize,
    pub serialized: Vec<u8>,
}

impl PositionBuf {
    pub fn position(&self) -> Position<'_> {
        Position { kind: self.kind, count: self.count, serialized: &self.serialized }
    }
}

impl From<Position<'_>> for PositionBuf {
    fn from(position: Position<'_>) -> PositionBuf {
        let Position { kind, count, serialized } = position;
        PositionBuf { kind, count, serialized: serialized.to_vec() }
    }
}

#[derive(Debug)]
pub struct ClusteringValues<'a> {
    columns: &'a [ClusteringColumn],
    cursor: Cursor<'a>,
    header: u64,
    next: usize,
}

impl<'a> Iterator for ClusteringValues<'a> {
    type Item = ClusteringValue<'a>;

    #[inline]
    fn next(&mut self) -> Option<ClusteringValue<'a>> {
        let column = self.columns.get(self.next)?;
        let in_batch = self.next % BATCH;
        if in_batch == 0 {
            self.header = self.cursor.uvint().ok()?;
        }
        self.next += 1;
        match self.header >> (2 * in_batch) & 3 {
            0 => match column.fixed_len {
                Some(len) => self.cursor.take(len as usize),
                None => self.cursor.vbytes(),
            }
            .ok()
            .map(ClusteringValue::Bytes),
            1 => Some(ClusteringValue::Bytes(&[])),
            _ => Some(ClusteringValue::Null),
        }
    }
}
