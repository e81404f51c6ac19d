//! Fragments, and the trait of the streams that yield them.
//!
//! A row is one byte slice and fixed-size descriptors (`Cell`) that point into it. A row can therefore be read from a file's
//! window, compared, purged and written without copying or allocating per cell.

use halcyon_model::clustering::Position;
use halcyon_model::token::{murmur3_hash, token_of_hash};
use halcyon_model::{BoundKind, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL};

/// A range of its row's `bytes`. An invalid span reads as empty: spans come from checked decoding, so this is not worth a panic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    #[inline]
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        let start = self.start as usize;
        bytes.get(start..start + self.len as usize).unwrap_or_default()
    }
}

/// One cell. A tombstone has a deletion time and no TTL; an expiring cell has both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Index in the static or regular columns of the stream's layout.
    pub column: u16,
    pub ttl: i32,
    pub timestamp: i64,
    pub local_deletion_time: u32,
    pub path: Span,
    pub value: Span,
}

impl Cell {
    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.local_deletion_time != NO_DELETION_TIME && self.ttl == NO_TTL
    }

    #[inline]
    pub fn is_expiring(&self) -> bool {
        self.ttl != NO_TTL
    }

    /// `Cell.isLive`: no deletion time, or expiring and not expired yet.
    #[inline]
    pub fn is_live(&self, now: u32) -> bool {
        self.local_deletion_time == NO_DELETION_TIME
            || (self.is_expiring() && now < self.local_deletion_time)
    }
}

/// The deletion of a whole collection or UDT column. A row lists only columns that are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComplexDeletion {
    pub column: u16,
    pub time: DeletionTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowDeletion {
    pub time: DeletionTime,
    /// Written by materialized views of old versions: ignored if the row has a newer liveness.
    pub shadowable: bool,
}

impl RowDeletion {
    pub const LIVE: RowDeletion = RowDeletion { time: DeletionTime::LIVE, shadowable: false };
}

/// A row without its bytes; one value is reused for many rows, so that no row allocates.
#[derive(Debug, Clone)]
pub struct RowParts {
    pub clustering: Span,
    pub liveness: Liveness,
    pub deletion: RowDeletion,
    /// By column, then path.
    pub cells: Vec<Cell>,
    /// By column.
    pub complex_deletions: Vec<ComplexDeletion>,
}

impl RowParts {
    pub fn empty() -> RowParts {
        RowParts {
            clustering: Span::default(),
            liveness: Liveness::EMPTY,
            deletion: RowDeletion::LIVE,
            cells: Vec::new(),
            complex_deletions: Vec::new(),
        }
    }

    #[inline]
    pub fn clear(&mut self) {
        self.clustering = Span::default();
        self.liveness = Liveness::EMPTY;
        self.deletion = RowDeletion::LIVE;
        self.cells.clear();
        self.complex_deletions.clear();
    }

    #[inline]
    pub fn over<'a>(&'a self, bytes: &'a [u8]) -> Row<'a> {
        Row {
            bytes,
            clustering: self.clustering.of(bytes),
            liveness: self.liveness,
            deletion: self.deletion,
            cells: &self.cells,
            complex_deletions: &self.complex_deletions,
        }
    }
}

/// A row with its own bytes.
#[derive(Debug, Clone)]
pub struct RowBuf {
    pub bytes: Vec<u8>,
    pub parts: RowParts,
}

impl RowBuf {
    pub fn new() -> RowBuf {
        RowBuf { bytes: Vec::new(), parts: RowParts::empty() }
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
    }

    /// Appends bytes and returns their span.
    #[inline]
    pub fn store(&mut self, bytes: &[u8]) -> Span {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        Span { start, len: bytes.len() as u32 }
    }

    pub fn copy_from(&mut self, row: Row<'_>) {
        self.clear();
        self.bytes.extend_from_slice(row.bytes);
        self.parts.clustering = row.clustering_span();
        self.parts.liveness = row.liveness;
        self.parts.deletion = row.deletion;
        self.parts.cells.extend_from_slice(row.cells);
        self.parts.complex_deletions.extend_from_slice(row.complex_deletions);
    }

    pub fn row(&self) -> Row<'_> {
        self.parts.over(&self.bytes)
    }
}

impl Default for RowBuf {
    fn default() -> Self {
        RowBuf::new()
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The spans of `cells` point into these.
    pub bytes: &'a [u8],
    /// The serialized clustering, a part of `bytes`.
    pub clustering: &'a [u8],
    pub liveness: Liveness,
    pub deletion: RowDeletion,
    pub cells: &'a [Cell],
    pub complex_deletions: &'a [ComplexDeletion],
}

impl<'a> Row<'a> {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.liveness.is_empty()
            && self.deletion.time.is_live()
            && self.cells.is_empty()
            && self.complex_deletions.is_empty()
    }

