//! A SELECT while it runs: fragments in, encoded rows out.
//!
//! ```text
//!  FragmentStream ─► live rows ─► filters ─► groups, aggregates ─► selectors ─► page
//! ```
//!
//! 1. A scan owns its bound values and looked-up columns, so it moves from shard to shard with the page so far, and continues there.
//! 2. It stops in the middle of a stream as soon as the page is full; `last` is then the row after which the next page continues.
//! 3. A group is put into the page when the first row of the next group is read, so a page always ends between groups.
//! 4. Memory: one row, one group, one page. Only a sorted result (ORDER BY over several keys) is kept whole.
//! 5. A long scan yields its thread (`pace.rs`), and fails at its deadline or at too many tombstones (`tombstones.rs`).

use std::borrow::Cow;

use halcyon_cql::plan::Work;
use halcyon_cql::plan::restrictions::{BoundFilter, BoundKeys};
use halcyon_cql::plan::select::BoundSelect;
use halcyon_cql::plan::selection::RowValues;
use halcyon_functions::SlowCalls;
use halcyon_io::clock::{Instant, now};
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::request::Consistency;
use halcyon_model::similarity::floats;
use halcyon_model::token::split_key;
use halcyon_schema::index::NearestSearch;
use halcyon_stream::{Fragment, FragmentStream, PartitionKey, PartitionStart, PrimaryKey, Row};
use halcyon_syntax::Error as CqlError;

use crate::command::command;
use crate::context::ScanContext;
use crate::group::{self, Group};
use crate::live_rows::{LiveRows, ReadCounts, Targets, Watch};
use crate::pace::{self, Pace};
use crate::page::{self, Page};
use crate::read_size::SizeGuard;
use crate::tombstones::TombstoneGuard;
use crate::top::Rank;
use crate::{Error, Held, Result, TakeError};

/// Unwanted fragments of a partition that are read before the scan asks for the next partition instead: a seek costs more than a few
/// fragments.
const FRAGMENTS_BEFORE_SEEK: u32 = 64;

/// A read of one page. `select`, `context` and `targets` stay as they are; the rest follows the stream.
#[derive(Debug)]
pub struct Scan {
    pub select: BoundSelect,
    context: ScanContext,
    targets: Targets,
    pub page: Page,
    live: LiveRows,
    /// The shard that read the clock last, and the time, so that the same shard need not read it again.
    pub clock_read: (usize, Instant),
    row: RowValues,
    partition: Partition,
    /// An earlier page has rows of this partition, so its static row alone is not a result.
    resumed: bool,
    /// The key of that partition, where partitions are read through an index.
    resumed_key: Vec<u8>,
    tombstones: TombstoneGuard,
    sizes: SizeGuard,
    watch: Option<Box<dyn Watch>>,
    group: Option<Group>,
    pace: Pace,
    /// What the expressions of rows may compute before the next pause.
    work: Work<'static>,
    slow: SlowCalls,
    unfinished: Option<Unfinished>,
}

/// What is known of the partition that is being read.
#[derive(Debug, Default)]
struct Partition {
    key: Vec<u8>,
    /// The end of its values (key and static columns) in the row.
    mark: usize,
    found_rows: bool,
    found_static: bool,
    /// The rest of it is unwanted.
    skipping: bool,
    /// Fragments read while skipping.
    skipped: u32,
    /// What was read before it.
    before: ReadCounts,
}

/// What of the row was too much work to be computed here.
#[derive(Debug)]
enum Unfinished {
    /// The filters of the row at a clustering.
    Filters(Option<Vec<u8>>),
    /// The selectors.
    Row,
    /// The arguments of aggregates.
    Arguments,
    /// The rows that wait for the group's user-defined aggregates.
    Rows,
    /// The result of the group before; then the row, at its clustering, begins another.
    Group(Option<Vec<u8>>),
    /// The result of the last group of a partition.
    LastGroup,
}

impl Scan {
    /// `page_rows` is `u32::MAX` if the result is not paged.
    pub fn new(
        select: BoundSelect,
        context: ScanContext,
        page_rows: u32,
        clock_read: (usize, Instant),
        held: Held,
    ) -> Scan {
        let limits = &context.limits;
        Scan {
            page: Page::new(&select, page_rows, held),
            clock_read,
            live: LiveRows::new(context.now_seconds, select.plan.table.schema.strict_liveness),
            targets: Targets::new(&select),
            row: RowValues::new(select.plan.selection.fetch.len()),
            partition: Partition::default(),
            resumed: false,
            resumed_key: Vec::new(),
            tombstones: TombstoneGuard::new(
                limits.tombstone_warn_threshold,
                limits.tombstone_failure_threshold,
            ),
            sizes: SizeGuard::new(limits.sizes),
            watch: None,
            group: None,
            pace: Pace::default(),
            work: Work::small(),
            slow: SlowCalls::default(),
            unfinished: None,
            context,
            select,
        }
    }

