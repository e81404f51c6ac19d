//! Conditional writes: read, compare and apply under the partition's lock on the shard that owns it.
//!
//! 1. All statements mean one partition. Their conditions are gathered by row; `Target::Static` stands for the partition.
//! 2. What Cassandra reads is read: the rows with conditions, and of them all regular (static) columns if a statement
//!    updates regular (static) rows, else those with conditions only. A refusal shows these columns.
//! 3. All conditions hold: the statements are applied as one update (`proposal`), later than every earlier conditional write, if as
//!    many replicas live as the level of the commit wants.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use halcyon_cql::plan::modify::{
    BoundConditions, BoundModification, CounterShard, CurrentPartition, ModifyPlan,
};
use halcyon_engine::{Sampler, Shard};
use halcyon_guardrails::Said;
use halcyon_io::clock::unix_micros;
use halcyon_model::CqlType;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::request::{ColumnSpec, Consistency};
use halcyon_model::schema::ColumnKind;
use halcyon_model::token::split_key;
use halcyon_scan::pace::Pace;
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_stream::PartitionKey;

use super::current::{self, Stored, Wanted};
use super::stopwatch::Stopwatch;
use super::target::{Clustering, Target};
use super::{make, proposal};
use crate::consistency;
use crate::coordinator::Coordinator;
use crate::metrics::Cas;
use crate::shards::on_owner;
use crate::views::{self, Plans};
use crate::{Error, Outcome, QueryOptions, Result, Rows, Timeout};

/// A statement with its plan.
pub(super) type Statement = (Arc<ModifyPlan>, BoundModification);

/// All that the owning shard needs.
struct Request {
    table: Arc<Table>,
    key: PartitionKey,
    statements: Vec<BoundModification>,
    conditions: BTreeMap<Target, BoundConditions>,
    read_columns: Vec<ColumnRef>,
    /// The columns of a response with `[applied]` false, in order.
    shown: Vec<ColumnRef>,
    now_seconds: u32,
    /// Why it cannot be committed.
    unavailable: Option<Error>,
}

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(message.into()))
}

/// One conditional statement, or a batch with at least one.
pub(super) async fn execute(
    coordinator: &Coordinator,
    statements: Vec<Statement>,
    is_batch: bool,
    options: &QueryOptions<'_>,
) -> Result<Outcome> {
    let catalog = coordinator.shard().tables().catalog();
    let Some(mut request) = gather(statements, is_batch)? else { return Ok(Outcome::Void) };
    let keyspace = &request.table.schema.keyspace;
    let serial = options.serial_consistency.unwrap_or(Consistency::Serial);
    consistency::check_is_serial(serial)?;
    consistency::check_commit(options.consistency, &catalog, keyspace)?;
    consistency::check_serial(serial, &catalog, keyspace)?;
    request.unavailable =
        consistency::check_replicas(options.consistency, &catalog, keyspace).err();
    if let Some(denylist) = coordinator.denylist() {
        Box::pin(denylist.permit_proposal(&request.table, &request.key)).await?;
    }
    let token = request.key.token;
    let limits = coordinator.limits();
    let start = |timeout: &Timeout| Stopwatch::start(timeout.get(), options.consistency, "CAS");
    let watch = start(&limits.write_request_timeout);
    let turn = start(&limits.cas_contention_timeout);
    let plans = coordinator.views().on(&catalog, &request.table)?;
    let views = (plans, coordinator.memory().for_row());
    let job = move |shard: Rc<Shard>| async move {
        let mut course = Course::default();
        let decided = compare_and_set(&shard, request, (turn, watch), views, &mut course).await;
        Ok::<_, Error>((decided, course))
    };
    let decided = on_owner(coordinator.shard(), token, job).await;
    let (decided, Course { said, cas }) = decided.map_err(|error| watch.failed(error))?;
    coordinator.requests().count_cas(coordinator.shard().index(), cas);
    if let Some(guard) = options.guard {
        guard.say(said);
    }
    let rows = decided.map_err(|error| watch.failed(error))?;
    watch.check()?;
    Ok(Outcome::Rows(rows))
}

