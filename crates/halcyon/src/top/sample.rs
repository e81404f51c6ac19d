//! What virtual tables say at one moment.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use halcyon_client::{Row, Rows};
use halcyon_io::clock::Instant;
use halcyon_model::in_one_line;

/// In the order in which [`Sample::of`] takes their rows.
pub(super) const STATEMENTS: [&str; 11] = [
    "SELECT load, memory, memory_max, mode, uptime_seconds FROM halcyon_views.node",
    "SELECT keyspace_name, table_name, measure, count, p50th, p99th, p999th, max FROM halcyon_views.histograms",
    "SELECT keyspace_name, table_name, kind, progress, total, unit FROM system_views.sstable_tasks",
    "SELECT name, value FROM halcyon_views.compaction_pace",
    "SELECT keyspace_name, table_name, pending_tasks, pending_bytes, excess_sstables, write_wait_us FROM halcyon_views.compaction_backlog",
    "SELECT purpose, operations, bytes, errors, queue_depth, p50_ns, p99_ns, p999_ns FROM halcyon_views.io_operations",
    "SELECT name, capacity_bytes, size_bytes, hit_ratio, recent_request_rate_per_second FROM system_views.caches",
    "SELECT keyspace_name, table_name, disk_space, sstables, memtable_bytes, read_count, write_count, tombstones_per_read_mean FROM halcyon_views.table_statistics",
    "SELECT ended, waited_us, executed_us, log_us, device_us, sstables, keyspace_name, table_name, client, query FROM halcyon_views.slow_requests",
    "SELECT address, port, username, keyspace_name, driver_name, driver_version, request_count, ssl_enabled FROM system_views.clients",
    "SELECT requests_in_flight FROM halcyon_views.shards",
];

#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) at: Instant,
    pub(super) node: Node,
    pub(super) reads: Percentiles,
    pub(super) ranges: Percentiles,
    pub(super) writes: Percentiles,
    pub(super) sstables_per_read: Percentiles,
    pub(super) tombstones_per_read: Percentiles,
    pub(super) tasks: Vec<Task>,
    pub(super) pace: Pace,
    pub(super) backlog: Backlog,
    pub(super) io: Vec<Io>,
    pub(super) caches: Vec<Cache>,
    pub(super) tables: Vec<Table>,
    pub(super) slow: Vec<Slow>,
    pub(super) clients: Vec<Client>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) mode: String,
    pub(super) load: u64,
    pub(super) memory: u64,
    pub(super) memory_max: u64,
    pub(super) uptime_seconds: u64,
    pub(super) requests_in_flight: u64,
}

/// Latencies are in ns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Percentiles {
    pub(super) count: u64,
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) p999: u64,
    pub(super) max: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) table: String,
    pub(super) kind: String,
    pub(super) progress: u64,
    pub(super) total: u64,
    pub(super) unit: String,
}

/// A limit that is not set is `None`.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace {
    pub(super) bytes_per_second: Option<u64>,
    pub(super) throughput: Option<u64>,
    pub(super) latency_target_us: Option<u64>,
    pub(super) read_p99_us: Option<u64>,
    pub(super) waiting: u64,
    pub(super) urgent: bool,
}

/// Of all tables.
#[derive(Debug, Clone, Default)]
pub(super) struct Backlog {
    pub(super) tasks: u64,
    pub(super) bytes: u64,
    pub(super) excess_sstables: u64,
    /// Of the table whose writes wait longest.
    pub(super) write_wait_us: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Io {
    pub(super) purpose: String,
    pub(super) operations: u64,
    pub(super) bytes: u64,
    pub(super) errors: u64,
    pub(super) queue_depth: u64,
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) p999: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Cache {
    pub(super) name: String,
    pub(super) capacity: u64,
    pub(super) size: u64,
    pub(super) hit_ratio: f64,
    pub(super) requests_per_second: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// With its keyspace.
    pub(super) name: String,
    pub(super) disk_space: u64,
    pub(super) sstables: u64,
    pub(super) memtable: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) read_p99: u64,
    pub(super) write_p99: u64,
    pub(super) tombstones_per_read: f64,
}

#[derive(Debug, Clone)]
pub(super) struct Slow {
    pub(super) ended_ms: i64,
    pub(super) waited_us: u64,
    pub(super) executed_us: u64,
    /// Of this for the commit log, and for the device.
    pub(super) log_us: u64,
    pub(super) device_us: u64,
    pub(super) sstables: u64,
    pub(super) table: String,
    pub(super) client: String,
    pub(super) query: String,
}

#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) address: String,
    pub(super) user: String,
    pub(super) keyspace: String,
    pub(super) driver: String,
    pub(super) is_encrypted: bool,
    pub(super) requests: u64,
}

/// A text of the server, without what a terminal would obey.
fn text(row: &Row<'_>, column: &str) -> String {
    in_one_line(&row.text(column))
}

fn table_of(row: &Row<'_>) -> String {
    match (text(row, "keyspace_name"), text(row, "table_name")) {
        (keyspace, table) if keyspace.is_empty() && table.is_empty() => String::new(),
        (keyspace, table) => format!("{keyspace}.{table}"),
    }
}