    /// Continues within a partition that an earlier page has started.
    pub fn resume(&mut self, remaining: u32, remaining_in_partition: u32) {
        self.page.remaining = remaining;
        self.page.remaining_in_partition = remaining_in_partition;
        self.resumed = true;
    }

    /// Continues in this partition, if it is read at all.
    pub fn resume_in(&mut self, key: PartitionKey) {
        self.resumed_key = key.bytes;
    }

    /// A partition follows, whether it is the resumed one or another.
    pub fn begin_in(&mut self, key: &PartitionKey) {
        self.resumed &= self.resumed_key == key.bytes;
    }

    /// Of the read so far.
    pub fn counts(&self) -> ReadCounts {
        self.live.counts
    }

    /// Tells of the partitions that are read from here on.
    pub fn begin_watch(&mut self, watch: Box<dyn Watch>) {
        self.partition.before = self.live.counts;
        self.watch = Some(watch);
    }

    /// Tells of the last partition, and of no more.
    pub fn end_watch(&mut self) {
        self.tell();
        self.watch = None;
    }

    fn tell(&mut self) {
        let found = self.live.counts - self.partition.before;
        if let Some(watch) = self.watch.as_ref().filter(|_| found != ReadCounts::default()) {
            watch.partition(&self.partition.key, found);
        }
        self.partition.before = self.live.counts;
    }

    /// The statement as it reads a partition; `None`: a range.
    pub fn command(&self, key: Option<&[u8]>) -> String {
        command(&self.select, key.unwrap_or_default())
    }

    /// For the errors of the read.
    pub fn consistency(&self) -> Consistency {
        self.context.consistency
    }

    /// The partitions from here on are read from their start.
    pub fn next_partitions(&mut self) {
        self.resumed = false;
    }

    /// Reads a stream to its end or until the page is full. Returns early with a partition whose rest is unwanted: the caller may
    /// continue with a stream that starts after it.
    pub async fn take<S: FragmentStream>(
        &mut self,
        stream: &mut S,
    ) -> Result<Option<PartitionKey>, TakeError<S::Error>> {
        while !self.page.full && stream.advance().await.map_err(TakeError::Stream)? {
            self.breathe().await?;
            let fragment = stream.fragment();
            if self.sizes.is_on() {
                let begins = matches!(fragment, Fragment::Start(_));
                if begins {
                    self.end_local_read();
                    self.sizes.note_row_index(stream.row_index_size());
                }
                self.sizes.count(&fragment);
            }
            match fragment {
                Fragment::Start(start) => self.start(&start),
                Fragment::Static(row) => self.static_row(&row)?,
                Fragment::Row(row) => self.row(&row)?,
                Fragment::Marker(marker) => self.live.marker(marker.open),
                Fragment::End => self.end().await?,
            }
            if self.tombstones.fails(self.live.counts) {
                return Err(Error::TooManyTombstones(self.context.consistency).into());
            }
            self.finish_row().await?;
            if self.sizes.is_on() {
                let read = (&self.select, self.partition.key.as_slice());
                self.sizes.check(&self.page, read, self.context.consistency)?;
            }
            if self.partition.skipping {
                self.partition.skipped += 1;
                if self.partition.skipped > FRAGMENTS_BEFORE_SEEK {
                    self.partition.skipped = 0;
                    self.end().await?;
                    self.finish_row().await?;
                    return Ok(Some(PartitionKey::of(&self.partition.key)));
                }
            }
        }
        Ok(None)
    }

    /// Counts a step; lets other requests run from time to time, and fails at the deadline.
    pub async fn breathe(&mut self) -> Result<()> {
        if self.pace.step() || self.work.is_low() {
            if self.pace.pause().await > self.context.limits.deadline {
                return Err(self.too_late());
            }
            self.work.renew();
        }
        Ok(())
    }

    /// Computes what was not computed here.
    async fn finish_row(&mut self) -> Result<()> {
        while let Some(unfinished) = self.unfinished.take() {
            Box::pin(self.compute(unfinished)).await?;
        }
        Ok(())
    }

