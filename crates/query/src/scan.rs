//! A SELECT while it runs: takes fragments in, gives encoded rows out.
//!
//! ```text
//!  FragmentStream ─► live ─► filters ─► groups, aggregates ─► selectors ─► page
//! ```
//!
//! 1. It owns all that it needs (values bound, columns looked up), so it moves from shard to shard with what it has
//!    gathered, and goes on there.
//! 2. It stops in the middle of a stream as soon as the page is full; `last` is then the row after which to continue.
//! 3. A group is given out when the first row of the next one shows up, so a page always ends between groups.
//! 4. Memory: one row, one group, one page. Only rows that are to be sorted (ORDER BY over several keys) are all kept.
//! 5. A long scan lets others have the thread every `SLICE`, and gives up when its time is over.

use std::cmp::Ordering;
use std::time::Duration;

use halcyon_cql::plan::Execution;
use halcyon_cql::plan::restrictions::BoundKeys;
use halcyon_cql::plan::select::{BoundSelect, NO_LIMIT, SelectPlan};
use halcyon_cql::plan::selection::{Evaluation, RowValues, Selector};
use halcyon_io::clock::{Instant, now};
use halcyon_io::yield_now;
use halcyon_model::bytes::Put;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::request::Consistency;
use halcyon_model::schema::ColumnKind;
use halcyon_model::token::split_key;
use halcyon_model::uuid;
use halcyon_model::value::{quote_json, to_cql_literal, to_json_string};
use halcyon_schema::catalog::ColumnRef;
use halcyon_stream::{Fragment, FragmentStream, PartitionKey, PartitionStart, Row};

use crate::aggregate::Accumulators;
use crate::live::{Live, Met, Target};
use crate::{Error, Failure, Result};

/// Bytes after which a page ends early, whatever its number of rows.
const PAGE_BYTES: usize = 64 << 20;

/// Bytes of most answers: room for them is made at once.
const USUAL: usize = 512;

/// How long a scan keeps its thread.
const SLICE: Duration = Duration::from_micros(300);

/// Fragments between two looks at the clock.
const FRAGMENTS_PER_LOOK: u32 = 32;

/// Fragments of a partition that are stepped over before it is left by its end.
const STEPS_BEFORE_SKIP: u32 = 64;

/// The row after which the next page continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Last {
    pub key: Vec<u8>,
    /// `None`: after the whole partition.
    pub clustering: Option<Vec<u8>>,
}

impl Last {
    /// Becomes another row, in the same buffers.
    fn set(&mut self, key: &[u8], clustering: Option<&[u8]>) {
        self.key.clear();
        self.key.extend_from_slice(key);
        match clustering {
            None => self.clustering = None,
            Some(bytes) => {
                let buffer = self.clustering.get_or_insert_default();
                buffer.clear();
                buffer.extend_from_slice(bytes);
            }
        }
    }
}

/// What a scan has used up and given out so far.
#[derive(Debug)]
pub(crate) struct Page {
    pub content: Vec<u8>,
    pub count: u32,
    /// Rows that may still come, in all and in this partition.
    pub remaining: u32,
    pub remaining_in_partition: u32,
    pub last: Option<Last>,
    /// Nothing more fits.
    pub full: bool,
}

/// Rows with what they are sorted by.
type Sortable = (Vec<Option<Vec<u8>>>, Vec<u8>);

/// Measures how long a scan has had its thread.
struct Pace {
    fragments: u32,
    /// The last look that began a slice; a short scan never looks.
    since: Option<Instant>,
}

impl Pace {
    fn new() -> Pace {
        Pace { fragments: 0, since: None }
    }

    /// Whether it is time to look at the clock.
    fn step(&mut self) -> bool {
        self.fragments += 1;
        self.fragments.is_multiple_of(FRAGMENTS_PER_LOOK)
    }

    /// Lets others run if the slice is used up; what time it is.
    async fn pause(&mut self) -> Instant {
        let time = now();
        if time - *self.since.get_or_insert(time) <= SLICE {
            return time;
        }
        yield_now().await;
        let time = now();
        self.since = Some(time);
        time
    }
}

#[derive(Debug)]
struct Group {
    /// What its rows have in common besides the partition.
    by: Vec<Option<Vec<u8>>>,
    first: RowValues,
    accumulators: Accumulators,
    last: Last,
}