impl Sample {
    /// From the rows of [`STATEMENTS`].
    pub(super) fn of(at: Instant, rows: &[Rows]) -> Sample {
        let of = |index: usize| rows.get(index).into_iter().flat_map(Rows::iter);
        let mut histograms = Histograms::default();
        of(1).for_each(|row| histograms.take(&row));
        let mut node = of(0).next().map(|row| Node::of(&row)).unwrap_or_default();
        node.requests_in_flight = of(10).map(|row| row.count("requests_in_flight")).sum();
        let node_of = |measure| histograms.get("", measure);
        Sample {
            at,
            node,
            reads: node_of("read_ns"),
            ranges: node_of("range_ns"),
            writes: node_of("write_ns"),
            sstables_per_read: node_of("sstables"),
            tombstones_per_read: node_of("tombstones"),
            tasks: of(2).map(|row| Task::of(&row)).collect(),
            pace: Pace::of(of(3)),
            backlog: Backlog::of(of(4)),
            io: of(5).map(|row| Io::of(&row)).collect(),
            caches: of(6).map(|row| Cache::of(&row)).collect(),
            tables: of(7).map(|row| Table::of(&row, &histograms)).collect(),
            slow: of(8).map(|row| Slow::of(&row)).collect(),
            clients: of(9).map(|row| Client::of(&row)).collect(),
        }
    }
}

/// By table, which is empty for the node, and measure.
#[derive(Default)]
struct Histograms(BTreeMap<(String, String), Percentiles>);

impl Histograms {
    fn take(&mut self, row: &Row<'_>) {
        let of = Percentiles {
            count: row.count("count"),
            p50: row.count("p50th"),
            p99: row.count("p99th"),
            p999: row.count("p999th"),
            max: row.count("max"),
        };
        self.0.insert((table_of(row), text(row, "measure")), of);
    }

    fn get(&self, table: &str, measure: &str) -> Percentiles {
        self.0.get(&(table.to_owned(), measure.to_owned())).copied().unwrap_or_default()
    }
}

impl Node {
    fn of(row: &Row<'_>) -> Node {
        Node {
            mode: text(row, "mode"),
            load: row.count("load"),
            memory: row.count("memory"),
            memory_max: row.count("memory_max"),
            uptime_seconds: row.count("uptime_seconds"),
            requests_in_flight: 0,
        }
    }
}

impl Task {
    fn of(row: &Row<'_>) -> Task {
        Task {
            table: table_of(row),
            kind: text(row, "kind"),
            progress: row.count("progress"),
            total: row.count("total"),
            unit: text(row, "unit"),
        }
    }
}

impl Pace {
    fn of<'a>(rows: impl Iterator<Item = Row<'a>>) -> Pace {
        let mut pace = Pace::default();
        for row in rows {
            let value = row.bytes("value").map(|_| row.count("value"));
            match row.text("name").as_str() {
                "bytes_per_second" => pace.bytes_per_second = value,
                "compaction_throughput" => pace.throughput = value,
                "compaction_latency_target_us" => pace.latency_target_us = value,
                "read_p99_us" => pace.read_p99_us = value,
                "waiting" => pace.waiting = value.unwrap_or(0),
                "urgent" => pace.urgent = value == Some(1),
                _ => {}
            }
        }
        pace
    }
}

impl Backlog {
    fn of<'a>(rows: impl Iterator<Item = Row<'a>>) -> Backlog {
        let mut all = Backlog::default();
        for row in rows {
            all.tasks += row.count("pending_tasks");
            all.bytes += row.count("pending_bytes");
            all.excess_sstables += row.count("excess_sstables");
            all.write_wait_us = all.write_wait_us.max(row.count("write_wait_us"));
        }
        all
    }
}

impl Io {
    fn of(row: &Row<'_>) -> Io {
        Io {
            purpose: text(row, "purpose"),
            operations: row.count("operations"),
            bytes: row.count("bytes"),
            errors: row.count("errors"),
            queue_depth: row.count("queue_depth"),
            p50: row.count("p50_ns"),
            p99: row.count("p99_ns"),
            p999: row.count("p999_ns"),
        }
    }
}

impl Cache {
    fn of(row: &Row<'_>) -> Cache {
        Cache {
            name: text(row, "name"),
            capacity: row.count("capacity_bytes"),
            size: row.count("size_bytes"),
            hit_ratio: row.double("hit_ratio"),
            requests_per_second: row.count("recent_request_rate_per_second"),
        }
    }
}

impl Table {
    fn of(row: &Row<'_>, histograms: &Histograms) -> Table {
        let name = table_of(row);
        Table {
            disk_space: row.count("disk_space"),
            sstables: row.count("sstables"),
            memtable: row.count("memtable_bytes"),
            reads: row.count("read_count"),
            writes: row.count("write_count"),
            read_p99: histograms.get(&name, "read_ns").p99,
            write_p99: histograms.get(&name, "write_ns").p99,
            tombstones_per_read: row.double("tombstones_per_read_mean"),
            name,
        }
    }
}

impl Slow {
    fn of(row: &Row<'_>) -> Slow {
        Slow {
            ended_ms: i64::try_from(row.count("ended")).unwrap_or(i64::MAX),
            waited_us: row.count("waited_us"),
            executed_us: row.count("executed_us"),
            log_us: row.count("log_us"),
            device_us: row.count("device_us"),
            sstables: row.count("sstables"),
            table: table_of(row),
            client: row.address("client").map_or(String::new(), |client| client.to_string()),
            query: text(row, "query"),
        }
    }
}

impl Client {
    fn of(row: &Row<'_>) -> Client {
        let port = u16::try_from(row.count("port")).unwrap_or(0);
        let address = row.address("address").map(|address| SocketAddr::new(address, port));
        let driver = [text(row, "driver_name"), text(row, "driver_version")].join(" ");
        Client {
            address: address.map_or(String::new(), |address| address.to_string()),
            user: text(row, "username"),
            keyspace: text(row, "keyspace_name"),
            driver: driver.trim().to_owned(),
            is_encrypted: row.is_true("ssl_enabled"),
            requests: row.count("request_count"),
        }
    }
}