    async fn compute(&mut self, unfinished: Unfinished) -> Result<()> {
        let deadline = self.context.limits.deadline;
        let most = self.page.held.memory().for_row();
        let wanted = self.work.wanted();
        let (plan, terms) = (self.select.plan.clone(), self.select.terms.clone());
        let (row, context) = (self.row.clone(), self.context.fork());
        match unfinished {
            Unfinished::Filters(clustering) => {
                let filters = self.select.filters.clone();
                let job = move |work: &Work<'_>| are_accepted(&filters, &row, work);
                let accepted = pace::within((deadline, most, &self.slow), wanted, job).await?;
                match accepted.ok_or_else(|| self.too_late())? {
                    true => self.accepted(clustering.as_deref()),
                    false => Ok(()),
                }
            }
            Unfinished::Row => {
                let job = move |work: &Work<'_>| {
                    page::encoded(&plan, &context.evaluation(&terms, &row, &[], work))
                };
                let encoded = pace::within((deadline, most, &self.slow), wanted, job).await?;
                let encoded = encoded.ok_or_else(|| self.too_late())?;
                self.page.take(&self.select.plan, &self.row, &encoded)
            }
            Unfinished::Arguments => {
                let job = move |work: &Work<'_>| {
                    let on = context.evaluation(&terms, &row, &[], work);
                    let arguments = group::arguments(&plan, &on)?.into_iter();
                    let own = |argument: Option<Cow<'_, [u8]>>| argument.map(Cow::into_owned);
                    Ok(arguments.map(own).collect::<Vec<_>>())
                };
                let arguments = pace::within((deadline, most, &self.slow), wanted, job).await?;
                let arguments = arguments.ok_or_else(|| self.too_late())?;
                let Some(group) = &mut self.group else { return Ok(()) };
                let arguments = arguments.iter().map(Option::as_deref);
                self.unfinished = add(group, &mut self.page, arguments)?;
                Ok(())
            }
            Unfinished::Rows => {
                let mut group = self.group.take();
                let job = move |work: &Work<'_>| {
                    group.as_mut().map_or(Ok(()), |group| group.catch_up(work))?;
                    Ok(group.take())
                };
                let caught_up = pace::within((deadline, most, &self.slow), wanted, job).await?;
                self.group = caught_up.ok_or_else(|| self.too_late())?;
                let Some(group) = &mut self.group else { return Ok(()) };
                group.memory().map_or(Ok(()), |bytes| self.page.count_group(bytes))
            }
            Unfinished::Group(clustering) => {
                self.close_group_apart().await?;
                if self.page.full || self.page.remaining_in_partition == 0 {
                    self.partition.skipping = true;
                    return Ok(());
                }
                self.add_to_group(clustering.as_deref())
            }
            Unfinished::LastGroup => {
                self.close_group_apart().await?;
                self.end_partition();
                Ok(())
            }
        }
    }

    /// As `close_group`, where the result calls user-defined functions.
    async fn close_group_apart(&mut self) -> Result<()> {
        let mut group = self.group.take();
        let (plan, terms) = (self.select.plan.clone(), self.select.terms.clone());
        let context = self.context.fork();
        let most = self.page.held.memory().for_row();
        let job = move |work: &Work<'_>| {
            let Some(of) = &mut group else { return Ok(None) };
            let results = of.results(work)?;
            let encoded =
                page::encoded(&plan, &context.evaluation(&terms, &of.first, &results, work))?;
            Ok(group.take().map(|group| (encoded, group)))
        };
        let bounds = (self.context.limits.deadline, most, &self.slow);
        let done = pace::within(bounds, None, job).await?;
        let Some((encoded, group)) = done.ok_or_else(|| self.too_late())? else { return Ok(()) };
        self.page.take(&self.select.plan, &group.first, &encoded)?;
        self.page.last = group.last();
        Ok(())
    }

    fn closes_apart(&self) -> bool {
        self.select.plan.selection.calls_user_functions()
    }

    fn too_late(&self) -> Error {
        Error::TooLate(self.context.consistency)
    }

    fn start(&mut self, start: &PartitionStart<'_>) {
        self.partition.skipped = 0;
        if matches!(self.select.keys, Some(BoundKeys::Partitions(_))) {
            // Each key is a read of its own.
            self.tombstones.end_read(self.live.counts, &self.select, &self.partition.key);
        }
        self.tell();
        self.live.start(start.deletion);
        self.partition.key.clear();
        self.partition.key.extend_from_slice(&start.key.bytes);
        self.row.clear();
        self.partition.found_rows = false;
        self.partition.found_static = false;
        self.partition.skipping = false;
        if !self.resumed {
            self.page.remaining_in_partition = self.select.limits.per_partition;
        }
        self.set_key(start.key);
        self.partition.mark = self.row.mark();
    }

    /// Each key is a read of its own, and a range is one.
    fn end_local_read(&mut self) {
        if matches!(self.select.keys, Some(BoundKeys::Partitions(_))) {
            self.sizes.end_read(&self.select, &self.partition.key);
        }
    }

    /// Adds a warning for the client.
    pub fn warn(&mut self, text: String) {
        self.sizes.warn(text);
    }

    /// The warnings for the client, at the end of the scan.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.tombstones.end_read(self.live.counts, &self.select, &self.partition.key);
        self.sizes.end_read(&self.select, &self.partition.key);
        let mut warnings = self.tombstones.take_warnings();
        warnings.append(&mut self.sizes.take_warnings(&self.page, &self.select));
        warnings.append(&mut self.slow.take());
        warnings
    }

    fn set_key(&mut self, key: &PartitionKey) {
        let Some(parts) = split_key(&key.bytes, self.targets.key.len()) else { return };
        for (target, part) in self.targets.key.iter().zip(parts) {
            if let Some(target) = target {
                self.row.set(target.fetch, part);
            }
        }
    }

    fn static_row(&mut self, row: &Row<'_>) -> Result<()> {
        let table = &self.select.plan.table;
        let columns = &table.layout.statics;
        self.partition.found_static =
            self.live.read(row, columns, &self.targets.statics, &mut self.row)?;
        self.partition.mark = self.row.mark();
        Ok(())
    }

    /// Removes the values of the last row and keeps those of its partition.
    fn clear_row(&mut self) {
        let targets = self.targets.clustering.iter().chain(&self.targets.regulars);
        for target in targets.flatten() {
            self.row.unset(target.fetch);
        }
        self.row.back(self.partition.mark);
    }

    fn row(&mut self, row: &Row<'_>) -> Result<()> {
        if self.partition.skipping {
            return Ok(());
        }
        self.clear_row();
        let table = self.select.plan.table.clone();
        let columns = &table.layout.regulars;
        if !self.live.read(row, columns, &self.targets.regulars, &mut self.row)? {
            return Ok(());
        }
        self.partition.found_rows = true;
        let clusterings = &table.layout.clusterings;
        let values = clusterings.values(row.clustering, clusterings.len());
        for (target, value) in self.targets.clustering.iter().zip(values) {
            if let (Some(target), ClusteringValue::Bytes(bytes)) = (target, value) {
                self.row.set(target.fetch, bytes);
            }
        }
        self.found(Some(row.clustering))
    }

    async fn end(&mut self) -> Result<()> {
        let whole = self.select.plan.restrictions.full_partitions();
        if !self.partition.found_rows && self.partition.found_static && whole && !self.resumed {
            self.clear_row();
            self.found(None)?;
            // The group is closed when it has the row.
            self.finish_row().await?;
        }
        // A group does not span partitions.
        if self.select.plan.grouping.is_some() && !self.page.full {
            if self.closes_apart() {
                self.unfinished = Some(Unfinished::LastGroup);
                return Ok(());
            }
            self.close_group()?;
        }
        self.end_partition();
        Ok(())
    }

    fn end_partition(&mut self) {
        if !self.page.full {
            self.resumed = false;
        }
    }

    /// Takes a row, or a static row alone, into its group or the page if the filters accept it.
    fn found(&mut self, clustering: Option<&[u8]>) -> Result<()> {
        match are_accepted(&self.select.filters, &self.row, &self.work) {
            Ok(true) => self.accepted(clustering),
            Ok(false) => Ok(()),
            Err(CqlError::Exhausted) => {
                self.unfinished = Some(Unfinished::Filters(clustering.map(<[u8]>::to_vec)));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn accepted(&mut self, clustering: Option<&[u8]>) -> Result<()> {
        if self.page.remaining_in_partition == 0 {
            self.partition.skipping = true;
            return Ok(());
        }
        if let Some(nearest) = &self.select.nearest {
            let rank = clustering.and_then(|clustering| self.rank(nearest, clustering));
            let Some(top) = &mut self.page.top else { return Ok(()) };
            top.next = rank.filter(|rank| top.wants(rank));
            if top.next.is_none() {
                return Ok(());
            }
        }
        let clustering = if self.select.plan.distinct { None } else { clustering };
        self.partition.skipping = self.select.plan.distinct;
        if self.select.plan.is_aggregate() {
            return self.add_to_group(clustering);
        }
        let on = self.context.evaluation(&self.select.terms, &self.row, &[], &self.work);
        if !self.page.put(&self.select.plan, &on)? {
            self.unfinished = Some(Unfinished::Row);
        }
        self.page.last.get_or_insert_default().set(&self.partition.key, clustering);
        Ok(())
    }

    /// Where the row stands among the nearest; `None`: it has no vector, or one that no index has.
    fn rank(&self, nearest: &NearestSearch, clustering: &[u8]) -> Option<Rank> {
        let NearestSearch { similarity, vector, .. } = nearest;
        let value = floats(self.row.value(self.select.plan.nearest?)?);
        if value.len() != vector.len() || similarity.refusal(&value).is_some() {
            return None;
        }
        let token = PartitionKey::of(&self.partition.key).token;
        let clusterings = &self.select.plan.table.layout.clusterings;
        let place =
            PrimaryKey::row(token, self.partition.key.as_slice().into(), clustering, clusterings);
        Some(Rank { score: similarity.score(&value, vector), place })
    }

    /// Adds the row to the open group, or closes that group and begins another.
    fn add_to_group(&mut self, clustering: Option<&[u8]>) -> Result<()> {
        let plan = self.select.plan.clone();
        let on = self.context.evaluation(&self.select.terms, &self.row, &[], &self.work);
        let by = group::values(&plan, &on)?;
        if self.group.as_ref().is_some_and(|group| !group.contains(&plan, &by)) {
            if self.closes_apart() {
                self.unfinished = Some(Unfinished::Group(clustering.map(<[u8]>::to_vec)));
                return Ok(());
            }
            self.close_group()?;
            if self.page.full || self.page.remaining_in_partition == 0 {
                self.partition.skipping = true;
                return Ok(());
            }
        }
        if let Some(error) = &self.select.unset_argument {
            return Err(error.clone().into());
        }
        let on = self.context.evaluation(&self.select.terms, &self.row, &[], &self.work);
        let arguments = group::arguments(&plan, &on);
        let group = self.group.get_or_insert_with(|| Group::new(&plan, by, self.row.clone()));
        group.end_at(&self.partition.key, clustering);
        match arguments {
            Ok(arguments) => {
                let arguments = arguments.iter().map(Option::as_deref);
                self.unfinished = add(group, &mut self.page, arguments)?;
                Ok(())
            }
            Err(CqlError::Exhausted) => {
                self.unfinished = Some(Unfinished::Arguments);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts the row of a group's results. Its expressions have the time that is left.
    fn close_group(&mut self) -> Result<()> {
        let Some(mut group) = self.group.take() else { return Ok(()) };
        let deadline = self.context.limits.deadline;
        let in_time = || now() <= deadline;
        let most = self.page.held.memory().for_row();
        let work = Work::while_there_is_time(&in_time).with_memory(most);
        let results = group.results(&work)?;
        let on = self.context.evaluation(&self.select.terms, &group.first, &results, &work);
        if !self.page.put(&self.select.plan, &on)? {
            return Err(self.too_late());
        }
        self.page.last = group.last();
        Ok(())
    }

    /// Ends the result: puts the open group into the page and sorts the rows.
    pub async fn finish(&mut self) -> Result<()> {
        let plan = self.select.plan.clone();
        if !self.page.full {
            let is_whole = plan.grouping.is_none() && plan.selection.is_aggregate();
            if is_whole && self.group.is_none() && self.page.count == 0 {
                // The aggregate of no rows is one row.
                self.group = Some(Group::empty(&plan));
            }
            match self.closes_apart() {
                true => self.close_group_apart().await?,
                false => self.close_group()?,
            }
        }
        if let Some(top) = self.page.top.take() {
            (self.page.count, self.page.content) = top.into_rows();
        }
        if !plan.sort.is_empty() {
            let deadline = self.context.limits.deadline;
            let sorted = Box::pin(self.page.sort(plan, self.select.limits.rows, deadline)).await?;
            return sorted.ok_or_else(|| self.too_late());
        }
        Ok(())
    }
}

fn are_accepted(
    filters: &[(usize, BoundFilter)],
    row: &RowValues,
    work: &Work<'_>,
) -> Result<bool, CqlError> {
    for (fetch, filter) in filters {
        if !filter.accepts(row.value(*fetch), work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds the arguments of the aggregates on one row; what the group keeps of them is counted with the page.
fn add<'v>(
    group: &mut Group,
    page: &mut Page,
    arguments: impl Iterator<Item = Option<&'v [u8]>>,
) -> Result<Option<Unfinished>> {
    group.add(arguments);
    group.memory().map_or(Ok(()), |bytes| page.count_group(bytes))?;
    Ok(group.is_behind().then_some(Unfinished::Rows))
}