/// What ends a read before its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub until: Instant,
    pub tombstone_warn_threshold: u64,
    pub tombstone_failure_threshold: u64,
}

/// Time and randomness of the request.
#[derive(Debug)]
pub(crate) struct Moment {
    pub now_micros: i64,
    pub now_seconds: i32,
    pub protocol_version: u8,
    pub uuids: uuid::Generator,
    pub consistency: Consistency,
    pub bounds: Bounds,
}

#[derive(Debug)]
pub(crate) struct Scan {
    pub select: BoundSelect,
    pub page: Page,
    pub live: Live,
    /// The shard that read the clock last, and the time: it is not read twice in a row.
    pub seen: (usize, Instant),
    moment: Moment,
    page_rows: u32,
    targets: Targets,
    row: RowValues,
    mark: usize,
    key: Vec<u8>,
    /// The partition was begun on an earlier page: its static row alone counts no more.
    resumed: bool,
    found_rows: bool,
    found_static: bool,
    /// No more rows of this partition are wanted.
    skipping: bool,
    /// Fragments that were stepped over since.
    stepped: u32,
    /// What had been met when the read that is under way began.
    met_before: Met,
    warnings: Vec<String>,
    group: Option<Group>,
    sorted: Vec<Sortable>,
}

/// Where the columns of each kind go.
#[derive(Debug)]
struct Targets {
    key: Vec<Option<Target>>,
    clustering: Vec<Option<Target>>,
    statics: Vec<Option<Target>>,
    regulars: Vec<Option<Target>>,
}

impl Targets {
    fn new(select: &BoundSelect) -> Targets {
        let table = &select.plan.table;
        let of_kind = |kind: ColumnKind| {
            let mut targets = vec![None; table.columns(kind).len()];
            for (index, fetch) in select.plan.selection.fetch.iter().enumerate() {
                let ColumnRef { kind: fetched, index: column } = fetch.column;
                if fetched == kind
                    && let Some(target) = targets.get_mut(usize::from(column))
                {
                    *target = Some(Target { fetch: index, times: fetch.times });
                }
            }
            targets
        };
        Targets {
            key: of_kind(ColumnKind::PartitionKey),
            clustering: of_kind(ColumnKind::Clustering),
            statics: of_kind(ColumnKind::Static),
            regulars: of_kind(ColumnKind::Regular),
        }
    }
}

/// Values that their types hold equal are of one group.
fn same_group(plan: &SelectPlan, a: &[Option<Vec<u8>>], b: &[Option<Vec<u8>>]) -> bool {
    let Some(grouping) = &plan.grouping else { return true };
    grouping.by.iter().zip(a.iter().zip(b)).all(|((_, cql_type), pair)| match pair {
        (Some(a), Some(b)) => cql_type.compare(a, b).is_eq(),
        (a, b) => a == b,
    })
}

impl Scan {
    /// `page_rows` is `u32::MAX` where everything comes at once.
    pub(crate) fn new(
        select: BoundSelect,
        moment: Moment,
        page_rows: u32,
        seen: (usize, Instant),
    ) -> Scan {
        let fetched = select.plan.selection.fetch.len();
        // A sorted result is cut after it is sorted.
        let sorts = !select.plan.sort.is_empty();
        let remaining = if sorts { NO_LIMIT } else { select.limits.rows };
        Scan {
            page: Page {
                content: Vec::with_capacity(USUAL),
                count: 0,
                remaining,
                remaining_in_partition: select.limits.per_partition,
                last: None,
                full: false,
            },
            seen,
            live: Live::new(
                u32::try_from(moment.now_seconds).unwrap_or(0),
                select.plan.table.schema.strict_liveness,
            ),
            targets: Targets::new(&select),
            row: RowValues::new(fetched),
            mark: 0,
            key: Vec::new(),
            resumed: false,
            found_rows: false,
            found_static: false,
            skipping: false,
            stepped: 0,
            met_before: Met::default(),
            warnings: Vec::new(),
            group: None,
            sorted: Vec::new(),
            page_rows,
            moment,
            select,
        }
    }

    /// Continues within a partition that an earlier page has started.
    pub(crate) fn resume(&mut self, remaining: u32, remaining_in_partition: u32) {
        self.page.remaining = remaining;
        self.page.remaining_in_partition = remaining_in_partition;
        self.resumed = true;
    }

