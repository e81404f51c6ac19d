//! A modification with its values, and the mutation that it comes to.

use std::collections::HashSet;
use std::sync::Arc;

use halcyon_guardrails::{Guard, Said};
use halcyon_model::clustering::PositionBuf;
use halcyon_model::counter::{self, CounterContext};
use halcyon_model::schema::ColumnKind;
use halcyon_model::time::MAX_DELETION_TIME;
use halcyon_model::uuid;
use halcyon_model::value::timestamp_iso_string;
use halcyon_model::{CqlType, DeletionTime, NO_TTL};
use halcyon_stream::{Mutation, PartitionKey, RangeTombstone, RowBuf, Statics};

use super::conditions::BoundConditions;
use super::current::{CurrentPartition, CurrentRow};
use super::guarded::Guarded;
use super::indexed;
use super::operation::{Change, Operation};
use super::plan::{BatchPlan, ModifyPlan};
use super::restrictions::Restrictions;
use super::row::{RowWriter, WriteTime};
use super::statement_type::StatementType;
use super::terms::{Terms, Written};
use crate::plan::execution::{Execution, Work};
use crate::plan::term::{Bound, Term};
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_syntax::{Error, Result};

/// Twenty years.
const MAX_TTL: i32 = 20 * 365 * 24 * 60 * 60;

/// The shard that a counter write makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterShard {
    /// Whose count it is.
    pub id: [u8; 16],
    /// When it is counted.
    pub now_micros: i64,
}

impl CounterShard {
    /// Of a modification without counters.
    pub const NONE: CounterShard = CounterShard { id: [0; 16], now_micros: 0 };
}

/// Which rows of its partitions a modification means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundRows {
    /// The partition: its static row, its deletion, or, without clustering columns, its only row.
    Partition,
    /// Serialized clusterings.
    Rows(Vec<Vec<u8>>),
    Slices(Vec<(PositionBuf, PositionBuf)>),
}

type Changes = Vec<(ColumnRef, Change)>;

/// Warnings of equal values that a response has at most: a short text can name very many rows.
const MOST_SAID: usize = 1_000;

fn row_count(rows: &BoundRows) -> usize {
    match rows {
        BoundRows::Rows(rows) => rows.len().max(1),
        BoundRows::Slices(slices) => slices.len(),
        BoundRows::Partition => 1,
    }
}

/// Owned: it can be sent to the shard that has the partition.
#[derive(Debug, Clone)]
pub struct BoundModification {
    pub table: Arc<Table>,
    pub kind: StatementType,
    pub keys: Vec<PartitionKey>,
    pub rows: BoundRows,
    pub conditions: Option<BoundConditions>,
    /// Columns whose stored values `mutation` needs.
    pub reads: Vec<ColumnRef>,
    pub updates_regular_rows: bool,
    pub updates_static_row: bool,
    pub timestamp: i64,
    /// The client's `now_in_seconds`, if it sent one.
    pub now_seconds: u32,
    /// What would expire later expires then.
    latest_expiration: u32,
    changes: Changes,
    ttl: i32,
    /// Whether a DELETE names columns of which all are unset: it deletes nothing, and its conditions are about its rows.
    is_unset: bool,
    /// Why it cannot be applied, if its conditions hold.
    refused: Option<Error>,
    /// What guardrails say if its conditions hold.
    pub said: Vec<Said>,
    /// What guardrails say of its terms of indexes.
    pub terms: Terms,
    /// The TTL is the table's.
    ttl_is_default: bool,
}

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::InvalidRequest(message.into()))
}

fn bind_timestamp(term: Option<&Term>, default: i64, execution: &Execution<'_>) -> Result<i64> {
    let Some(term) = term else { return Ok(default) };
    match term.bind(execution)? {
        Bound::Unset => Ok(default),
        Bound::Null => refuse("Invalid null value of timestamp"),
        Bound::Bytes(bytes) => match bytes.as_ref().try_into() {
            Ok(bytes) => Ok(i64::from_be_bytes(bytes)),
            Err(_) => refuse("Invalid timestamp value: empty"),
        },
    }
}

