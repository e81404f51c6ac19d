//! The client's work: bursts of writes, reads, pages, changes of the table; and the reading of everything after a start.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use halcyon_io::{Random, clock};
use halcyon_model::request::BatchKind;
use halcyon_model::token::murmur3_token;

use super::derived;
use super::domain::KEYS;
use super::generate;
use super::model::{Cells, Mutation, Partition};
use super::query::{Select, What, show};
use super::table::{Certainty, Derived, KeptPage, Shape, Table, TableChange};
use crate::session::{Reply, Request, Session};

const BURST_MAX: u64 = 6;
const BATCH_MAX: u64 = 4;
/// More pages than a table can have.
const PAGES_MAX: usize = 10_000;
const PAUSE_MAX_MS: u64 = 30;

type Shared = Rc<RefCell<Table>>;

/// Works for a number of rounds, or until the table cannot be used before the next start.
pub(crate) async fn work(mut session: Session, table: Shared, rounds: u64) {
    let mut random = session.world().random();
    for _ in 0..rounds {
        if table.borrow().unsettled.is_some() {
            return;
        }
        if !table.borrow().exists {
            change(&mut session, &table, TableChange::Create).await;
            continue;
        }
        match random.below(100) {
            0..55 => write(&mut session, &table, &mut random).await,
            55..84 => {
                let select = Select::generate(&mut random);
                let page_size = random.chance(1, 3).then(|| 1 + random.below(4) as i32);
                read(&mut session, &table, &select, page_size, &mut random).await;
            }
            84 => keep_page(&mut session, &table, &mut random).await,
            85..88 => compact(&mut session, &table).await,
            88..91 => {
                let next = next_change(&table, &mut random);
                change(&mut session, &table, next).await;
            }
            _ => clock::sleep(Duration::from_millis(random.below(PAUSE_MAX_MS))).await,
        }
    }
}

fn next_change(table: &Shared, random: &mut Random) -> TableChange {
    let mut table = table.borrow_mut();
    match random.below(6) {
        2 => TableChange::Truncate,
        0 | 1 => TableChange::Options(options(random, table.purges)),
        _ if table.derived.has_view && table.shape.has_extra => {
            TableChange::Options(options(random, table.purges))
        }
        3 if random.chance(1, 2) && !table.derived.has_view => TableChange::Drop,
        _ if table.shape.has_extra => TableChange::DropExtra(table.whole_millisecond()),
        _ => TableChange::AddExtra,
    }
}

fn pick<'a>(random: &mut Random, among: &[&'a str]) -> &'a str {
    among.get(random.below(among.len() as u64) as usize).copied().unwrap_or_default()
}

/// A strategy with small sizes, a compressor, a cache, a grace.
fn options(random: &mut Random, purges: bool) -> String {
    let compaction = pick(
        random,
        &[
            "'class': 'SizeTieredCompactionStrategy', 'min_threshold': '2'",
            "'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '1'",
            "'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'MINUTES', 'compaction_window_size': '1'",
            "'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'T2'",
            "'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L4'",
        ],
    );
    let compression = pick(
        random,
        &[
            "'enabled': 'false'",
            "'class': 'LZ4Compressor', 'chunk_length_in_kb': '4'",
            "'class': 'ZstdCompressor', 'chunk_length_in_kb': '16'",
        ],
    );
    let caching = pick(random, &["NONE", "ALL", "3"]);
    // A table with a view must have some.
    let grace = if purges { 1 + random.below(30) } else { 864_000 };
    format!(
        "compaction = {{{compaction}}} AND compression = {{{compression}}} AND gc_grace_seconds = {grace} \
         AND caching = {{'keys': 'ALL', 'rows_per_partition': '{caching}'}}"
    )
}

/// A new table of the run.
pub(crate) fn create(name: String, random: &mut Random) -> Table {
    let derived = Derived::generate(random);
    // An entry of a view that has ended keeps cells. If it comes back when the base's tombstones are purged, it shows them, as in
    // Cassandra.
    let purges = random.chance(1, 2) && !derived.has_view;
    let options = options(random, purges);
    let descending = [random.chance(1, 3), random.chance(1, 3)];
    let shape = Shape { name, descending, has_extra: false };
    Table::new(shape, options, purges, derived)
}

