//! Facts from a running Halcyon or Cassandra server: `system_views` and `system_schema`.
//!
//! Only SELECTs are sent. A server before 4.0 lacks `system_views`; the report names missing tables.

use std::collections::BTreeMap;
use std::pin::Pin;

use halcyon_client::{Cause, Connection, Credentials, Row, Rows};
use halcyon_model::options::{MapOption, TableOptions};

use super::facts::{Cache, Facts, Quantiles, Server, Table};
use crate::error::Result;

/// What answers SELECTs: a server, or the node that examines itself.
pub trait Source {
    /// All rows; `None` if the statement is refused: older servers lack tables.
    fn rows<'a>(
        &'a mut self,
        statement: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Rows>>> + 'a>>;
}

impl Source for Connection {
    fn rows<'a>(
        &'a mut self,
        statement: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Rows>>> + 'a>> {
        Box::pin(async move {
            match self.query(statement, &[]).await {
                Ok(rows) => Ok(Some(rows)),
                Err(error) if matches!(error.cause, Cause::Refused { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
    }
}

pub(super) async fn examine(
    host: &str,
    credentials: &Credentials,
    facts: &mut Facts,
) -> Result<()> {
    let mut session = Connection::open(host, credentials).await?;
    let address = session.server().to_owned();
    examine_source(&mut session, address, facts).await
}

pub(super) async fn examine_source(
    source: &mut dyn Source,
    address: String,
    facts: &mut Facts,
) -> Result<()> {
    let mut live = Server { address, ..Server::default() };
    if let Some(rows) = source.rows("SELECT release_version FROM system.local").await? {
        live.release =
            rows.iter().next().map(|row| row.text("release_version")).unwrap_or_default();
    }
    let mut views = Views { source, missing: Vec::new() };
    live.settings = pairs(&views.all("settings").await?, "name", "value");
    let properties = pairs(&views.all("system_properties").await?, "name", "value");
    live.is_halcyon = properties.contains_key("halcyon.version");
    live.caches = views.all("caches").await?.iter().map(|row| cache(&row)).collect();
    if live.is_halcyon {
        live.io_modes = pairs(&views.of("halcyon_views.io_modes").await?, "purpose", "mode");
    }
    let metrics = Metrics {
        rows: views.all("rows_per_read").await?,
        tombstones: views.all("tombstones_per_read").await?,
        reads: views.all("local_read_latency").await?,
        partitions: views.all("max_partition_size").await?,
    };
    live.missing = views.missing;
    let tables = source.rows("SELECT * FROM system_schema.tables").await?.unwrap_or_default();
    tables.iter().for_each(|row| metrics.add(&row, &mut facts.tables));
    facts.live = Some(live);
    Ok(())
}

struct Views<'a> {
    source: &'a mut dyn Source,
    missing: Vec<String>,
}

impl Views<'_> {
    async fn all(&mut self, view: &str) -> Result<Rows> {
        self.of(&format!("system_views.{view}")).await
    }

    async fn of(&mut self, view: &str) -> Result<Rows> {
        let rows = self.source.rows(&format!("SELECT * FROM {view}")).await?;
        if rows.is_none() {
            self.missing.push(view.to_owned());
        }
        Ok(rows.unwrap_or_default())
    }
}

fn pairs(rows: &Rows, name: &str, value: &str) -> BTreeMap<String, String> {
    rows.iter().map(|row| (row.text(name), row.text(value))).collect()
}

fn cache(row: &Row<'_>) -> Cache {
    Cache {
        name: row.text("name"),
        capacity: row.count("capacity_bytes"),
        size: row.count("size_bytes"),
        requests: row.count("request_count"),
        hits: row.count("hit_count"),
    }
}

/// The server's metrics of a table.
struct Metrics {
    rows: Rows,
    tombstones: Rows,
    reads: Rows,
    partitions: Rows,
}

impl Metrics {
    /// Adds them to the table found in the files, or to a new one.
    fn add(&self, schema: &Row<'_>, tables: &mut Vec<Table>) {
        let (keyspace, name) = (schema.text("keyspace_name"), schema.text("table_name"));
        if keyspace == "system" || keyspace.starts_with("system_") {
            return;
        }
        let known = tables.iter().position(|t| t.keyspace == keyspace && t.name == name);
        let at = known.unwrap_or_else(|| {
            tables.push(Table {
                keyspace: keyspace.clone(),
                name: name.clone(),
                ..Table::default()
            });
            tables.len() - 1
        });
        let Some(table) = tables.get_mut(at) else { return };
        let of = |rows: &Rows| -> Option<Quantiles> {
            find(rows, &keyspace, &name).map(|row| quantiles(&row))
        };
        table.options = options(schema);
        table.rows_per_read = of(&self.rows);
        table.tombstones_per_read = of(&self.tombstones);
        table.reads = find(&self.reads, &keyspace, &name).map_or(0, |row| row.count("count"));
        let largest =
            find(&self.partitions, &keyspace, &name).map_or(0, |row| row.count("mebibytes"));
        let largest = (largest << 20) as f64;
        table.partition_bytes.max = table.partition_bytes.max.max(largest);
    }
}

fn find<'a>(rows: &'a Rows, keyspace: &str, table: &str) -> Option<Row<'a>> {
    rows.iter().find(|row| row.text("keyspace_name") == keyspace && row.text("table_name") == table)
}

fn quantiles(row: &Row<'_>) -> Quantiles {
    Quantiles {
        count: row.count("count"),
        p50: row.double("p50th"),
        p99: row.double("p99th"),
        max: row.double("max"),
    }
}

fn options(schema: &Row<'_>) -> TableOptions {
    TableOptions {
        gc_grace_seconds: i32::try_from(schema.count("gc_grace_seconds")).ok(),
        bloom_filter_fp_chance: Some(schema.double("bloom_filter_fp_chance")),
        compression: schema.bytes("compression").map(text_map).map(MapOption::lenient),
        compaction: schema.bytes("compaction").map(text_map).map(MapOption::lenient),
        caching: schema.bytes("caching").map(text_map).map(MapOption::lenient),
        ..TableOptions::default()
    }
}

/// Decodes a `map<text, text>`; stops at truncated data.
fn text_map(bytes: &[u8]) -> BTreeMap<String, String> {
    fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
        let (taken, after) = after.split_at_checked(length)?;
        *rest = after;
        Some(taken)
    }
    let mut rest = bytes.get(4..).unwrap_or_default();
    let mut map = BTreeMap::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    while let Some(key) = take(&mut rest)
        && let Some(value) = take(&mut rest)
    {
        map.insert(text(key), text(value));
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that maps decode, and that a damaged one is harmless.
    #[test]
    fn maps_of_text() {
        let mut bytes = 2i32.to_be_bytes().to_vec();
        for word in ["class", "LZ4Compressor", "chunk_length_in_kb", "16"] {
            bytes.extend((word.len() as i32).to_be_bytes());
            bytes.extend(word.as_bytes());
        }
        let map = text_map(&bytes);
        assert_eq!(map.len(), 2);
        assert_eq!(map.get("chunk_length_in_kb").map(String::as_str), Some("16"));
        for cut in 0..bytes.len() {
            assert!(text_map(&bytes[..cut]).len() < 2);
        }
    }
}
