//! What is sound of an SSTable, as a stream that a writer takes (`nodetool scrub`).
//!
//! ```text
//!   Data.db    p0     p1: damaged in the middle     p2: cannot be read     p3     p1': out of order
//!   stream     p0     p1, up to the damage                                 p3     (apart, in another stream)
//! ```
//! 1. A partition that cannot be read to its end is cut there. Cassandra drops all of it. A range tombstone that is open at that place is
//!    closed behind the last row. The next partition comes from the index.
//! 2. A row with a value that is wrong for its type is left out.
//! 3. A partition, or the rest of one, that comes out of order is set apart for another SSTable.
//! 4. Without an index that leads on, the stream fails: what lies behind the damage may be sound. So it does where the device refuses to
//!    read: it may give the bytes back another time.
//!
//! An opening range tombstone is held until the fragment behind it is known, since it has no end if that cannot be read.

use std::collections::VecDeque;
use std::sync::Arc;

use halcyon_io::Disk;
use halcyon_model::clustering::Position;
use halcyon_model::hex;
use halcyon_model::time::INVALID_DELETION_TIME;
use halcyon_model::{BoundKind, DeletionTime};
use halcyon_stream::{
    Cell, ColumnShape, Fragment, FragmentStream, GrammarError, Layout, Marker, PartitionKey,
    PartitionStart, Row, RowBuf, Statics, Validator,
};

use super::cells::{self, ReportAt};
use super::indexed::IndexEntries;
use super::report::{Severity, VerifyReport};
use crate::{Error, IndexWalk, Result, SSTable, SSTableScanner, ScanOptions};

/// Positions that are read from the index at a time.
const AHEAD: usize = 1 << 16;
/// Problems that are named; the others are counted.
const NAMED: usize = 100;
/// The latest expiration: the last second that stands for a time.
const LATEST: u32 = INVALID_DELETION_TIME - 1;

/// The options of `nodetool scrub`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScrubOptions {
    /// Values are compared with their types.
    pub validates: bool,
    /// What is lost of a counter makes it smaller, so the scrub of a counter table fails otherwise.
    pub skips_corrupted_counters: bool,
    /// Expirations that overflowed become the latest one, with a timestamp that is newer by one (CASSANDRA-14092).
    pub reinserts_overflowed: bool,
}

/// What was not sound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    /// Partitions that lost rows, or all.
    pub partitions: u64,
    /// Rows with wrong values, left out.
    pub rows: u64,
    /// Partitions, and rests of partitions, that were out of order.
    pub disordered: u64,
    /// Rows whose expiration had overflowed.
    pub reinserted: u64,
    /// The first hundred problems.
    pub problems: Vec<String>,
}

impl Damage {
    pub fn is_none(&self) -> bool {
        *self == Damage::default()
    }

    pub fn add(&mut self, other: &Damage) {
        self.partitions += other.partitions;
        self.rows += other.rows;
        self.disordered += other.disordered;
        self.reinserted += other.reinserted;
        other.problems.iter().for_each(|problem| self.name(problem.clone()));
    }

    fn name(&mut self, problem: String) {
        if self.problems.len() < NAMED {
            self.problems.push(problem);
        }
    }
}

/// A partition, or the rest of one, that is out of order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Apart {
    key: PartitionKey,
    partition: u64,
    /// The first row that is set apart; `None`: all.
    row: Option<u64>,
}

/// What `fragment` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Inner,
    /// The row of the scanner, with other expirations.
    Reinserted(Statics),
    /// A marker that was held, or that closes what damage has left open.
    Marker,
    /// Of a partition that was cut.
    End,
    Over,
}

/// What `advance` does first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Read,
    /// The scanner's fragment, behind the held marker.
    Show,
    /// Behind the marker that closes a cut partition.
    End,
    /// The next partition that the index, or the list, knows.
    Resume,
    /// The first row that was set apart.
    SeekRow(u64),
}

/// What a fragment is worth.
enum Verdict {
    Sound(Shown),
    WrongRow(String),
    Broken(String),
    Disorder(String),
}

/// A marker with its own bytes.
#[derive(Debug)]
struct OwnMarker {
    kind: BoundKind,
    count: usize,
    serialized: Vec<u8>,
    close: Option<DeletionTime>,
    open: Option<DeletionTime>,
}

impl OwnMarker {
    fn of(position: Position<'_>, kind: BoundKind, close: Option<DeletionTime>) -> OwnMarker {
        let serialized = position.serialized.to_vec();
        OwnMarker { kind, count: position.count, serialized, close, open: None }
    }

    fn marker(&self) -> Marker<'_> {
        let OwnMarker { kind, count, serialized, .. } = self;
        let position = Position { kind: *kind, count: *count, serialized };
        Marker { position, close: self.close, open: self.open }
    }
}