fn bind_ttl(term: Option<&Term>, table: &Table, execution: &Execution<'_>) -> Result<i32> {
    let default = table.schema.options.default_time_to_live;
    let Some(term) = term else { return Ok(default) };
    let ttl = match term.bind(execution)? {
        Bound::Unset => return Ok(default),
        Bound::Null => return Ok(NO_TTL),
        Bound::Bytes(bytes) => match bytes.as_ref().try_into() {
            Ok(bytes) => i32::from_be_bytes(bytes),
            Err(_) => return Ok(NO_TTL),
        },
    };
    if ttl < 0 {
        return refuse(format!("A TTL must be greater or equal to 0, but was {ttl}"));
    }
    if ttl > MAX_TTL {
        return refuse(format!("ttl is too large. requested ({ttl}) maximum ({MAX_TTL})"));
    }
    Ok(ttl)
}

impl ModifyPlan {
    /// The timestamp that the statement gives, if it gives one.
    pub fn own_timestamp(&self, default: i64, execution: &Execution<'_>) -> Result<Option<i64>> {
        let term = self.attributes.timestamp.as_ref();
        term.map(|term| bind_timestamp(Some(term), default, execution)).transpose()
    }
}

impl BatchPlan {
    /// The timestamp that statements without one have.
    pub fn bind_timestamp(&self, default: i64, execution: &Execution<'_>) -> Result<i64> {
        bind_timestamp(self.timestamp.as_ref(), default, execution)
    }
}

/// What a statement is executed with.
#[derive(Debug, Clone)]
pub enum Company {
    /// Nothing, or a batch without conditions.
    None,
    /// The statements of a conditional batch, of which the first has this partition.
    Conditional(Option<PartitionKey>),
}

impl ModifyPlan {
    /// Binds the partition keys alone: Cassandra binds those of a whole batch before the rest of its statements.
    pub fn check_keys(&self, execution: &Execution<'_>) -> Result<()> {
        let given = self.json.as_ref().map(|marker| marker.bind(execution)).transpose()?;
        let execution = &Execution { json: given.as_deref().unwrap_or_default(), ..*execution };
        self.restrictions.bind_keys(&self.table, execution).map(drop)
    }