    /// What comes now is whole partitions.
    pub(crate) fn next_partitions(&mut self) {
        self.resumed = false;
    }

    /// Takes in a stream, to its end or until the page is full. What is returned is a partition of which nothing more is
    /// wanted: the caller may go on behind it.
    pub(crate) async fn take<S>(&mut self, stream: &mut S) -> Result<Option<PartitionKey>>
    where
        S: FragmentStream,
        Error: From<S::Error>,
    {
        let mut pace = Pace::new();
        while !self.page.full && stream.advance().await? {
            if pace.step() && pace.pause().await > self.moment.bounds.until {
                return Err(self.too_late());
            }
            match stream.fragment() {
                Fragment::Start(start) => self.start(&start),
                Fragment::Static(row) => self.static_row(&row)?,
                Fragment::Row(row) => self.row(&row)?,
                Fragment::Marker(marker) => self.live.marker(marker.open),
                Fragment::End => self.end()?,
            }
            let met = self.live.met - self.met_before;
            if met.tombstones > self.moment.bounds.tombstone_failure_threshold {
                return Err(self.too_many_tombstones());
            }
            if self.skipping {
                self.stepped += 1;
                if self.stepped > STEPS_BEFORE_SKIP {
                    self.stepped = 0;
                    self.end()?;
                    return Ok(Some(PartitionKey::of(&self.key)));
                }
            }
        }
        Ok(None)
    }

    fn too_late(&self) -> Error {
        Error::ReadTimeout {
            consistency: self.moment.consistency,
            received: 0,
            required: 1,
            data_present: false,
        }
    }

    fn too_many_tombstones(&self) -> Error {
        let failure = Failure::ReadTooManyTombstones;
        Error::ReadFailure { failure, consistency: self.moment.consistency }
    }

    fn start(&mut self, start: &PartitionStart<'_>) {
        self.stepped = 0;
        if matches!(self.select.keys, Some(BoundKeys::Partitions(_))) {
            // Each key is a read of its own.
            self.note_tombstones();
        }
        self.live.start(start.deletion);
        self.key.clear();
        self.key.extend_from_slice(&start.key.bytes);
        self.row.clear();
        self.found_rows = false;
        self.found_static = false;
        self.skipping = false;
        if !self.resumed {
            self.page.remaining_in_partition = self.select.limits.per_partition;
        }
        self.set_key(start.key);
        self.mark = self.row.mark();
    }

    /// Warns of what the read that ends here had to step over.
    fn note_tombstones(&mut self) {
        let Met { rows, tombstones } = self.live.met - self.met_before;
        self.met_before = self.live.met;
        if tombstones > self.moment.bounds.tombstone_warn_threshold {
            self.warnings.push(format!(
                "Read {rows} live rows and {tombstones} tombstone cells for query {} (see tombstone_warn_threshold)",
                self.command()
            ));
        }
    }

    /// The read as Cassandra's warnings spell it.
    fn command(&self) -> String {
        let schema = &self.select.plan.table.schema;
        let mut text = format!("SELECT * FROM {}.{}", schema.keyspace, schema.name);
        let one_key = matches!(self.select.keys, Some(BoundKeys::Partitions(_)));
        if one_key && let Some(parts) = split_key(&self.key, schema.partition_key.len()) {
            let equal = schema.partition_key.iter().zip(parts).map(|(column, part)| {
                format!("{} = {}", column.name, to_cql_literal(&column.cql_type, part))
            });
            text.push_str(&format!(" WHERE {}", equal.collect::<Vec<_>>().join(" AND ")));
        }
        if self.select.plan.reversed
            && let Some(column) = schema.clustering.first()
        {
            text.push_str(&format!(" ORDER BY {} DESC", column.name));
        }
        if self.select.plan.is_aggregate() {
            text.push(' ');
        } else if self.select.limits.rows != NO_LIMIT {
            text.push_str(&format!(" LIMIT {}", self.select.limits.rows));
        }
        text.push_str(" ALLOW FILTERING");
        if one_key {
            text.push_str(&format!("; token {}", PartitionKey::of(&self.key).token));
        }
        text
    }