fn statement_of(table: &Table, change: &TableChange) -> String {
    let name = &table.shape.name;
    match change {
        TableChange::Create => {
            let [a, b] =
                table.shape.descending.map(|descending| if descending { "DESC" } else { "ASC" });
            format!(
                "CREATE TABLE {name} (pk int, a int, b int, s int static, v int, w text, m map<int, int>, e set<int>, l list<int>, \
                 u ks.pair, sm map<int, int> static, PRIMARY KEY (pk, a, b)) \
                 WITH CLUSTERING ORDER BY (a {a}, b {b}) AND {}",
                table.options
            )
        }
        TableChange::Drop => format!("DROP TABLE {name}"),
        TableChange::Truncate => format!("TRUNCATE {name}"),
        TableChange::AddExtra => format!("ALTER TABLE {name} ADD x int"),
        TableChange::DropExtra(at) => format!("ALTER TABLE {name} DROP x USING TIMESTAMP {at}"),
        TableChange::Options(options) => format!("ALTER TABLE {name} WITH {options}"),
    }
}

async fn change(session: &mut Session, table: &Shared, change: TableChange) {
    let text = statement_of(&table.borrow(), &change);
    table.borrow_mut().unsettled = Some(change.clone());
    let reply = session.ask(Request::statement(text)).await;
    if reply.is_done() {
        table.borrow_mut().change(&change);
    }
    if reply.is_done() || matches!(reply, Reply::NotSent) {
        table.borrow_mut().unsettled = None;
    }
}

/// Starts a major compaction, if none is under way.
async fn compact(session: &mut Session, table: &Shared) {
    let name = table.borrow().shape.name.clone();
    let Some((keyspace, name)) = name.split_once('.') else { return };
    let running = format!(
        "SELECT state FROM halcyon_views.major_compactions WHERE keyspace_name = '{keyspace}' AND table_name = '{name}'"
    );
    let Some(page) = session.ask(Request::statement(running)).await.into_page() else { return };
    if page.rows.iter().flatten().any(|state| state.as_deref() == Some(b"running")) {
        return;
    }
    let insert = "INSERT INTO halcyon_views.major_compactions (keyspace_name, table_name)";
    session.ask(Request::statement(format!("{insert} VALUES ('{keyspace}', '{name}')"))).await;
}

/// Several statements and batches at once. No two of them change the same partition, so that reads are not needed in between.
async fn write(session: &mut Session, table: &Shared, random: &mut Random) {
    let world = session.world().clone();
    let _held = world.hold_clock().await;
    let now = world.seconds();
    let mut free: Vec<i32> =
        (0..KEYS as i32).filter(|key| table.borrow().is_writable(*key)).collect();
    let mut sent = Vec::new();
    for _ in 0..=random.below(BURST_MAX) {
        if free.is_empty() {
            break;
        }
        let table = &mut *table.borrow_mut();
        sent.push(if random.chance(1, 4) {
            batch(table, &mut free, random, now)
        } else {
            let key = free.swap_remove(random.below(free.len() as u64) as usize);
            let statement = generate::statement(random, table, key, now);
            let operations = vec![table.send(vec![(key, vec![statement.mutation])], false)];
            let request = Request::statement(statement.text);
            (request.prepared(vec![Some(key)], random.chance(1, 3)), operations)
        });
    }
    let (requests, operations): (Vec<Request>, Vec<Vec<u64>>) = sent.into_iter().unzip();
    let replies = session.ask_all(&requests).await;
    for (reply, operations) in replies.iter().zip(operations) {
        let certainty = match reply {
            Reply::NotSent => Certainty::JobLost,
            reply if reply.is_done() => Certainty::Done,
            _ => Certainty::Maybe,
        };
        for operation in operations {
            table.borrow_mut().decide(operation, certainty, world.now());
        }
    }
}