    /// `default_timestamp` is that of the request. Conditions, of this statement or of another of its batch, are evaluated before
    /// values are looked at.
    pub fn bind(
        &self,
        default_timestamp: i64,
        company: &Company,
        execution: &Execution<'_>,
    ) -> Result<BoundModification> {
        let given = self.json.as_ref().map(|marker| marker.bind(execution)).transpose()?;
        let execution = &Execution { json: given.as_deref().unwrap_or_default(), ..*execution };
        let keys = self.restrictions.bind_keys(&self.table, execution)?;
        let is_conditional = self.has_conditions() || matches!(company, Company::Conditional(_));
        if is_conditional {
            self.check_one_partition()?;
            if let Company::Conditional(Some(first)) = company
                && keys.first() != Some(first)
            {
                return refuse("Batch with conditions cannot span multiple partitions");
            }
            self.check_one_row()?;
        }
        let rows = self.restrictions.bind_rows(self.kind, &self.table, execution)?;
        if !keys.is_empty() && self.deletes_columns_of_ranges(&rows) {
            return refuse("Range deletions are not supported for specific columns");
        }
        // Without a row Cassandra looks at no attribute, without a partition at no value.
        let is_rowless = matches!(&rows, BoundRows::Rows(rows) if rows.is_empty());
        let is_nowhere = keys.is_empty() || is_rowless;
        let is_deferred = is_conditional || is_nowhere;
        let times = self.bind_times(default_timestamp, execution);
        let ((timestamp, ttl), late) = match times {
            Ok(times) => (times, None),
            Err(error) if is_conditional || is_rowless => {
                ((default_timestamp, NO_TTL), Some(error))
            }
            Err(error) => return Err(error),
        };
        let unfit_key = || Restrictions::check_keys(&keys, &self.table, is_conditional).err();
        let unfit = late.or_else(unfit_key).or_else(|| self.check_row(&rows).err());
        if let Some(error) = unfit.as_ref().filter(|_| !is_deferred) {
            return Err(error.clone());
        }
        let written = if is_nowhere { 0 } else { keys.len().saturating_mul(row_count(&rows)) };
        let times = (written, row_count(&rows));
        let (bound, said) = self.bind_repeated(times, (is_deferred, is_conditional), execution);
        let (changes, unfit_value) = bound?;
        let terms = self.terms(&keys, &rows, &changes, execution.guard.filter(|_| !is_nowhere));
        // A DELETE without columns deletes whole rows, whatever is unset.
        let is_delete = self.kind == StatementType::Delete;
        let is_unset = is_delete && !self.operations.is_empty() && changes.is_empty();
        Ok(BoundModification {
            table: self.table.clone(),
            kind: self.kind,
            keys,
            rows,
            conditions: self.conditions.bind(execution)?,
            reads: self.columns_read().collect(),
            updates_regular_rows: self.updates_regular_rows(),
            updates_static_row: self.updates_static_row(),
            timestamp,
            changes,
            ttl,
            refused: unfit.or(unfit_value),
            said,
            terms,
            ttl_is_default: self.attributes.ttl.is_none(),
            now_seconds: execution.now_seconds,
            latest_expiration: MAX_DELETION_TIME,
            is_unset,
        })
    }

    fn deletes_columns_of_ranges(&self, rows: &BoundRows) -> bool {
        let regular = |op: &Operation| op.column.kind == ColumnKind::Regular;
        let are_ranges = match rows {
            BoundRows::Slices(slices) => !slices.is_empty(),
            BoundRows::Rows(_) => false,
            BoundRows::Partition => {
                !self.table.schema.clustering.is_empty() && self.operations.iter().any(regular)
            }
        };
        are_ranges && self.kind == StatementType::Delete && !self.operations.is_empty()
    }

    /// The timestamp and the time to live (`UpdateParameters`).
    fn bind_times(&self, default_timestamp: i64, execution: &Execution<'_>) -> Result<(i64, i32)> {
        let attributes = &self.attributes;
        let timestamp =
            bind_timestamp(attributes.timestamp.as_ref(), default_timestamp, execution)?;
        let ttl = bind_ttl(attributes.ttl.as_ref(), &self.table, execution)?;
        if timestamp == i64::MIN {
            return refuse(format!(
                "Out of bound timestamp, must be in [{}, {}]",
                i64::MIN + 1,
                i64::MAX
            ));
        }
        Ok((timestamp, ttl))
    }

    /// Refuses what a table with `COMPACT STORAGE` cannot have: a row with an empty clustering, and one that an INSERT makes without cells,
    /// by which alone it exists.
    fn check_row(&self, rows: &BoundRows) -> Result<()> {
        self.restrictions.check_compact(rows, &self.table)?;
        let table = &self.table.schema;
        if self.kind != StatementType::Insert || !table.options.compact_storage {
            return Ok(());
        }
        let names_value = self.operations.iter().any(|op| op.column.kind == ColumnKind::Regular);
        if names_value || !self.updates_regular_rows() {
            return Ok(());
        }
        match table.regulars.first().filter(|value| value.cql_type != CqlType::Empty) {
            Some(value) => {
                let name = &value.name;
                refuse(format!("Column {name} is mandatory for this COMPACT STORAGE table"))
            }
            None => Ok(()),
        }
    }