/// The sound part of an SSTable, as a stream.
pub struct Scrub {
    disk: Disk,
    sstable: Arc<SSTable>,
    options: ScrubOptions,
    scan: ScanOptions,
    layout: Arc<Layout>,
    scanner: SSTableScanner,
    validator: Validator,
    shown: Shown,
    next: Next,
    /// How the scanner's fragment is shown.
    ready: Shown,
    marker: Option<OwnMarker>,
    /// The marker is not shown yet.
    is_held: bool,
    /// The partition of the fragment that was read last, and the last one that was shown.
    key: PartitionKey,
    last: Option<PartitionKey>,
    /// Between a start that was shown and its end.
    inside: bool,
    open: Option<DeletionTime>,
    row: RowBuf,
    /// Positions from the index, behind the damage that was met last.
    ahead: VecDeque<u64>,
    /// In a stream of what was set apart: what comes next.
    listed: Option<VecDeque<Apart>>,
    /// Of the partition that comes next, the first row that is meant.
    first_row: Option<u64>,
    /// Where the rows begin that are read now, if they had been set apart.
    run: Option<u64>,
    apart: Vec<Apart>,
    damage: Damage,
    report: VerifyReport,
}

impl Scrub {
    pub async fn start(
        disk: &Disk,
        sstable: &Arc<SSTable>,
        scan: ScanOptions,
        options: ScrubOptions,
    ) -> Result<Scrub> {
        let scanner = sstable.scan(disk, scan.clone()).await?;
        let layout = scanner.layout().clone();
        Ok(Scrub {
            disk: disk.clone(),
            sstable: sstable.clone(),
            options,
            scan,
            validator: Validator::new(layout.clone()),
            layout,
            scanner,
            shown: Shown::Over,
            next: Next::Read,
            ready: Shown::Inner,
            marker: None,
            is_held: false,
            key: PartitionKey::empty(),
            last: None,
            inside: false,
            open: None,
            row: RowBuf::new(),
            ahead: VecDeque::new(),
            listed: None,
            first_row: None,
            run: None,
            apart: Vec::new(),
            damage: Damage::default(),
            report: VerifyReport::default(),
        })
    }

    /// The stream of what this one has set apart; `None`: nothing.
    pub async fn apart(&self) -> Result<Option<Scrub>> {
        if self.apart.is_empty() {
            return Ok(None);
        }
        let mut listed = self.apart.clone();
        listed.sort_by(|a, b| {
            self.layout.compare_keys(&a.key, &b.key).then(a.partition.cmp(&b.partition))
        });
        let of = Scrub::start(&self.disk, &self.sstable, self.scan.clone(), self.options).await?;
        Ok(Some(Scrub { listed: Some(listed.into()), next: Next::Resume, ..of }))
    }

    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    pub fn progress(&self) -> (u64, u64) {
        self.scanner.progress()
    }

    fn judge(&mut self) -> Verdict {
        let fragment = self.scanner.fragment();
        match self.validator.check(fragment) {
            Ok(()) | Err(GrammarError::DuplicateRow { .. }) => {}
            Err(GrammarError::Disorder { what }) => return Verdict::Disorder(what),
        }
        let mut report = ReportAt { report: &mut self.report, offset: 0 };
        let layout = &self.layout;
        let row = match fragment {
            Fragment::Start(start) if self.options.validates => {
                cells::check_key(layout, &start.key.bytes, &mut report);
                None
            }
            Fragment::Marker(marker) if self.options.validates => {
                cells::check_position(layout, marker.position, &mut report);
                None
            }
            Fragment::Static(row) => Some((Statics::Static, row)),
            Fragment::Row(row) => Some((Statics::Regular, row)),
            _ => None,
        };
        if let Some((which, row)) = row.filter(|_| self.options.validates) {
            if which == Statics::Regular {
                let position = row.position(layout.clusterings.len());
                cells::check_position(layout, position, &mut report);
            }
            cells::check_row(layout, which, row, &mut report);
        }
        match (take_problem(&mut self.report), row) {
            (Some(what), Some(_)) => Verdict::WrongRow(what),
            (Some(what), None) => Verdict::Broken(what),
            (None, Some((which, row)))
                if self.options.reinserts_overflowed && reinsert(row, &mut self.row) =>
            {
                self.damage.reinserted += 1;
                Verdict::Sound(Shown::Reinserted(which))
            }
            (None, _) => Verdict::Sound(Shown::Inner),
        }
    }

