//! `tablestats`: the lines that Cassandra prints, of what Halcyon counts.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;
use super::status::percent;
use super::text::{file_size, memory};
use crate::session::{Row, Rows};

pub(super) async fn print(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let format = call.option("-F").unwrap_or_default();
    if !["", "json", "yaml"].contains(&format) {
        return Failure::usage("arguments for -F are json,yaml only.");
    }
    if format == "yaml" {
        return Failure::failed("-F yaml is not supported by Halcyon yet");
    }
    call.refuse(&["-s", "-t", "-l"])?;
    let rows = node.rows("SELECT * FROM halcyon_views.table_statistics").await?;
    let snapshots = node.rows("SELECT * FROM system_views.snapshots").await?;
    let keyspaces = node.keyspaces().await?;
    check(&call.arguments, &keyspaces, &rows)?;
    let named = |of: &Row<'_>| {
        let (keyspace, table) = (of.text("keyspace_name"), of.text("table_name"));
        let full = format!("{keyspace}.{table}");
        call.arguments.iter().any(|name| *name == keyspace || *name == full)
    };
    let wanted = |of: &Row<'_>| call.arguments.is_empty() || named(of) != call.has("-i");
    let mut tables: BTreeMap<String, Vec<Statistics<'_>>> = BTreeMap::new();
    for row in rows.iter().filter(wanted) {
        let of_keyspace = tables.entry(row.text("keyspace_name")).or_default();
        let snapshot_bytes = snapshot_bytes(&snapshots, &row);
        of_keyspace.push(Statistics { row, snapshot_bytes, human: call.has("-H") });
    }
    let count: usize = tables.values().map(Vec::len).sum();
    match format {
        "json" => out.push_str(&as_json(&tables, count)),
        _ => as_text(&tables, count, out),
    }
    Ok(())
}

/// Every name is there: a keyspace, or a table behind its keyspace.
fn check(names: &[String], keyspaces: &[String], rows: &Rows) -> Result<()> {
    for name in names {
        let (keyspace, table) = name.split_once('.').unwrap_or((name, ""));
        if !keyspaces.iter().any(|known| known == keyspace) {
            return Failure::usage(format!("Unknown keyspace: {keyspace}"));
        }
        let is_it =
            |row: Row<'_>| row.text("keyspace_name") == keyspace && row.text("table_name") == table;
        if !table.is_empty() && !rows.iter().any(is_it) {
            return Failure::usage(format!("Unknown tables: [{table}] in keyspace: {keyspace}"));
        }
    }
    Ok(())
}

/// What the removal of the table's snapshots would free.
fn snapshot_bytes(snapshots: &Rows, of: &Row<'_>) -> u64 {
    let name = |row: &Row<'_>| (row.text("keyspace_name"), row.text("table_name"));
    snapshots.iter().filter(|row| name(row) == name(of)).map(|row| row.count("true_size")).sum()
}

struct Statistics<'a> {
    row: Row<'a>,
    snapshot_bytes: u64,
    human: bool,
}

/// As Java prints a double.
fn number(value: Option<f64>) -> String {
    value.map_or("NaN".to_owned(), |value| format!("{value:?}"))
}

fn fixed(value: Option<f64>, decimals: usize) -> String {
    value.map_or("NaN".to_owned(), |value| format!("{value:.decimals$}"))
}