    /// The changes of columns. What guardrails say as each of `times` rows gets them is said, or returned if that depends on conditions.
    fn bind_repeated(
        &self,
        (times, rows): (usize, usize),
        (is_deferred, is_conditional): (bool, bool),
        execution: &Execution<'_>,
    ) -> (Result<(Changes, Option<Error>)>, Vec<Said>) {
        let guard = execution.guard.filter(|_| times > 0).map(Guard::fresh);
        let bound = self.bind_changes((is_deferred, rows), guard.as_ref(), execution);
        let mut said = guard.map(|guard| guard.take_said()).unwrap_or_default();
        if bound.is_ok() && !said.is_empty() {
            said = std::iter::repeat_n(said, times.min(MOST_SAID)).flatten().collect();
        }
        if let Some(guard) = execution.guard.filter(|_| !is_conditional) {
            guard.say(std::mem::take(&mut said));
        }
        (bound, said)
    }

    fn terms(
        &self,
        keys: &[PartitionKey],
        rows: &BoundRows,
        changes: &Changes,
        guard: Option<&Guard>,
    ) -> Terms {
        let Some(guard) = guard else { return Terms::default() };
        let (count, clusterings) = match rows {
            BoundRows::Partition => (1, &[][..]),
            BoundRows::Rows(rows) => (rows.len(), rows.as_slice()),
            BoundRows::Slices(_) => (0, &[][..]),
        };
        Written { table: &self.table, keys, rows: count, clusterings, changes }.terms(guard)
    }

    /// What an operation becomes, if guardrails allow that.
    fn bind_guarded(
        &self,
        operation: &Operation,
        guard: Option<&Guard>,
        execution: &Execution<'_>,
    ) -> Result<Option<Change>> {
        let Some(guard) = guard else { return operation.bind(execution) };
        let column = self.table.column(operation.column).map_or("", |def| def.name.as_str());
        let (cql_type, access) = (operation.cql_type(), operation.access());
        let guarded = Guarded { guard, column, cql_type, access };
        guarded.check_access()?;
        let change = operation.bind(execution)?;
        if let Some(change) = &change {
            guarded.check_change(change)?;
        }
        Ok(change)
    }