/// A logged batch is one operation; of an unlogged one, each partition is.
fn batch(
    table: &mut Table,
    free: &mut Vec<i32>,
    random: &mut Random,
    now: i64,
) -> (Request, Vec<u64>) {
    let mut keys = Vec::new();
    for _ in 0..=random.below(3) {
        if !free.is_empty() {
            keys.push(free.swap_remove(random.below(free.len() as u64) as usize));
        }
    }
    let mut texts = Vec::new();
    let mut bound = Vec::new();
    let mut changes: BTreeMap<i32, Vec<Mutation>> = BTreeMap::new();
    for n in 0..keys.len() as u64 + random.below(BATCH_MAX) {
        let Some(key) = keys.get((n % keys.len() as u64) as usize) else { break };
        let statement = generate::statement(random, table, *key, now);
        texts.push(statement.text);
        bound.push(Some(*key));
        changes.entry(statement.key).or_default().push(statement.mutation);
    }
    let prepared = random.chance(1, 3);
    if random.chance(2, 3) {
        let operation = table.send(changes.into_iter().collect(), true);
        let request = Request::batch(BatchKind::Logged, texts);
        return (request.prepared(bound, prepared), vec![operation]);
    }
    let send = |(key, mutations)| table.send(vec![(key, mutations)], false);
    let operations = changes.into_iter().map(send).collect();
    (Request::batch(BatchKind::Unlogged, texts).prepared(bound, prepared), operations)
}

/// All pages of a SELECT; `None` if the node gave up, or may have been unable to answer.
async fn pages(
    session: &mut Session,
    select: &Select,
    text: &str,
    page_size: Option<i32>,
    random: &mut Random,
) -> Option<Vec<Cells>> {
    let key = select.keys.first().copied().filter(|_| select.keys.len() == 1);
    let request = Request::statement(text.to_owned()).prepared(vec![key], random.chance(1, 3));
    pages_from(session, select, Request { page_size, ..request }, random).await
}

async fn pages_from(
    session: &mut Session,
    select: &Select,
    mut request: Request,
    random: &mut Random,
) -> Option<Vec<Cells>> {
    let (page_size, text) = (request.page_size, request.statements.join(" "));
    let mut rows = Vec::new();
    for _ in 0..PAGES_MAX {
        let page = session.ask(request.clone()).await.into_page()?;
        if page_size.is_some_and(|size| page.rows.len() > size as usize) {
            session.world().fail(format!("a page has more than {page_size:?} rows: {text}"));
        }
        rows.extend(page.rows.into_iter().map(|row| select.comparable(row)));
        request.paging_state = page.paging_state;
        if request.paging_state.is_none() {
            return Some(rows);
        }
        session.world().count("pages continued");
        if random.chance(1, 4) {
            clock::sleep(Duration::from_millis(random.below(PAUSE_MAX_MS))).await;
        }
    }
    session.world().fail(format!("paging does not end: {text}"));
    None
}

/// Begins a scan of all, and leaves it to the next start.
async fn keep_page(session: &mut Session, table: &Shared, random: &mut Random) {
    let text = Select::ALL.text(&table.borrow().shape);
    let page_size = Some(1 + random.below(10) as i32);
    let request = Request { page_size, ..Request::statement(text.clone()) };
    let Some(page) = session.ask(request).await.into_page() else { return };
    let (Some(state), Some(last_row)) = (page.paging_state, page.rows.last().cloned()) else {
        return;
    };
    table.borrow_mut().kept = Some(KeptPage { text, state, last_row });
}

/// Continues a scan that was begun before the start. Nothing is written meanwhile: it must find what lies behind its last row.
async fn resume(
    session: &mut Session,
    table: &Shared,
    (rows, now): (&[Cells], i64),
    random: &mut Random,
) {
    let shape = table.borrow().shape.clone();
    let Some(kept) = table.borrow_mut().kept.take() else { return };
    let last = Select::sort_key(&shape, &kept.last_row);
    // After a static row alone, or another shape, it cannot be said what comes next.
    if last.1.is_none() || kept.text != Select::ALL.text(&shape) {
        return;
    }
    let from = Request {
        page_size: Some(1 + random.below(10) as i32),
        paging_state: Some(kept.state),
        ..Request::statement(kept.text.clone())
    };
    let Some(rest) = pages_from(session, &Select::ALL, from, random).await else { return };
    let expected: Vec<Cells> =
        rows.iter().filter(|row| Select::sort_key(&shape, row) > last).cloned().collect();
    if session.world().seconds() != now {
        return;
    }
    session.world().count("scans continued after a start");
    if rest != expected {
        session.world().fail(format!(
            "{} continued after the start, behind\n{}\n  is\n{}\n  and should be\n{}",
            kept.text,
            lines(&[kept.last_row]),
            lines(&rest),
            lines(&expected)
        ));
    }
}