    /// The warnings for the client.
    pub(crate) fn warnings(&mut self) -> Vec<String> {
        self.note_tombstones();
        std::mem::take(&mut self.warnings)
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
        self.found_static = self.live.read(row, columns, &self.targets.statics, &mut self.row)?;
        self.mark = self.row.mark();
        Ok(())
    }

    /// Forgets the last row, not what belongs to the whole partition.
    fn clear_row(&mut self) {
        let targets = self.targets.clustering.iter().chain(&self.targets.regulars);
        for target in targets.flatten() {
            self.row.unset(target.fetch);
        }
        self.row.back(self.mark);
    }

    fn row(&mut self, row: &Row<'_>) -> Result<()> {
        if self.skipping {
            return Ok(());
        }
        self.clear_row();
        let table = self.select.plan.table.clone();
        let columns = &table.layout.regulars;
        if !self.live.read(row, columns, &self.targets.regulars, &mut self.row)? {
            return Ok(());
        }
        self.found_rows = true;
        let clusterings = &table.layout.clusterings;
        let values = clusterings.values(row.clustering, clusterings.len());
        for (target, value) in self.targets.clustering.iter().zip(values) {
            if let (Some(target), ClusteringValue::Bytes(bytes)) = (target, value) {
                self.row.set(target.fetch, bytes);
            }
        }
        self.found(Some(row.clustering))
    }

    fn end(&mut self) -> Result<()> {
        let whole = self.select.plan.restrictions.full_partitions();
        if !self.found_rows && self.found_static && whole && !self.resumed {
            self.clear_row();
            self.found(None)?;
        }
        // A group never reaches beyond its partition.
        if self.select.plan.grouping.is_some() && !self.page.full {
            self.close_group()?;
        }
        if !self.page.full {
            self.resumed = false;
        }
        Ok(())
    }

    /// A row (or a static row alone) is there: filters, then group or page.
    fn found(&mut self, clustering: Option<&[u8]>) -> Result<()> {
        let passes = |(fetch, filter): &(usize, _)| {
            let filter: &halcyon_cql::plan::restrictions::BoundFilter = filter;
            filter.accepts(self.row.value(*fetch))
        };
        if !self.select.filters.iter().all(passes) {
            return Ok(());
        }
        if self.page.remaining_in_partition == 0 {
            self.skipping = true;
            return Ok(());
        }
        let clustering = if self.select.plan.distinct { None } else { clustering };
        self.skipping = self.select.plan.distinct;
        if self.select.plan.is_aggregate() {
            return self.gather(clustering);
        }
        let row = std::mem::take(&mut self.row);
        let given = self.give(&row, &[]);
        self.row = row;
        self.page.last.get_or_insert_default().set(&self.key, clustering);
        given
    }