/// The rows and columns to read for statements that write to one partition.
fn gather(statements: Vec<Statement>, is_batch: bool) -> Result<Option<Request>> {
    let conditions = Conditions::of(&statements)?;
    let mut shown = Some(Vec::new());
    let mut read_columns: BTreeSet<ColumnRef> = BTreeSet::new();
    let (mut regular_rows, mut static_row) = (false, false);
    let mut bound = Vec::with_capacity(statements.len());
    for (plan, modification) in statements {
        regular_rows |= modification.updates_regular_rows;
        if modification.conditions.is_some() {
            static_row |= modification.updates_static_row;
            read_columns.extend(plan.condition_columns());
            read_columns.extend(&modification.reads);
            match &mut shown {
                _ if plan.has_existence_condition() => shown = None,
                Some(shown) => shown.extend(plan.condition_columns()),
                None => {}
            }
        }
        bound.push(modification);
    }
    let Some(first) = bound.first() else { return Ok(None) };
    let (table, now_seconds) = (first.table.clone(), first.now_seconds);
    let Some(key) = first.keys.first().cloned() else { return Ok(None) };
    if static_row {
        read_columns.extend(table.refs(ColumnKind::Static));
    }
    if regular_rows {
        read_columns.extend(table.refs(ColumnKind::Regular));
    }
    let shown = shown_columns(&table, shown, is_batch);
    Ok(Some(Request {
        table,
        key,
        statements: bound,
        conditions: conditions.0,
        read_columns: read_columns.into_iter().collect(),
        shown,
        now_seconds,
        unavailable: None,
    }))
}

/// Columns of the key, then those with conditions; all columns for `IF EXISTS` and `IF NOT EXISTS`.
fn shown_columns(
    table: &Table,
    conditions: Option<Vec<ColumnRef>>,
    is_batch: bool,
) -> Vec<ColumnRef> {
    let mut shown = Vec::new();
    if conditions.is_none() || is_batch {
        shown.extend(table.visible_refs(ColumnKind::PartitionKey));
        shown.extend(table.visible_refs(ColumnKind::Clustering));
    }
    match conditions {
        None => {
            shown.extend(table.in_select_order(ColumnKind::Static));
            shown.extend(table.in_select_order(ColumnKind::Regular));
        }
        Some(columns) => {
            for column in columns {
                if !shown.contains(&column) {
                    shown.push(column);
                }
            }
        }
    }
    shown
}

/// The conditions of each row, those of the partition first.
#[derive(Default)]
pub(super) struct Conditions(BTreeMap<Target, BoundConditions>);

impl Conditions {
    pub(super) fn of(statements: &[Statement]) -> Result<Conditions> {
        let mut conditions = Conditions::default();
        for (_, modification) in statements {
            if let Some(found) = &modification.conditions {
                conditions.add(found, modification)?;
            }
        }
        Ok(conditions)
    }

    fn add(&mut self, found: &BoundConditions, modification: &BoundModification) -> Result<()> {
        let row = Target::of(modification);
        let BoundConditions::Columns(columns) = found else {
            return self.add_one(row, found.clone());
        };
        // Static columns are conditions on the partition, whatever row the statement means.
        for is_static in [false, true] {
            let of_kind =
                columns.iter().filter(|c| (c.column.kind == ColumnKind::Static) == is_static);
            let part: Vec<_> = of_kind.cloned().collect();
            if !part.is_empty() {
                let target = if is_static { Target::Static } else { row.clone() };
                self.add_one(target, BoundConditions::Columns(part))?;
            }
        }
        Ok(())
    }

    fn add_one(&mut self, target: Target, new: BoundConditions) -> Result<()> {
        match self.0.entry(target) {
            Entry::Occupied(mut old) => join(old.get_mut(), new),
            Entry::Vacant(place) => {
                place.insert(new);
                Ok(())
            }
        }
    }
}