async fn read(
    session: &mut Session,
    table: &Shared,
    select: &Select,
    page_size: Option<i32>,
    random: &mut Random,
) {
    let text = select.text(&table.borrow().shape);
    let before = session.world().seconds();
    let Some(rows) = pages(session, select, &text, page_size, random).await else { return };
    if session.world().seconds() != before {
        // A row may have expired between two pages.
        return;
    }
    let world = session.world().clone();
    let table = &mut *table.borrow_mut();
    world.count(match select.what {
        What::Rows => "reads of rows",
        What::Partitions => "reads of partitions",
        What::Groups => "reads of groups",
        What::Totals => "reads of totals",
    });
    let seen = match (select.what, select.keys.as_slice()) {
        (What::Totals, [key]) => Some(BTreeMap::from([(*key, rows.clone())])),
        _ => by_partition(&rows),
    };
    let Some(seen) = seen else {
        return world
            .fail(format!("a partition comes twice in the answer to {text}\n{}", lines(&rows)));
    };
    world.count("answers checked");
    if select.keys.is_empty() && !in_token_order(&rows) {
        world.fail(format!("not in the order of tokens: {text}\n{}", lines(&rows)));
    }
    let keys: Vec<i32> =
        if select.keys.is_empty() { table.keys().collect() } else { select.keys.clone() };
    for key in keys {
        let of_key = seen.get(&key).cloned().unwrap_or_default();
        if !observe(table, select, key, (before, world.now()), &of_key) {
            let expected = expected(table, select, key, before);
            let got = lines(&of_key);
            return world
                .fail(format!("{text}\n  partition {key} is\n{got}\n  and should be\n{expected}"));
        }
    }
}

fn observe(
    table: &mut Table,
    select: &Select,
    key: i32,
    now: (i64, Duration),
    seen: &[Cells],
) -> bool {
    let shape = table.shape.clone();
    table.observe(key, now, |partition| select.rows(&shape, key, partition) == seen)
}

/// Without, and with, the uncertain changes.
fn expected(table: &Table, select: &Select, key: i32, now: i64) -> String {
    let maybes = table.maybes(key);
    let shape = table.shape.clone();
    let rows = |set| lines(&select.rows(&shape, key, &table.partition(key, &maybes, set, now)));
    match maybes.len() {
        0 => rows(0),
        count => {
            let all = rows((1 << count) - 1);
            format!("{}\n  or, with all of {count} unanswered changes,\n{all}", rows(0))
        }
    }
}

fn lines(rows: &[Cells]) -> String {
    let shown: Vec<String> = rows.iter().map(|row| format!("    {}", show(row))).collect();
    if shown.is_empty() { "    (nothing)".to_owned() } else { shown.join("\n") }
}

fn key_of(row: &Cells) -> i32 {
    let bytes = row.first().cloned().flatten().unwrap_or_default();
    bytes.try_into().map_or(i32::MIN, i32::from_be_bytes)
}

/// `None` if the rows of one partition are not together.
fn by_partition(rows: &[Cells]) -> Option<BTreeMap<i32, Vec<Cells>>> {
    let mut partitions = BTreeMap::new();
    for chunk in rows.chunk_by(|a, b| key_of(a) == key_of(b)) {
        if partitions.insert(key_of(chunk.first()?), chunk.to_vec()).is_some() {
            return None;
        }
    }
    Some(partitions)
}

fn in_token_order(rows: &[Cells]) -> bool {
    rows.is_sorted_by_key(|row| murmur3_token(&key_of(row).to_be_bytes()))
}

/// After a start: what became of the change of the table that was under way, and of every uncertain change of rows.
pub(crate) async fn settle(session: &mut Session, table: &Shared) {
    settle_rows(session, table).await;
    let (exists, shape, derived) = {
        let table = table.borrow();
        (table.exists, table.shape.clone(), table.derived)
    };
    if exists && session.world().failure().is_none() {
        derived::check(session, &shape, derived).await;
    }
}