    /// Reads a fragment; `None`: none of it is shown.
    async fn read(&mut self) -> Result<Option<bool>> {
        match self.scanner.advance().await {
            Ok(true) => {}
            Ok(false) => {
                self.shown = Shown::Over;
                return Ok(Some(false));
            }
            Err(error @ Error::Corrupt { .. }) => {
                return self.broken(&error.to_string()).map(|shows| shows.then_some(true));
            }
            Err(error) => return Err(error),
        }
        if let Fragment::Start(start) = self.scanner.fragment() {
            self.key.copy_from(start.key);
        }
        let shows = match self.judge() {
            Verdict::Sound(ready) => {
                self.ready = ready;
                match self.show_held() {
                    true => true,
                    false => self.show(),
                }
            }
            Verdict::WrongRow(what) => {
                self.damage.rows += 1;
                self.note(&what)?;
                false
            }
            Verdict::Broken(what) => self.broken(&what)?,
            Verdict::Disorder(what) => self.set_apart(&what)?,
        };
        Ok(shows.then_some(true))
    }

    /// Shows the marker that was held; the fragment that was read is next.
    fn show_held(&mut self) -> bool {
        if !std::mem::take(&mut self.is_held) {
            return false;
        }
        self.open = self.marker.as_ref().and_then(|marker| marker.open);
        (self.shown, self.next) = (Shown::Marker, Next::Show);
        true
    }

    /// Shows the fragment that was read, if it need not be held.
    fn show(&mut self) -> bool {
        self.shown = self.ready;
        match self.scanner.fragment() {
            Fragment::Start(start) => {
                self.last.get_or_insert_with(PartitionKey::empty).copy_from(start.key);
                (self.inside, self.open) = (true, None);
                if let Some(row) = self.first_row.take() {
                    self.next = Next::SeekRow(row);
                }
            }
            Fragment::Marker(marker) if marker.open.is_some() => {
                let own = OwnMarker::of(marker.position, marker.position.kind, marker.close);
                self.marker = Some(OwnMarker { open: marker.open, ..own });
                self.is_held = true;
                return false;
            }
            Fragment::Marker(_) => self.open = None,
            Fragment::End => {
                self.inside = false;
                if self.listed.is_some() {
                    self.next = Next::Resume;
                }
            }
            _ => {}
        }
        true
    }

    /// Takes a problem down; fails if it must not be passed over.
    fn note(&mut self, what: &str) -> Result<()> {
        let mut columns = self.layout.statics.iter().chain(&self.layout.regulars);
        let counts = columns.any(|column| column.shape == ColumnShape::Counter);
        let at = self.scanner.next_position();
        let (sstable, key) = (self.sstable.descriptor(), hex::encode(&self.key.bytes));
        let problem =
            format!("{sstable}: at {at} of the data, in or behind partition {key}: {what}");
        if counts && !self.options.skips_corrupted_counters {
            return Err(Error::Invalid(format!(
                "{problem}; a counter table loses counts with what is corrupt; repeat with --skip-corrupted to skip it"
            )));
        }
        self.damage.name(problem);
        Ok(())
    }

    /// The rest of the partition is lost. Returns whether something is shown.
    fn broken(&mut self, what: &str) -> Result<bool> {
        self.damage.partitions += 1;
        self.note(what)?;
        Ok(self.cut())
    }

    /// The partition, or its rest, goes to another SSTable, unless it is without order there too.
    fn set_apart(&mut self, what: &str) -> Result<bool> {
        if matches!(self.scanner.fragment(), Fragment::End) {
            return self.broken(what);
        }
        let row = match self.inside {
            true => Some(self.scanner.fragment_position()),
            false => self.first_row,
        };
        // The first fragment behind a start, or of what was set apart before, is out of order by itself.
        let is_first = self.validator.last_position().is_none() || self.run == row;
        if self.inside && is_first {
            return self.broken(what);
        }
        self.damage.disordered += 1;
        self.damage.name(format!("{}: {what}", self.sstable.descriptor()));
        let partition = self.scanner.partition_position();
        self.apart.push(Apart { key: self.key.clone(), partition, row });
        Ok(self.cut())
    }

    /// Ends the partition behind the last fragment that was shown. Returns whether something is shown.
    fn cut(&mut self) -> bool {
        self.next = Next::Resume;
        let is_held = std::mem::take(&mut self.is_held);
        if !self.inside {
            return false;
        }
        let closing = match (&self.marker, self.open) {
            // What it opens has no known end.
            (Some(held), _) if is_held => held.close.map(|close| {
                OwnMarker::of(held.marker().position, held.kind.as_close(), Some(close))
            }),
            (_, Some(open)) => self
                .validator
                .last_position()
                .map(|last| OwnMarker::of(last, BoundKind::InclEnd, Some(open))),
            _ => None,
        };
        match closing {
            Some(marker) => {
                self.marker = Some(marker);
                (self.shown, self.next) = (Shown::Marker, Next::End);
            }
            None => self.end(),
        }
        true
    }

    fn end(&mut self) {
        (self.shown, self.next) = (Shown::End, Next::Resume);
        (self.inside, self.open) = (false, None);
    }