    /// The changes of columns, and, with `is_deferred`, the first error instead of a refusal.
    fn bind_changes(
        &self,
        (is_deferred, rows): (bool, usize),
        guard: Option<&Guard>,
        execution: &Execution<'_>,
    ) -> Result<(Changes, Option<Error>)> {
        let mut changes = Vec::with_capacity(self.operations.len());
        let mut refused = None;
        let of = |is_static: bool| {
            let is_wanted =
                move |op: &&Operation| (op.column.kind == ColumnKind::Static) == is_static;
            self.operations.iter().filter(is_wanted)
        };
        // Cassandra applies those of rows first.
        for operation in of(false).chain(of(true)) {
            let mut bound = self.bind_guarded(operation, guard, execution);
            if operation.is_static() && rows > 1 {
                let repeated = |once| operation.repeated(once, rows, execution);
                bound = bound.and_then(|once| once.map(repeated).transpose());
            }
            match bound {
                Ok(change) => changes.extend(change.map(|change| (operation.column, change))),
                // The statement is bound again, by a thread that takes longer.
                Err(Error::Exhausted) => return Err(Error::Exhausted),
                Err(error)
                    if changes
                        .iter()
                        .any(|(_, change): &(_, Change)| change.asks_for_elements()) =>
                {
                    changes.push((operation.column, Change::Refused(error)));
                    break;
                }
                Err(error) if is_deferred => refused = refused.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        Ok((changes, refused))
    }
}

impl BoundModification {
    /// Whether it changes too many cells for its mutation to be made at once.
    pub fn is_large(&self) -> bool {
        const CELLS: usize = 1_000;
        let cells = self.changes.iter().map(|(_, change)| change.cells());
        let cells = cells.fold(1, usize::saturating_add);
        cells.saturating_mul(self.row_count()) > CELLS
    }

    fn row_count(&self) -> usize {
        row_count(&self.rows)
    }

    /// Bytes that the mutations of all its partitions take, about.
    pub fn memory(&self) -> u64 {
        const MUTATION: u64 = 1 << 10;
        const CELL: u64 = 64;
        let change = |(_, change): &(ColumnRef, Change)| {
            (change.cells() as u64).saturating_mul(CELL).saturating_add(change.bytes())
        };
        let row = self.changes.iter().map(change).fold(CELL, u64::saturating_add);
        let rows = (self.row_count() as u64).saturating_mul(row);
        (self.keys.len() as u64).saturating_mul(rows.saturating_add(MUTATION))
    }

    /// Whether it can change no partition and no row.
    pub fn is_nothing(&self) -> bool {
        let no_rows = match &self.rows {
            BoundRows::Partition => false,
            BoundRows::Rows(rows) => rows.is_empty(),
            BoundRows::Slices(slices) => slices.is_empty(),
        };
        no_rows || self.is_unset || self.keys.is_empty()
    }

    /// Refuses an expiration time beyond the range of the SSTable format (`ExpirationDateOverflowHandling`, REJECT). Cassandra asks the
    /// clock here, and not the client's `now_in_seconds`: by that, what is written expires at `latest` at the latest.
    pub fn limit_expiration(&mut self, latest: u32, clock_seconds: i64) -> Result<()> {
        self.latest_expiration = latest;
        let at = clock_seconds.saturating_add(i64::from(self.ttl));
        if self.ttl == NO_TTL || self.kind == StatementType::Delete || at <= i64::from(latest) {
            return Ok(());
        }
        let date = timestamp_iso_string(i64::from(latest) * 1000).replace(".000Z", "+00:00");
        refuse(format!(
            "Request on table {} with {}ttl of {} seconds exceeds maximum supported expiration date of {date}. In order \
             to avoid this use a lower TTL, change the expiration date overflow policy or upgrade to a version where this \
             limitation is fixed. See CASSANDRA-14092 and CASSANDRA-14227 for more details.",
            self.table.full_name(),
            if self.ttl_is_default { "default " } else { "" },
            self.ttl
        ))
    }

    /// Whether `mutation` needs the stored rows.
    pub fn requires_read(&self) -> bool {
        !self.reads.is_empty() || self.table.is_counter()
    }

    /// What becomes of one of its partitions. `current` has the rows that it means if it requires a read.
    pub fn mutation(
        &self,
        key: &PartitionKey,
        current: &CurrentPartition,
        shard: CounterShard,
    ) -> Result<Mutation> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let table = &self.table;
        let mut mutation = Mutation::new(table.id, table.layout.clone(), key.clone());
        if self.is_unset {
            return Ok(mutation);
        }
        let writer = Writer { modification: self, current, shard, time: self.time() };
        let deletes_rows = self.kind == StatementType::Delete && self.changes.is_empty();
        match &self.rows {
            BoundRows::Partition if deletes_rows => mutation.deletion = self.time().deletion(),
            BoundRows::Partition if table.schema.clustering.is_empty() => {
                mutation.rows.extend(writer.row(&[])?);
            }
            BoundRows::Partition => {}
            BoundRows::Rows(rows) => {
                for clustering in rows {
                    mutation.rows.extend(writer.row(clustering)?);
                }
            }
            BoundRows::Slices(slices) => {
                let time: DeletionTime = self.time().deletion();
                let tombstone = |(start, end): &(PositionBuf, PositionBuf)| RangeTombstone {
                    start: start.clone(),
                    end: end.clone(),
                    time,
                };
                mutation.range_tombstones.extend(slices.iter().map(tombstone));
            }
        }
        mutation.static_row = writer.static_row()?;
        if self.counts() && mutation.static_row.is_some() {
            mutation.deletion = current.deletion;
        }
        indexed::check(table, &mutation)?;
        Ok(mutation)
    }

    /// Whether it increments. Then the deletions that cover its counters come with it: a tombstone of a column wins over each shard that it
    /// is merged with (CASSANDRA-7346), unless a newer deletion that covers the tombstone is merged too.
    fn counts(&self) -> bool {
        self.table.is_counter() && self.kind != StatementType::Delete
    }

    fn time(&self) -> WriteTime {
        WriteTime {
            timestamp: self.timestamp,
            ttl: self.ttl,
            now_seconds: self.now_seconds,
            latest_expiration: self.latest_expiration,
        }
    }
}

struct Writer<'a> {
    modification: &'a BoundModification,
    current: &'a CurrentPartition,
    shard: CounterShard,
    time: WriteTime,
}