    fn execution(&self) -> Execution<'_> {
        Execution {
            values: &[],
            now_micros: self.moment.now_micros,
            now_seconds: self.moment.now_seconds,
            protocol_version: self.moment.protocol_version,
            uuids: &self.moment.uuids,
            json: &[],
        }
    }

    fn on<'a>(&'a self, row: &'a RowValues, aggregates: &'a [Option<Vec<u8>>]) -> Evaluation<'a> {
        Evaluation { row, terms: &self.select.terms, aggregates, execution: self.execution() }
    }

    /// Adds a row to its group; closes the one before if it is of another.
    fn gather(&mut self, clustering: Option<&[u8]>) -> Result<()> {
        let plan = self.select.plan.clone();
        let by = match &plan.grouping {
            None => Vec::new(),
            Some(grouping) => {
                let on = self.on(&self.row, &[]);
                let value = |(selector, _): &(Selector, _)| {
                    Ok(selector.evaluate(&on)?.map(|value| value.into_owned()))
                };
                grouping.by.iter().map(value).collect::<Result<Vec<_>>>()?
            }
        };
        if self.group.as_ref().is_some_and(|group| !same_group(&plan, &group.by, &by)) {
            self.close_group()?;
            if self.page.full || self.page.remaining_in_partition == 0 {
                self.skipping = true;
                return Ok(());
            }
        }
        let group = self.group.take();
        let mut group = group.unwrap_or_else(|| Group {
            by,
            first: self.row.clone(),
            accumulators: Accumulators::new(&plan.selection.aggregates),
            last: Last::default(),
        });
        group.last.set(&self.key, clustering);
        for (index, call) in plan.selection.aggregates.iter().enumerate() {
            let on = self.on(&self.row, &[]);
            let argument = match call.arguments.first() {
                None => None,
                Some(selector) => selector.evaluate(&on)?,
            };
            group.accumulators.add(index, argument.as_deref())?;
        }
        self.group = Some(group);
        Ok(())
    }

    fn close_group(&mut self) -> Result<()> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let results = group.accumulators.results()?;
        self.give(&group.first, &results)?;
        self.page.last = Some(group.last);
        Ok(())
    }

    /// Puts a row into the page.
    fn give(&mut self, row: &RowValues, aggregates: &[Option<Vec<u8>>]) -> Result<()> {
        let plan = self.select.plan.clone();
        let mut content = std::mem::take(&mut self.page.content);
        let start = content.len();
        let encoded = self.encode(row, aggregates, &mut content);
        self.page.content = content;
        encoded?;
        if !plan.sort.is_empty() {
            let bytes = self.page.content.split_off(start);
            let value = |(fetch, _, _): &(usize, _, _)| row.value(*fetch).map(<[u8]>::to_vec);
            let by = plan.sort.iter().map(value).collect();
            self.sorted.push((by, bytes));
        } else {
            self.page.count += 1;
        }
        for left in [&mut self.page.remaining, &mut self.page.remaining_in_partition] {
            *left = left.saturating_sub(1);
        }
        self.page.full = self.page.remaining == 0
            || self.page.count >= self.page_rows
            || self.page.content.len() >= PAGE_BYTES && self.page_rows != u32::MAX;
        Ok(())
    }

    fn encode(
        &self,
        row: &RowValues,
        aggregates: &[Option<Vec<u8>>],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let plan = &self.select.plan;
        let on = self.on(row, aggregates);
        let Some(names) = &plan.json else {
            for selector in &plan.selection.selectors {
                match selector.evaluate(&on)? {
                    None => out.put_i32(-1),
                    Some(value) => out.put_ibytes(&value),
                }
            }
            return Ok(());
        };
        let mut text = String::from("{");
        let selectors = plan.selection.selectors.iter().enumerate();
        for ((index, selector), (name, cql_type)) in selectors.zip(names) {
            let name = if name.chars().any(char::is_uppercase) {
                format!("\"{name}\"")
            } else {
                name.clone()
            };
            text.push_str(if index == 0 { "" } else { ", " });
            text.push_str(&format!("\"{}\": ", quote_json(&name)));
            match selector.evaluate(&on)? {
                None => text.push_str("null"),
                Some(value) => {
                    text.push_str(&to_json_string(cql_type, &value));
                }
            }
        }
        text.push('}');
        out.put_ibytes(text.as_bytes());
        Ok(())
    }

    /// Nothing more is to be read: what was held back is given out.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let plan = self.select.plan.clone();
        if !self.page.full {
            if self.group.is_some() {
                self.close_group()?;
            } else if plan.grouping.is_none()
                && plan.selection.is_aggregate()
                && self.page.count == 0
            {
                // An aggregate of nothing is a row too.
                let results = Accumulators::new(&plan.selection.aggregates).results()?;
                let nothing = RowValues::new(plan.selection.fetch.len());
                self.give(&nothing, &results)?;
            }
        }
        if plan.sort.is_empty() {
            return Ok(());
        }
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.sort_by(|(a, _), (b, _)| {
            let pairs = plan.sort.iter().zip(a.iter().zip(b));
            pairs.fold(Ordering::Equal, |order, ((_, cql_type, reversed), (a, b))| {
                order.then_with(|| {
                    let order = match (a, b) {
                        (Some(a), Some(b)) => cql_type.compare(a, b),
                        (a, b) => a.is_some().cmp(&b.is_some()),
                    };
                    if *reversed { order.reverse() } else { order }
                })
            })
        });
        let limit = usize::try_from(self.select.limits.rows).unwrap_or(usize::MAX);
        sorted.truncate(limit);
        self.page.count = u32::try_from(sorted.len()).unwrap_or(u32::MAX);
        self.page.content = sorted.into_iter().flat_map(|(_, bytes)| bytes).collect();
        Ok(())
    }
}