    /// Goes to the next partition that can be reached; false: there is none.
    async fn resume(&mut self) -> Result<bool> {
        self.validator = Validator::new(self.layout.clone());
        if let Some(key) = &self.last {
            let start = PartitionStart { key, deletion: DeletionTime::LIVE };
            // Neither can fail on a validator that has seen nothing.
            let _ = self.validator.check(Fragment::Start(start));
            let _ = self.validator.check(Fragment::End);
        }
        let mut position = self.scanner.progress().0.max(self.scanner.partition_position());
        loop {
            let row = match &mut self.listed {
                None => {
                    let Some(next) = self.known_after(position).await? else { return Ok(false) };
                    position = next;
                    None
                }
                Some(listed) => {
                    let Some(next) = listed.pop_front() else { return Ok(false) };
                    position = next.partition;
                    next.row
                }
            };
            match self.scanner.seek(position).await {
                Ok(()) => {
                    (self.first_row, self.run) = (row, None);
                    return Ok(true);
                }
                Err(error @ Error::Corrupt { .. }) => {
                    self.damage.partitions += 1;
                    self.note(&error.to_string())?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The next partition behind a position of the data, by the index.
    async fn known_after(&mut self, position: u64) -> Result<Option<u64>> {
        while self.ahead.front().is_some_and(|known| *known <= position) {
            self.ahead.pop_front();
        }
        if let Some(known) = self.ahead.front() {
            return Ok(Some(*known));
        }
        let walk = IndexWalk::open(&self.disk, &self.sstable, self.scan.mode).await?;
        let (sources, partitioner) = (walk.sources(), &self.layout.partitioner);
        let mut report = VerifyReport::default();
        let mut index = IndexEntries::start(&sources, partitioner, None, &mut report).await;
        let mut last = position;
        while self.ahead.len() < AHEAD
            && let Some(next) = index.after(last, &mut report).await
        {
            self.ahead.push_back(next);
            last = next;
        }
        if self.ahead.is_empty() && index.broken {
            let what = take_problem(&mut report).unwrap_or_default();
            return Err(Error::Invalid(format!(
                "{}: what lies behind {position} of the data cannot be found, because the index is damaged too ({what}); \
                 restore the SSTable from a backup",
                self.sstable.descriptor()
            )));
        }
        Ok(self.ahead.front().copied())
    }
}

impl FragmentStream for Scrub {
    type Error = Error;

    async fn advance(&mut self) -> Result<bool> {
        loop {
            match std::mem::replace(&mut self.next, Next::Read) {
                Next::Read => {
                    if let Some(advanced) = self.read().await? {
                        return Ok(advanced);
                    }
                }
                Next::Show => {
                    if self.show() {
                        return Ok(true);
                    }
                }
                Next::End => {
                    self.end();
                    return Ok(true);
                }
                Next::Resume => {
                    if !self.resume().await? {
                        self.shown = Shown::Over;
                        return Ok(false);
                    }
                }
                Next::SeekRow(row) => {
                    self.run = Some(row);
                    self.scanner.seek_row(row).await?;
                }
            }
        }
    }

    #[inline]
    fn fragment(&self) -> Fragment<'_> {
        match (self.shown, &self.marker) {
            (Shown::Inner, _) => self.scanner.fragment(),
            (Shown::Reinserted(Statics::Static), _) => Fragment::Static(self.row.row()),
            (Shown::Reinserted(Statics::Regular), _) => Fragment::Row(self.row.row()),
            (Shown::Marker, Some(marker)) => Fragment::Marker(marker.marker()),
            (Shown::Marker | Shown::End | Shown::Over, _) => Fragment::End,
        }
    }
}

/// The first problem of a report, which is empty then.
fn take_problem(report: &mut VerifyReport) -> Option<String> {
    let mut found = report.findings.drain(..).filter(|found| found.severity == Severity::Problem);
    found.next().map(|found| found.what)
}

/// Copies a row whose expiration has overflowed; false: it has none.
fn reinsert(row: Row<'_>, own: &mut RowBuf) -> bool {
    let liveness = row.liveness;
    let row_overflowed =
        liveness.is_expiring() && liveness.local_expiration_time == INVALID_DELETION_TIME;
    let overflowed =
        |cell: &Cell| cell.is_expiring() && cell.local_deletion_time == INVALID_DELETION_TIME;
    if !row_overflowed && !row.cells.iter().any(overflowed) {
        return false;
    }
    own.copy_from(row);
    if row_overflowed {
        own.parts.liveness.timestamp = liveness.timestamp.saturating_add(1);
        own.parts.liveness.local_expiration_time = LATEST;
    }
    for cell in own.parts.cells.iter_mut().filter(|cell| overflowed(cell)) {
        cell.timestamp = cell.timestamp.saturating_add(1);
        cell.local_deletion_time = LATEST;
    }
    true
}