    #[inline]
    pub fn position(&self, clustering_columns: usize) -> Position<'a> {
        Position {
            kind: BoundKind::Clustering,
            count: clustering_columns,
            serialized: self.clustering,
        }
    }

    /// The earliest second at which a purge could change the row; `u32::MAX` if none can.
    #[inline]
    pub fn min_local_deletion_time(&self) -> u32 {
        let mut min = self.deletion.time.local_deletion_time;
        if self.liveness.is_expiring() {
            min = min.min(self.liveness.local_expiration_time);
        }
        let complex = self.complex_deletions.iter().map(|d| d.time.local_deletion_time);
        let cells = self.cells.iter().map(|c| c.local_deletion_time);
        complex.chain(cells).fold(min, u32::min)
    }

    pub(crate) fn clustering_span(&self) -> Span {
        let start = self.clustering.as_ptr() as usize - self.bytes.as_ptr() as usize;
        Span { start: start as u32, len: self.clustering.len() as u32 }
    }
}

/// A range tombstone bound (one deletion) or boundary (two).
#[derive(Debug, Clone, Copy)]
pub struct Marker<'a> {
    pub position: Position<'a>,
    /// The deletion that ends here.
    pub close: Option<DeletionTime>,
    /// The deletion that begins here.
    pub open: Option<DeletionTime>,
}

/// A partition key with its token and hashes, which are computed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionKey {
    pub token: i64,
    /// Both halves of the key's Murmur3 hash; the Bloom filter and the hash byte of BTI need them.
    pub hashes: (i64, i64),
    pub bytes: Vec<u8>,
}

impl PartitionKey {
    pub fn empty() -> PartitionKey {
        PartitionKey { token: i64::MIN, hashes: (0, 0), bytes: Vec::new() }
    }

    /// A key of Murmur3Partitioner. Other partitioners ignore the token and compare the bytes.
    pub fn of(bytes: &[u8]) -> PartitionKey {
        let mut key = PartitionKey::empty();
        key.set(bytes);
        key
    }

    /// Replaces the key, keeping the allocation.
    #[inline]
    pub fn set(&mut self, bytes: &[u8]) {
        self.hashes = murmur3_hash(bytes);
        self.token = if bytes.is_empty() { i64::MIN } else { token_of_hash(self.hashes.0).0 };
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    pub fn copy_from(&mut self, other: &PartitionKey) {
        self.token = other.token;
        self.hashes = other.hashes;
        self.bytes.clear();
        self.bytes.extend_from_slice(&other.bytes);
    }
}

#[derive(Debug, Clone, Copy)]
pub struct PartitionStart<'a> {
    pub key: &'a PartitionKey,
    pub deletion: DeletionTime,
}

#[derive(Debug, Clone, Copy)]
pub enum Fragment<'a> {
    Start(PartitionStart<'a>),
    Static(Row<'a>),
    Row(Row<'a>),
    Marker(Marker<'a>),
    End,
}

impl<'a> Fragment<'a> {
    /// The clustering position of a row or marker; `None` for other fragments.
    pub fn position(self, clustering_columns: usize) -> Option<Position<'a>> {
        match self {
            Fragment::Row(row) => Some(row.position(clustering_columns)),
            Fragment::Marker(marker) => Some(marker.position),
            _ => None,
        }
    }
}

/// A source of fragments that follow this crate's grammar.
///
/// Moving and looking are separate, unlike in an iterator: a merge compares the current fragments of all its sources and passes
/// one on by reference, so that no row is moved or copied on its way from file to file.
pub trait FragmentStream {
    type Error;

    /// Moves to the next fragment; `false` at the end of the stream. A stream must not be used after an error.
    async fn advance(&mut self) -> Result<bool, Self::Error>;

    /// As `advance`, but returns `None` after a number of fragments that were all dropped, and continues when it is called
    /// again, because a caller that drops every fragment has to be stopped and paced too.
    async fn advance_within(&mut self, _patience: u32) -> Result<Option<bool>, Self::Error> {
        self.advance().await.map(Some)
    }

    /// What Cassandra would hold in memory of the largest row index that the stream has opened, in bytes; 0: none, or it is not measured.
    fn row_index_size(&self) -> u64 {
        0
    }

    /// The fragment that the last `advance` reached; `End` before the first `advance` and after the last.
    fn fragment(&self) -> Fragment<'_>;
}