impl Writer<'_> {
    fn static_row(&self) -> Result<Option<RowBuf>> {
        if !self.modification.updates_static_row {
            return Ok(None);
        }
        let columns = self.modification.table.layout.columns(Statics::Static);
        let mut row = RowWriter::new(columns, &[], self.time);
        self.changes(ColumnKind::Static, self.current.static_row.as_ref(), &mut row)?;
        Ok(row.finish())
    }

    fn row(&self, clustering: &[u8]) -> Result<Option<RowBuf>> {
        let modification = self.modification;
        let layout = &modification.table.layout;
        let columns = layout.columns(Statics::Regular);
        let mut row = RowWriter::new(columns, clustering, self.time);
        match modification.kind {
            StatementType::Insert if modification.table.schema.options.compact_storage => {
                self.compact_value(&mut row);
            }
            StatementType::Insert => row.liveness(),
            StatementType::Delete if modification.changes.is_empty() => row.delete_row(),
            _ => {}
        }
        let stored = self.current.row(&layout.clusterings, clustering);
        self.changes(ColumnKind::Regular, stored, &mut row)?;
        if modification.counts() {
            row.delete_before(self.current.deletion_of(&layout.clusterings, clustering));
        }
        Ok(row.finish())
    }

    /// A row of a table with `COMPACT STORAGE` exists by its cells alone, so a row of one without value columns gets an empty one.
    fn compact_value(&self, row: &mut RowWriter<'_>) {
        let regulars = &self.modification.table.schema.regulars;
        if regulars.iter().all(|value| value.cql_type == CqlType::Empty) && !regulars.is_empty() {
            row.cell(0, &[], &[]);
        }
    }

    fn changes(
        &self,
        kind: ColumnKind,
        stored: Option<&CurrentRow>,
        row: &mut RowWriter<'_>,
    ) -> Result<()> {
        let changes = self.modification.changes.iter().filter(|(column, _)| column.kind == kind);
        for (column, change) in changes {
            self.change(*column, change, stored, row)?;
        }
        Ok(())
    }

    fn change(
        &self,
        column: ColumnRef,
        change: &Change,
        stored: Option<&CurrentRow>,
        row: &mut RowWriter<'_>,
    ) -> Result<()> {
        let at = column.index;
        let put = |row: &mut RowWriter<'_>, path: &[u8], value: Option<&[u8]>| match value {
            Some(value) => row.cell(at, path, value),
            None => row.tombstone(at, path),
        };
        match change {
            Change::Increment(delta) => self.count(at, Some(*delta), stored, row),
            Change::Cell(None) if self.modification.table.is_counter() => {
                self.count(at, None, stored, row);
            }
            Change::Cell(value) => put(row, &[], value.as_deref()),
            Change::Overwrite(cells) => {
                row.delete_column(at, true);
                cells.iter().for_each(|(path, value)| row.cell(at, path, value));
            }
            Change::Cells(cells) => {
                cells.iter().for_each(|(path, value)| put(row, path, value.as_deref()));
            }
            Change::DeleteAll => row.delete_column(at, false),
            Change::Refused(error) => return Err(error.clone()),
            Change::SetIndex { index, value } => {
                let path = element_path(row.list(at, stored), *index, "set on")?;
                if let Some(value) = value {
                    put(row, &path, value.as_deref());
                }
            }
            Change::DeleteIndex(index) => {
                let path = element_path(row.list(at, stored), *index, "delete from")?;
                row.tombstone(at, &path);
            }
            Change::DiscardValues(values) => {
                let values: HashSet<&[u8]> = values.iter().map(Vec::as_slice).collect();
                let mut list = row.list(at, stored);
                list.retain(|(_, value)| values.contains(value));
                let paths: Vec<Vec<u8>> = list.iter().map(|(path, _)| path.to_vec()).collect();
                paths.iter().for_each(|path| row.tombstone(at, path));
            }
            Change::Combine { operand, function } => {
                let Some(left) = stored.and_then(|row| row.cells_of(at).next()) else {
                    return Ok(());
                };
                let uuids = uuid::Generator::seeded(0);
                // One call, on values that are bounded.
                let work = Work::while_there_is_time(&|| true);
                let execution = Execution {
                    values: &[],
                    now_micros: self.time.timestamp,
                    now_seconds: self.time.now_seconds,
                    protocol_version: 5,
                    uuids: &uuids,
                    json: &[],
                    guard: None,
                    work: &work,
                };
                let arguments = [Some(left.value), Some(operand.as_slice())];
                put(row, &[], function.call(&arguments, &execution)?.as_deref());
            }
        }
        Ok(())
    }

    /// Increments a counter, or deletes it if there is no `delta`.
    ///
    /// A tombstone wins over every shard of its column (CASSANDRA-7346), so an increment that meets one has no effect. It is not even
    /// stored, unlike in Cassandra, where it comes to light when a compaction drops the tombstone without it.
    fn count(
        &self,
        column: u16,
        delta: Option<i64>,
        stored: Option<&CurrentRow>,
        row: &mut RowWriter<'_>,
    ) {
        let there = stored.and_then(|stored| stored.counter(column));
        if delta.is_some() && there.is_some_and(|there| there.is_tombstone) {
            return;
        }
        let cell = stored.and_then(|stored| stored.cells_of(column).next());
        let context = delta.map(|delta| self.counted(cell.map(|cell| cell.value), delta));
        row.counter(column, context.as_deref(), there.map(|there| there.timestamp));
    }

    /// This node's shard of a counter, at a later clock (`CounterMutation.updateWithCurrentValue`). What a deletion shadows is not in
    /// the context; the time of day is later than its clock too, so that the new shard wins where they are merged without the deletion.
    fn counted(&self, context: Option<&[u8]>, delta: i64) -> Vec<u8> {
        let CounterShard { id, now_micros } = self.shard;
        let shard = context
            .and_then(|context| CounterContext::decode(context).ok())
            .and_then(|context| context.shards.into_iter().find(|s| s.id == id));
        let (clock, count) = shard.map_or((0, 0), |shard| (shard.clock, shard.count));
        let clock = now_micros.max(clock.wrapping_add(1));
        counter::global(id, clock, count.wrapping_add(delta))
    }
}

/// The path of a list's element.
fn element_path(list: Vec<(&[u8], &[u8])>, index: i32, doing: &str) -> Result<Vec<u8>> {
    let size = list.len();
    if size == 0 {
        let (verb, preposition) = doing.split_once(' ').unwrap_or((doing, "on"));
        return refuse(format!(
            "Attempted to {verb} an element {preposition} a list which is null"
        ));
    }
    let at = usize::try_from(index).ok();
    match at.and_then(|at| list.get(at)) {
        Some((path, _)) => Ok(path.to_vec()),
        None => refuse(format!("List index {index} out of bound, list has size {size}")),
    }
}
