//! The data, row by row, compared with everything that other components state about it.
//!
//! ```text
//!   Data.db ──► scanner ──► grammar, order, values ──► statistics counted again
//!                  │               │
//!        entry in the index    blocks of the row index, Bloom filter
//! ```
//!
//! Where the data cannot be read, the walk continues at the next partition in the index.

use halcyon_io::{AccessMode, Disk, Purpose};
use halcyon_model::DeletionTime;
use halcyon_model::clustering::Position;
use halcyon_stream::{
    Fragment, FragmentStream, GrammarError, Layout, Marker, PartitionKey, PartitionStart, Row,
    Statics, Validator,
};

use super::blocks::{BlockCheck, Header};
use super::cells::{self, ReportAt};
use super::indexed::IndexEntries;
use super::progress::{Progress, Step};
use super::report::{Severity, VerifyReport};
use crate::format::filter::Filter;
use crate::format::statistics::collector::MetadataCollector;
use crate::read::index_files::IndexSources;
use crate::write::sstable_writer::collect_row;
use crate::{Component, Result, SSTable, SSTableScanner, ScanOptions};

/// Fragments between two reports of progress.
const REPORT_EVERY: u64 = 1 << 14;

pub(super) struct Walk<'i> {
    pub(super) sstable: &'i SSTable,
    pub(super) sources: Option<&'i IndexSources<'i>>,
    pub(super) index: Option<IndexEntries<'i>>,
    pub(super) filter: Option<&'i Filter>,
    pub(super) report: &'i mut VerifyReport,
    pub(super) progress: &'i mut dyn FnMut(Progress),
    pub(super) partition: Partition<'i>,
    pub(super) collector: MetadataCollector,
    pub(super) validator: Validator,
    /// Nothing was skipped, so totals can be compared.
    pub(super) complete: bool,
}

/// The partition that the walk is in.
pub(super) struct Partition<'i> {
    key: PartitionKey,
    start: u64,
    open: Option<DeletionTime>,
    blocks: Option<BlockCheck<'i>>,
    covered_first: bool,
    /// Its order is broken, and has been reported.
    disordered: bool,
}

impl Partition<'_> {
    pub(super) fn none() -> Self {
        let (open, blocks) = (None, None);
        let key = PartitionKey::empty();
        Partition { key, start: 0, open, blocks, covered_first: false, disordered: false }
    }
}

/// The counts of the walk.
pub(super) struct Content {
    pub(super) collector: MetadataCollector,
    pub(super) first_key: Option<Vec<u8>>,
    pub(super) last_key: Option<Vec<u8>>,
    pub(super) complete: bool,
}

impl<'i> Walk<'i> {
    pub(super) async fn run(mut self, disk: &Disk, mode: AccessMode) -> Content {
        let options = ScanOptions { mode, purpose: Purpose::Scan, ..ScanOptions::default() };
        let mut first_key = None;
        match self.sstable.scan(disk, options).await {
            Ok(mut scanner) => self.fragments(&mut scanner, &mut first_key).await,
            Err(error) => {
                self.complete = false;
                self.report.failed(Component::Data, &error);
            }
        }
        if self.complete
            && let Some(index) = self.index.take()
        {
            index.finish(self.report.checked.partitions, self.report).await;
        }
        let last_key = first_key.is_some().then_some(self.partition.key.bytes);
        Content { collector: self.collector, first_key, last_key, complete: self.complete }
    }

    async fn fragments(&mut self, scanner: &mut SSTableScanner, first_key: &mut Option<Vec<u8>>) {
        let mut seen = 0u64;
        loop {
            match scanner.advance().await {
                Ok(true) => self.fragment(scanner).await,
                Ok(false) => break,
                Err(error) => {
                    self.report.failed(Component::Data, &error);
                    if !self.resume(scanner).await {
                        break;
                    }
                }
            }
            if first_key.is_none() {
                *first_key = Some(self.partition.key.bytes.clone());
            }
            seen += 1;
            if seen.is_multiple_of(REPORT_EVERY) {
                self.tell(scanner);
            }
        }
        self.tell(scanner);
    }

    fn tell(&mut self, scanner: &SSTableScanner) {
        let (done, total) = scanner.progress();
        (self.progress)(Progress { step: Step::Content, done, total });
    }

    /// After damage: the next partition that the index names and that can be reached.
    async fn resume(&mut self, scanner: &mut SSTableScanner) -> bool {
        self.complete = false;
        self.partition.blocks = None;
        self.partition.disordered = true;
        let mut position = scanner.progress().0.max(self.partition.start);
        while let Some(index) = &mut self.index {
            let Some(next) = index.after(position, self.report).await else { break };
            match scanner.seek(next).await {
                Ok(()) => {
                    self.restart_grammar();
                    return true;
                }
                Err(error) => self.report.failed(Component::Data, &error),
            }
            position = next;
        }
        let total = scanner.progress().1;
        let what = format!("not read on from {position} of {total}: no later partition is known");
        self.report.problem(Component::Data, position, what);
        false
    }

    /// A grammar that knows the current partition's key and nothing else.
    fn restart_grammar(&mut self) {
        self.validator = Validator::new(self.sstable.layout().clone());
        let start = PartitionStart { key: &self.partition.key, deletion: DeletionTime::LIVE };
        // Neither can fail on a validator that has seen nothing.
        let _ = self.validator.check(Fragment::Start(start));
        let _ = self.validator.check(Fragment::End);
    }

