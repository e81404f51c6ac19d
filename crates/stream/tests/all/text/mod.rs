//! Streams as text, and text as streams, so that tests are data.
//!
//! ```text
//! partition k [del T/L]                      T: timestamp, L: local deletion time
//! static cell*
//! row 3 [live T[/L:TTL]] [del T/L] [shadow T/L] cell*
//! [3 T/L      (3 T/L      3) T/L      3] T/L  range tombstone bounds: from 3, after 3, to before 3, to 3
//! 3)[ T/L T/L             3]( T/L T/L         boundaries: the deletion that closes, the one that opens
//! cell := a=value@T   a=value@T/L:TTL   a=!@T/L   m.path=…   m=!!@T/L (whole column)   n=A.clock.count+B.clock.count@T
//! ```
//! The table has a clustering column of type int, a static column s, simple columns a and b, a counter n and a map m.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use halcyon_model::clustering::Position;
use halcyon_model::counter::CounterContext;
use halcyon_model::token::{murmur3_hash, token_of_hash};
use halcyon_model::{
    BoundKind, Clusterings, CqlType, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL, Partitioner,
};
use halcyon_stream::{
    Cell, Column, ColumnShape, ComplexDeletion, Fragment, FragmentStream, Layout, Marker,
    MergeError, PartitionKey, PartitionStart, Row, RowBuf, RowDeletion, Span, Statics, Validator,
};

/// Runs a future that never waits.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a stream in memory does not wait"),
    }
}

pub(crate) fn layout() -> Arc<Layout> {
    let column = |name: &str, cql_type| Column::new(name.into(), cql_type);
    let map = CqlType::Map(Box::new(CqlType::Text), Box::new(CqlType::Text));
    let types = vec![CqlType::Int];
    Arc::new(Layout {
        partitioner: Partitioner::Murmur3,
        key_type: CqlType::Text,
        clusterings: Clusterings::new(&types),
        clustering_types: types,
        statics: vec![column("s", CqlType::Text)],
        regulars: vec![
            column("a", CqlType::Text),
            column("b", CqlType::Text),
            column("n", CqlType::Counter),
            column("m", map),
        ],
    })
}

pub(crate) fn key(name: &str) -> PartitionKey {
    let hashes = murmur3_hash(name.as_bytes());
    PartitionKey { token: token_of_hash(hashes.0).0, hashes, bytes: name.into() }
}

enum Item {
    Start(PartitionKey, DeletionTime),
    Static(RowBuf),
    Row(RowBuf),
    Marker(BoundKind, Vec<u8>, Option<DeletionTime>, Option<DeletionTime>),
    End,
}

/// A stream that was parsed from text.
pub(crate) struct TextStream {
    items: Vec<Item>,
    at: usize,
}

impl TextStream {
    /// Partitions may come in any order; they are sorted.
    pub(crate) fn parse(text: &str) -> TextStream {
        let layout = layout();
        let mut partitions: Vec<(PartitionKey, Vec<Item>)> = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words[0] == "partition" {
                let deletion =
                    if words.len() > 2 { deletion(words[3]) } else { DeletionTime::LIVE };
                partitions.push((key(words[1]), vec![Item::Start(key(words[1]), deletion)]));
                continue;
            }
            let items = &mut partitions.last_mut().expect("a partition first").1;
            items.push(match words[0] {
                "static" => Item::Static(row(&layout, Statics::Static, None, &words[1..])),
                "row" => {
                    let clustering = words[1].parse().expect("clustering");
                    Item::Row(row(&layout, Statics::Regular, Some(clustering), &words[2..]))
                }
                bound => marker(bound, &words[1..]),
            });
        }
        partitions.sort_by(|a, b| layout.compare_keys(&a.0, &b.0));
        let mut items = Vec::new();
        for (_, partition) in partitions {
            items.extend(partition);
            items.push(Item::End);
        }
        TextStream { items, at: 0 }
    }
}

impl FragmentStream for TextStream {
    type Error = MergeError;

    async fn advance(&mut self) -> Result<bool, MergeError> {
        self.at = (self.at + 1).min(self.items.len() + 1);
        Ok(self.at <= self.items.len())
    }

    fn fragment(&self) -> Fragment<'_> {
        match self.at.checked_sub(1).and_then(|at| self.items.get(at)) {
            Some(Item::Start(key, deletion)) => {
                Fragment::Start(PartitionStart { key, deletion: *deletion })
            }
            Some(Item::Static(row)) => Fragment::Static(row.row()),
            Some(Item::Row(row)) => Fragment::Row(row.row()),
            Some(Item::Marker(kind, serialized, close, open)) => Fragment::Marker(Marker {
                position: Position { kind: *kind, count: 1, serialized },
                close: *close,
                open: *open,
            }),
            Some(Item::End) | None => Fragment::End,
        }
    }
}