impl Statistics<'_> {
    fn count(&self, column: &str) -> u64 {
        self.row.count(column)
    }

    fn double(&self, column: &str) -> Option<f64> {
        self.row.bytes(column).map(|_| self.row.double(column))
    }

    fn milliseconds(&self, column: &str) -> Option<f64> {
        self.double(column).map(|nanos| nanos / 1e6)
    }

    fn size(&self, bytes: u64) -> String {
        if self.human { file_size(bytes) } else { bytes.to_string() }
    }

    fn memory_beside(&self) -> u64 {
        ["filter_memory", "summary_memory", "compression_memory"]
            .map(|of| self.count(of))
            .iter()
            .sum()
    }

    fn unrepaired(&self) -> u64 {
        let (repaired, pending) =
            (self.count("bytes_repaired"), self.count("bytes_pending_repair"));
        self.count("data_bytes").saturating_sub(repaired).saturating_sub(pending)
    }

    /// Titles and texts in Cassandra's order.
    fn lines(&self) -> Vec<(&'static str, String)> {
        [self.of_files(), self.of_requests(), self.of_partitions()].concat()
    }

    fn of_files(&self) -> Vec<(&'static str, String)> {
        let bytes = |column: &str| self.size(self.count(column));
        let plain = |column: &str| self.count(column).to_string();
        // Without a compressed SSTable it is Cassandra's -1.
        let compression = self.double("compression_ratio").unwrap_or(-1.0);
        vec![
            ("SSTable count", plain("sstables")),
            ("Old SSTable count", plain("old_sstables")),
            ("Max SSTable size", memory(self.count("max_sstable_size"))),
            ("Space used (live)", bytes("disk_space")),
            ("Space used (total)", bytes("disk_space")),
            ("Space used by snapshots (total)", self.size(self.snapshot_bytes)),
            ("Off heap memory used (total)", self.size(self.memory_beside())),
            ("SSTable Compression Ratio", format!("{compression:.5}")),
            ("Number of partitions (estimate)", plain("partitions")),
            ("Memtable data size", bytes("memtable_bytes")),
            ("Memtable switch count", plain("flushes")),
        ]
    }

    fn of_requests(&self) -> Vec<(&'static str, String)> {
        let (reads, writes) = (self.count("read_count"), self.count("write_count"));
        let ratio = if writes > 0 { reads as f64 / writes as f64 } else { 0.0 };
        let latency = |column: &str| fixed(self.milliseconds(column), 3);
        let repaired = percent(self.count("bytes_repaired"), self.count("data_bytes"));
        vec![
            ("Local read count", reads.to_string()),
            ("Local read latency", latency("read_mean_ns")),
            ("Local write count", writes.to_string()),
            ("Local write latency", latency("write_mean_ns")),
            ("Local read/write ratio", format!("{ratio:.5}")),
            ("Pending flushes", self.count("pending_flushes").to_string()),
            ("Percent repaired", number(Some(repaired))),
            ("Bytes repaired", memory(self.count("bytes_repaired"))),
            ("Bytes unrepaired", memory(self.unrepaired())),
            ("Bytes pending repair", memory(self.count("bytes_pending_repair"))),
        ]
    }

    fn of_partitions(&self) -> Vec<(&'static str, String)> {
        let bytes = |column: &str| self.size(self.count(column));
        let plain = |column: &str| self.count(column).to_string();
        let mean = |column: &str| number(self.double(column));
        let droppable = self.row.double("droppable_tombstone_ratio");
        vec![
            ("Bloom filter off heap memory used", bytes("filter_memory")),
            ("Index summary off heap memory used", bytes("summary_memory")),
            ("Compression metadata off heap memory used", bytes("compression_memory")),
            ("Compacted partition minimum bytes", plain("partition_min")),
            ("Compacted partition maximum bytes", plain("partition_max")),
            ("Compacted partition mean bytes", plain("partition_mean")),
            ("Average live cells per slice (last five minutes)", mean("rows_per_read_mean")),
            ("Maximum live cells per slice (last five minutes)", plain("rows_per_read_max")),
            ("Average tombstones per slice (last five minutes)", mean("tombstones_per_read_mean")),
            ("Maximum tombstones per slice (last five minutes)", plain("tombstones_per_read_max")),
            ("Droppable tombstone ratio", fixed(Some(droppable), 5)),
        ]
    }
}

fn is_latency(title: &str) -> bool {
    title.ends_with("latency")
}

/// A title as a key of JSON.
fn key(title: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let words: String = title.replace(['(', ')'], "").chars().map(letter).collect();
    if is_latency(title) { words + "_ms" } else { words }
}