/// Adds conditions to those that their row has already.
fn join(old: &mut BoundConditions, new: BoundConditions) -> Result<()> {
    use BoundConditions::{Columns, Exists, NotExists};
    match (old, new) {
        (Columns(old), Columns(new)) => old.extend(new),
        (Exists, Exists) | (NotExists, NotExists) => {}
        (_, Columns(_)) | (Columns(_), NotExists) => {
            return refuse("Cannot mix IF conditions and IF NOT EXISTS for the same row");
        }
        (Columns(_), Exists) => {
            return refuse("Cannot mix IF conditions and IF EXISTS for the same row");
        }
        _ => {
            return refuse("Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row");
        }
    }
    Ok(())
}

/// What happened on the way to a decision.
#[derive(Default)]
struct Course {
    said: Vec<Said>,
    cas: Cas,
}

/// `turn` bounds the wait for other writes to the partition, `watch` all of it.
async fn compare_and_set(
    shard: &Rc<Shard>,
    request: Request,
    (turn, watch): (Stopwatch, Stopwatch),
    (plans, most): (Plans, u64),
    course: &mut Course,
) -> Result<Rows> {
    let lock = turn.lock(shard, request.table.id, &request.key).await?;
    course.cas.contended = lock.has_waited();
    if course.cas.contended {
        shard.sample(request.table.id, Sampler::CasContentions, &request.key.bytes, 1);
    }
    let targets = request.conditions.keys();
    let rows: Vec<Vec<u8>> = targets.filter_map(|target| target.row().cloned()).collect();
    let unread = unread(&request);
    let wanted =
        Wanted { rows: (!rows.is_empty()).then_some(rows), columns: request.read_columns.clone() };
    let (table, key) = (&request.table, &request.key);
    let Stored { partition: current, mut newest } =
        current::read(shard, table, key, &wanted, request.now_seconds).await?;
    let (current, mut pace) = (Arc::new(current), Pace::default());
    for (target, conditions) in &request.conditions {
        if pace.step() {
            pace.pause().await;
            watch.check()?;
        }
        if !holds(target, conditions, &current)? {
            course.cas.is_refused = true;
            return Ok(refused(&request, &current));
        }
    }
    if !unread.is_empty() {
        let wanted = Wanted { rows: Some(unread), columns: Vec::new() };
        let written = current::read(shard, table, key, &wanted, request.now_seconds).await?;
        newest = newest.max(written.newest);
    }
    // Later than what it was compared with and replaces, too: a clock that went back or a client with timestamps of its own would
    // otherwise leave a write that is answered with [applied] but never seen. The shard's source does not learn of it: one
    // timestamp of the far future must not move those of all other partitions. Cassandra's ballots heed only other conditional writes.
    let timestamp = shard.timestamps().next(unix_micros()).max(newest.saturating_add(1));
    let mut mutations = Vec::with_capacity(request.statements.len());
    for statement in &request.statements {
        if pace.step() {
            pace.pause().await;
            watch.check()?;
        }
        let mut statement = statement.clone();
        statement.timestamp = timestamp;
        course.said.append(&mut statement.said);
        mutations.push(make::made_of(&statement, key, &current, CounterShard::NONE).await?);
    }
    for statement in &request.statements {
        course.said.extend(statement.terms.said.iter().cloned());
        if let Some(refused) = &statement.terms.refused {
            return Err(refused.clone().into());
        }
    }
    let proposed = proposal::of(mutations, timestamp).await?;
    if proposed.is_empty() {
        return Ok(applied(table));
    }
    // Cassandra has accepted the proposal by now, and the next conditional write or serial read of the partition commits it. No
    // proposal outlives its statement here, so nothing is written.
    if let Some(error) = request.unavailable {
        return Err(error);
    }
    views::apply(shard, (&plans, most), key, proposed).await?;
    Ok(applied(table))
}