fn clustering_bytes(value: i32) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend(value.to_be_bytes());
    bytes
}

fn deletion(text: &str) -> DeletionTime {
    let (timestamp, local) = text.split_once('/').expect("T/L");
    DeletionTime {
        marked_for_delete_at: timestamp.parse().expect("T"),
        local_deletion_time: local.parse().expect("L"),
    }
}

fn marker(bound: &str, rest: &[&str]) -> Item {
    let digits: String = bound.chars().filter(|c| c.is_ascii_digit() || *c == '-').collect();
    let shape: String = bound.chars().filter(|c| !digits.contains(*c)).collect();
    let first = Some(deletion(rest[0]));
    let (kind, close, open) = match shape.as_str() {
        "[" => (BoundKind::InclStart, None, first),
        "(" => (BoundKind::ExclStart, None, first),
        ")" => (BoundKind::ExclEnd, first, None),
        "]" => (BoundKind::InclEnd, first, None),
        ")[" => (BoundKind::ExclEndInclStart, first, Some(deletion(rest[1]))),
        "](" => (BoundKind::InclEndExclStart, first, Some(deletion(rest[1]))),
        _ => panic!("no bound: {bound}"),
    };
    Item::Marker(kind, clustering_bytes(digits.parse().expect("clustering")), close, open)
}

fn row(layout: &Layout, which: Statics, clustering: Option<i32>, words: &[&str]) -> RowBuf {
    let mut row = RowBuf::new();
    let bytes = clustering.map(clustering_bytes).unwrap_or_default();
    row.parts.clustering = row.store(&bytes);
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "live" => row.parts.liveness = liveness(words.next().expect("T")),
            "del" | "shadow" => {
                let time = deletion(words.next().expect("T/L"));
                row.parts.deletion = RowDeletion { time, shadowable: word == "shadow" };
            }
            cell => add_cell(layout.columns(which), cell, &mut row),
        }
    }
    row
}

fn liveness(text: &str) -> Liveness {
    let (timestamp, ttl, local) = times(text);
    Liveness { timestamp, ttl, local_expiration_time: local }
}

/// `T`, `T/L` or `T/L:TTL`.
fn times(text: &str) -> (i64, i32, u32) {
    let (timestamp, rest) = text.split_once('/').unwrap_or((text, ""));
    let (local, ttl) = rest.split_once(':').unwrap_or((rest, ""));
    let local = if local.is_empty() { NO_DELETION_TIME } else { local.parse().expect("L") };
    let ttl = if ttl.is_empty() { NO_TTL } else { ttl.parse().expect("TTL") };
    (timestamp.parse().expect("T"), ttl, local)
}

fn add_cell(columns: &[Column], text: &str, row: &mut RowBuf) {
    let (name, rest) = text.split_once('=').expect("column=value");
    let (value, at) = rest.rsplit_once('@').expect("value@T");
    let (name, path) = name.split_once('.').unwrap_or((name, ""));
    let column = columns.iter().position(|c| c.name == name.as_bytes()).expect("column");
    let is_counter = columns[column].shape == ColumnShape::Counter;
    let column = column as u16;
    if value == "!!" {
        row.parts.complex_deletions.push(ComplexDeletion { column, time: deletion(at) });
        return;
    }
    let (timestamp, ttl, local_deletion_time) = times(at);
    let path = row.store(path.as_bytes());
    let value = match value {
        "!" => Span::default(),
        context if is_counter => row.store(&counter(context)),
        other => row.store(other.as_bytes()),
    };
    row.parts.cells.push(Cell { column, ttl, timestamp, local_deletion_time, path, value });
}

/// `A.clock.count+B.clock.count`, all global shards.
fn counter(text: &str) -> Vec<u8> {
    let shards: Vec<&str> = text.split('+').collect();
    let mut context = (shards.len() as i16).to_be_bytes().to_vec();
    for i in 0..shards.len() {
        context.extend((i as u16 | 0x8000).to_be_bytes());
    }
    for shard in shards {
        let parts: Vec<&str> = shard.split('.').collect();
        context.extend([parts[0].as_bytes()[0]; 16]);
        for number in &parts[1..] {
            context.extend(number.parse::<i64>().expect("number").to_be_bytes());
        }
    }
    context
}