/// Sums over a keyspace: counts of reads and writes, their mean latencies in ms, pending flushes.
struct Sums {
    reads: u64,
    read_ms: Option<f64>,
    writes: u64,
    write_ms: Option<f64>,
    pending_flushes: u64,
}

impl Sums {
    fn of(tables: &[Statistics<'_>]) -> Sums {
        let total = |column: &str| tables.iter().map(|of| of.count(column)).sum::<u64>();
        let mean = |count: &str, mean: &str| {
            let known = || {
                tables
                    .iter()
                    .filter_map(|of| Some((of.count(count) as f64, of.milliseconds(mean)?)))
            };
            let all: f64 = known().map(|(count, _)| count).sum();
            let sum: f64 = known().map(|(count, ms)| count * ms).sum();
            (all > 0.0).then(|| sum / all)
        };
        Sums {
            reads: total("read_count"),
            read_ms: mean("read_count", "read_mean_ns"),
            writes: total("write_count"),
            write_ms: mean("write_count", "write_mean_ns"),
            pending_flushes: total("pending_flushes"),
        }
    }
}

fn as_text(keyspaces: &BTreeMap<String, Vec<Statistics<'_>>>, count: usize, out: &mut String) {
    out.push_str(&format!("Total number of tables: {count}\n----------------\n"));
    for (keyspace, tables) in keyspaces {
        let sums = Sums::of(tables);
        out.push_str(&format!(
            "Keyspace: {keyspace}\n\tRead Count: {}\n\tRead Latency: {} ms\n\tWrite Count: {}\n\tWrite Latency: {} ms\n\t\
             Pending Flushes: {}\n",
            sums.reads,
            number(sums.read_ms),
            sums.writes,
            number(sums.write_ms),
            sums.pending_flushes
        ));
        for table in tables {
            out.push_str(&format!("\t\tTable: {}\n", table.row.text("table_name")));
            for (title, text) in table.lines() {
                let unit = if is_latency(title) { " ms" } else { "" };
                out.push_str(&format!("\t\t{title}: {text}{unit}\n"));
            }
            out.push('\n');
        }
        out.push_str("----------------\n");
    }
}

/// What Cassandra gives as a number although its text has a unit.
fn value(of: &Statistics<'_>, key: &str, text: String) -> Value {
    match key {
        "max_sstable_size" => json!(of.count(key)),
        "bytes_repaired" | "bytes_pending_repair" => json!(of.count(key)),
        "bytes_unrepaired" => json!(of.unrepaired()),
        "sstable_compression_ratio" => json!(of.double("compression_ratio").unwrap_or(-1.0)),
        key if key.starts_with("space_used")
            || key.contains("memory")
            || key == "memtable_data_size" =>
        {
            json!(text)
        }
        key if key.ends_with("ratio") || key.ends_with("latency_ms") => json!(text),
        _ => match (text.parse::<u64>(), text.parse::<f64>()) {
            (Ok(count), _) => json!(count),
            (_, Ok(number)) if number.is_finite() => json!(number),
            _ => json!(text),
        },
    }
}

fn as_json(keyspaces: &BTreeMap<String, Vec<Statistics<'_>>>, count: usize) -> String {
    let mut all = Map::new();
    all.insert("total_number_of_tables".to_owned(), json!(count));
    for (keyspace, tables) in keyspaces {
        let of_table = |of: &Statistics<'_>| {
            let lines = of.lines().into_iter();
            let field = |(title, text): (&str, String)| {
                let key = key(title);
                let value = value(of, &key, text);
                (key, value)
            };
            let fields: Map<String, Value> = lines.map(field).collect();
            (of.row.text("table_name"), Value::Object(fields))
        };
        let sums = Sums::of(tables);
        all.insert(
            keyspace.clone(),
            json!({
                "tables": tables.iter().map(of_table).collect::<Map<String, Value>>(),
                "read_count": sums.reads,
                "read_latency_ms": sums.read_ms,
                "write_count": sums.writes,
                "write_latency_ms": sums.write_ms,
                "pending_flushes": sums.pending_flushes,
            }),
        );
    }
    format!("{:#}\n", Value::Object(all))
}