async fn settle_rows(session: &mut Session, table: &Shared) {
    let mut tries = 0;
    while !settle_schema(session, table).await {
        // A connection may be reset on the way, but not that often.
        tries += 1;
        if tries == 100 {
            // A policy may have stopped the node for a fault: the next start is asked.
            if !session.world().is_disturbed() {
                session.world().fail("the schema cannot be read after the start".to_owned());
            }
            return;
        }
    }
    if !table.borrow().exists {
        return;
    }
    let world = session.world().clone();
    let mut random = world.random();
    let text = Select::ALL.text(&table.borrow().shape);
    let now = world.seconds();
    let pages = pages(session, &Select::ALL, &text, Some(50), &mut random).await;
    let Some(rows) = pages else { return };
    let Some(seen) = by_partition(&rows).filter(|_| in_token_order(&rows)) else {
        return world.fail(format!("not in the order of tokens: {text}\n{}", lines(&rows)));
    };
    resume(session, table, (&rows, now), &mut random).await;
    if world.seconds() != now {
        // A row may have expired between two pages: ask again.
        return Box::pin(settle_rows(session, table)).await;
    }
    let table = &mut *table.borrow_mut();
    if let Some(unknown) = seen.keys().find(|key| !table.keys().any(|known| known == **key)) {
        return world
            .fail(format!("a partition that no client wrote: {unknown} in {}", table.shape.name));
    }
    let shape = table.shape.clone();
    let is_seen = |key: i32, partition: &Partition| {
        let rows = seen.get(&key).map(Vec::as_slice).unwrap_or_default();
        Select::ALL.rows(&shape, key, partition) == rows
    };
    if table.unsettled == Some(TableChange::Truncate) && table.settle(now, is_seen).is_err() {
        table.change(&TableChange::Truncate);
    }
    table.unsettled = None;
    world.count("answers checked");
    if let Err(key) = table.settle(now, is_seen) {
        let got = lines(seen.get(&key).map(Vec::as_slice).unwrap_or_default());
        let expected = expected(table, &Select::ALL, key, now);
        let name = &table.shape.name;
        world.fail(format!(
            "after the start, partition {key} of {name} is\n{got}\n  and should be\n{expected}\n  and the parts of a logged batch \
             must all be there, or none"
        ));
    }
}

/// Asks the schema whether an unanswered change of it was made; false: it did not answer.
async fn settle_schema(session: &mut Session, table: &Shared) -> bool {
    let name = table.borrow().shape.name.clone();
    let Some((keyspace, name)) = name.split_once('.') else { return true };
    let of = format!("WHERE keyspace_name = '{keyspace}' AND table_name = '{name}'");
    let tables = format!("SELECT table_name FROM system_schema.tables {of}");
    let columns =
        format!("SELECT column_name FROM system_schema.columns {of} AND column_name = 'x'");
    let tables = session.ask(Request::statement(tables)).await.into_page();
    let columns = session.ask(Request::statement(columns)).await.into_page();
    let (Some(tables), Some(columns)) = (tables, columns) else { return false };
    let (exists, has_extra) = (!tables.rows.is_empty(), !columns.rows.is_empty());
    let table = &mut *table.borrow_mut();
    let before = (table.exists, table.shape.has_extra);
    let made = match &table.unsettled {
        Some(TableChange::Create) => exists,
        Some(TableChange::Drop) => !exists,
        Some(TableChange::AddExtra) => has_extra,
        Some(TableChange::DropExtra(_)) => !has_extra,
        Some(TableChange::Truncate | TableChange::Options(_)) | None => false,
    };
    if made && let Some(change) = table.unsettled.take() {
        table.change(&change);
    }
    if table.unsettled != Some(TableChange::Truncate) {
        table.unsettled = None;
    }
    if exists != table.exists || (exists && has_extra != table.shape.has_extra) {
        session.world().fail(format!(
            "{keyspace}.{name}: (exists, has column x) was {before:?} before the crash and is ({exists}, {has_extra}) after the start"
        ));
    }
    true
}