/// The text of a stream, after a check of its grammar.
pub(crate) fn spell<S: FragmentStream>(mut stream: S) -> Result<String, S::Error> {
    let layout = layout();
    let mut validator = Validator::new(layout.clone());
    let mut text = String::new();
    while now(stream.advance())? {
        let fragment = stream.fragment();
        if let Err(e) = validator.check(fragment) {
            panic!("{e} after:\n{text}");
        }
        let line = match fragment {
            Fragment::Start(start) => {
                let name = String::from_utf8_lossy(&start.key.bytes).into_owned();
                format!("partition {name}{}", spell_deletion(" del ", Some(start.deletion)))
            }
            Fragment::Static(row) => format!("static{}", spell_row(&layout, Statics::Static, row)),
            Fragment::Row(row) => {
                let clustering = spell_clustering(row.clustering);
                format!("row {clustering}{}", spell_row(&layout, Statics::Regular, row))
            }
            Fragment::Marker(marker) => spell_marker(marker),
            Fragment::End => continue,
        };
        text.push_str(&line);
        text.push('\n');
    }
    assert!(!now(stream.advance())?, "the end is the end");
    Ok(text)
}

fn spell_clustering(bytes: &[u8]) -> i32 {
    i32::from_be_bytes(bytes[1..].try_into().expect("an int"))
}

fn spell_deletion(label: &str, deletion: Option<DeletionTime>) -> String {
    let Some(deletion) = deletion.filter(|d| !d.is_live()) else { return String::new() };
    format!("{label}{}/{}", deletion.marked_for_delete_at, deletion.local_deletion_time)
}

fn spell_marker(marker: Marker<'_>) -> String {
    let at = spell_clustering(marker.position.serialized);
    let (before, after) = match marker.position.kind {
        BoundKind::InclStart => ("[", ""),
        BoundKind::ExclStart => ("(", ""),
        BoundKind::ExclEnd => ("", ")"),
        BoundKind::InclEnd => ("", "]"),
        BoundKind::ExclEndInclStart => ("", ")["),
        BoundKind::InclEndExclStart => ("", "]("),
        other => panic!("{other:?} of a marker"),
    };
    let (close, open) = (spell_deletion(" ", marker.close), spell_deletion(" ", marker.open));
    format!("{before}{at}{after}{close}{open}")
}

fn spell_times(timestamp: i64, ttl: i32, local: u32) -> String {
    match (local, ttl) {
        (NO_DELETION_TIME, NO_TTL) => timestamp.to_string(),
        (_, NO_TTL) => format!("{timestamp}/{local}"),
        _ => format!("{timestamp}/{local}:{ttl}"),
    }
}

fn spell_row(layout: &Layout, which: Statics, row: Row<'_>) -> String {
    let mut text = String::new();
    if !row.liveness.is_empty() {
        let Liveness { timestamp, ttl, local_expiration_time } = row.liveness;
        text += &format!(" live {}", spell_times(timestamp, ttl, local_expiration_time));
    }
    let label = if row.deletion.shadowable { " shadow " } else { " del " };
    text += &spell_deletion(label, Some(row.deletion.time));
    let name = |column: u16| {
        let column = &layout.columns(which)[usize::from(column)];
        (String::from_utf8_lossy(&column.name).into_owned(), column.shape == ColumnShape::Counter)
    };
    for deletion in row.complex_deletions {
        text +=
            &format!(" {}=!!{}", name(deletion.column).0, spell_deletion("@", Some(deletion.time)));
    }
    for cell in row.cells {
        let (name, is_counter) = name(cell.column);
        let path = String::from_utf8_lossy(cell.path.of(row.bytes)).into_owned();
        let path = if path.is_empty() { path } else { format!(".{path}") };
        let value = cell.value.of(row.bytes);
        let value = match (cell.is_tombstone(), is_counter) {
            (true, _) => "!".to_string(),
            (false, true) => spell_counter(value),
            (false, false) => String::from_utf8_lossy(value).into_owned(),
        };
        let times = spell_times(cell.timestamp, cell.ttl, cell.local_deletion_time);
        text += &format!(" {name}{path}={value}@{times}");
    }
    text
}

fn spell_counter(context: &[u8]) -> String {
    let context = CounterContext::decode(context).expect("a counter context");
    let shards = context.shards.iter();
    let shards = shards.map(|s| format!("{}.{}.{}", char::from(s.id[0]), s.clock, s.count));
    shards.collect::<Vec<_>>().join("+")
}