/// The rows that the statements write and the conditions do not read. What ranges and whole partitions delete is not read: their
/// timestamp is later than the rows that were compared only.
fn unread(request: &Request) -> Vec<Vec<u8>> {
    let written: BTreeSet<Target> = request.statements.iter().map(Target::of).collect();
    let unread = written.iter().filter(|target| !request.conditions.contains_key(target));
    unread.filter_map(|target| target.row().cloned()).collect()
}

fn holds(
    target: &Target,
    conditions: &BoundConditions,
    current: &CurrentPartition,
) -> Result<bool> {
    let row = match target {
        Target::Static => current.static_row.as_ref(),
        Target::Row(Clustering { layout, serialized }) => {
            current.row(&layout.clusterings, serialized)
        }
    };
    match conditions {
        BoundConditions::Exists => Ok(row.is_some()),
        BoundConditions::NotExists => Ok(row.is_none()),
        BoundConditions::Columns(columns) => {
            for condition in columns {
                if !condition.applies(row)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn push(content: &mut Vec<u8>, value: Option<&[u8]>) {
    let length = value.map_or(-1, |value| value.len() as i32);
    content.extend_from_slice(&length.to_be_bytes());
    content.extend_from_slice(value.unwrap_or_default());
}

fn applied(table: &Table) -> Rows {
    let mut content = Vec::new();
    push(&mut content, Some(&[1]));
    let columns = vec![ColumnSpec::of(&table.schema, "[applied]", CqlType::Boolean)].into();
    Rows { columns, count: 1, content, ..Rows::default() }
}

/// `[applied]` false, and the rows that were compared.
fn refused(request: &Request, current: &CurrentPartition) -> Rows {
    let table = &request.table;
    let mut columns = vec![ColumnSpec::of(&table.schema, "[applied]", CqlType::Boolean)];
    let mut content = Vec::new();
    let mut count = 0;
    // Without a row there may still be static content.
    let none = [None];
    let rows: Vec<_> = match current.rows() {
        [] if current.static_row.is_some() => none.to_vec(),
        rows => rows.iter().map(Some).collect(),
    };
    if rows.is_empty() {
        push(&mut content, Some(&[0]));
        return Rows { columns: columns.into(), count: 1, content, ..Rows::default() };
    }
    let defs = request.shown.iter().filter_map(|column| table.column(*column));
    columns.extend(
        defs.map(|def| {
            ColumnSpec::of(&table.schema, def.name.as_str(), def.cql_type.base().clone())
        }),
    );
    let components = split_key(&request.key.bytes, table.schema.partition_key.len());
    for row in rows {
        push(&mut content, Some(&[0]));
        count += 1;
        let clustering: Vec<ClusteringValue<'_>> = match row {
            Some(row) => {
                let columns = table.schema.clustering.len();
                table.layout.clusterings.values(&row.clustering, columns).collect()
            }
            None => Vec::new(),
        };
        for column in &request.shown {
            let at = usize::from(column.index);
            let stored = match column.kind {
                ColumnKind::Static => current.static_row.as_ref(),
                _ => row,
            };
            match column.kind {
                ColumnKind::PartitionKey => {
                    push(&mut content, components.as_ref().and_then(|c| c.get(at).copied()));
                }
                ColumnKind::Clustering => match clustering.get(at) {
                    Some(ClusteringValue::Bytes(bytes)) => push(&mut content, Some(bytes)),
                    _ => push(&mut content, None),
                },
                ColumnKind::Static | ColumnKind::Regular => {
                    let cql_type = table.column(*column).map(|def| def.cql_type.base());
                    let value =
                        stored.zip(cql_type).and_then(|(row, t)| row.value(column.index, t));
                    push(&mut content, value.as_deref());
                }
            }
        }
    }
    Rows { columns: columns.into(), count, content, ..Rows::default() }
}