    async fn fragment(&mut self, scanner: &SSTableScanner) {
        let at = scanner.fragment_position();
        let fragment = scanner.fragment();
        if let Fragment::Start(start) = fragment {
            return self.start(start, at).await;
        }
        let checked = match (self.partition.disordered, fragment) {
            (true, _) => Ok(()),
            (false, fragment) => self.validator.check(fragment),
        };
        match checked {
            Ok(()) => {}
            // The next compaction makes one row of them.
            Err(GrammarError::DuplicateRow { what }) => {
                self.report.remark(Component::Data, at, what);
            }
            Err(GrammarError::Disorder { what }) => {
                self.report.problem(Component::Data, at, what);
                self.partition.disordered = true;
            }
        }
        let handled = match fragment {
            Fragment::Row(row) => self.row(row, at).await,
            Fragment::Marker(marker) => self.marker(marker, at).await,
            Fragment::Static(row) => {
                self.cells(Statics::Static, row, at);
                Ok(())
            }
            Fragment::End | Fragment::Start(_) => self.end(at).await,
        };
        if let Err(error) = handled {
            // Of the row index: without it, the rows can still be read.
            let component = Component::Data;
            self.report.failed(component, &error);
            self.partition.blocks = None;
        }
    }

    async fn start(&mut self, start: PartitionStart<'_>, at: u64) {
        if let Err(error) = self.validator.check(Fragment::Start(start)) {
            self.report.problem(Component::Data, at, error.to_string());
            self.partition.key.copy_from(start.key);
            self.restart_grammar();
            let _ = self.validator.check(Fragment::Start(start));
        }
        self.partition.key.copy_from(start.key);
        self.partition.start = at;
        self.partition.open = None;
        self.partition.covered_first = false;
        self.partition.disordered = false;
        self.partition.blocks = None;
        self.report.checked.partitions += 1;
        let layout = self.layout();
        let mut report = ReportAt { report: self.report, offset: at };
        cells::check_key(layout, &start.key.bytes, &mut report);
        report.deletion(&start.deletion);
        self.collector.partition_deletion(&start.deletion);
        if self.filter.is_some_and(|filter| !filter.may_contain(start.key.hashes)) {
            let what = format!("says that the partition at {at} in the data is not there");
            self.report.problem(Component::Filter, None, what);
        }
        let (Some(index), Some(sources)) = (&mut self.index, self.sources) else { return };
        let Some(indexed) = index.partition(start.key, at, self.report).await else { return };
        let oa = self.sstable.descriptor().version.has_uint_deletion_time();
        let header = Header { partition: at, deletion: start.deletion };
        let clusterings = &layout.clusterings;
        let opened =
            BlockCheck::open(sources, indexed.rows, clusterings, (oa, header), self.report);
        match opened.await {
            Ok(blocks) => self.partition.blocks = blocks,
            Err(error) => self.report.failed(Component::Rows, &error),
        }
    }

    fn layout(&self) -> &'i Layout {
        self.sstable.layout()
    }

    fn cells(&mut self, which: Statics, row: Row<'_>, at: u64) {
        let layout = self.layout();
        let mut report = ReportAt { report: self.report, offset: at };
        if cells::check_row(layout, which, row, &mut report) {
            self.collector.legacy_counter_shards();
        }
        collect_row(&mut self.collector, row);
        self.report.checked.rows += 1;
        self.report.checked.cells += row.cells.len() as u64;
    }

    async fn row(&mut self, row: Row<'_>, at: u64) -> Result<()> {
        let position = row.position(self.layout().clusterings.len());
        self.cells(Statics::Regular, row, at);
        self.position(position, at).await
    }

    async fn marker(&mut self, marker: Marker<'_>, at: u64) -> Result<()> {
        for deletion in [marker.close, marker.open].iter().flatten() {
            self.collector.deletion(deletion);
            ReportAt { report: self.report, offset: at }.deletion(deletion);
        }
        let checked = self.position(marker.position, at).await;
        self.partition.open = marker.open;
        checked
    }

    async fn position(&mut self, position: Position<'_>, at: u64) -> Result<()> {
        let layout = self.layout();
        let mut report = ReportAt { report: self.report, offset: at };
        cells::check_position(layout, position, &mut report);
        let is_first = !std::mem::replace(&mut self.partition.covered_first, true);
        if is_first {
            self.collector.cover(position);
        }
        let offset = at.saturating_sub(self.partition.start);
        let open = self.partition.open;
        let Some(blocks) = &mut self.partition.blocks else { return Ok(()) };
        if is_first && blocks.header_length().is_some_and(|length| length != offset) {
            let what =
                format!("another header length than the partition at {}", self.partition.start);
            self.report.problem(Component::Index, None, what);
        }
        blocks.unfiltered(offset, position, open, self.report).await
    }

    async fn end(&mut self, at: u64) -> Result<()> {
        if let Some(last) = self.validator.last_position().filter(|_| self.partition.covered_first)
        {
            self.collector.cover(last);
        }
        let offset = at.saturating_sub(self.partition.start);
        self.collector.end_partition(&self.partition.key.bytes, offset.saturating_add(1));
        let blocks = self.partition.blocks.take();
        if std::mem::take(&mut self.partition.disordered) {
            self.restart_grammar();
        }
        match blocks {
            Some(mut blocks) => blocks.end(offset, self.report).await,
            None => Ok(()),
        }
    }
}

impl VerifyReport {
    pub(super) fn has_problems_in(&self, component: Component) -> bool {
        let errors = self.findings.iter().filter(|f| f.severity == Severity::Problem);
        errors.into_iter().any(|finding| finding.component == component)
    }
}
