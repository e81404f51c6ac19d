//! A server with its three tables in SSTables, in a cage that leaves it little page cache.

use std::time::Duration;

use serde_json::Value;

use super::{Arguments, Bench};
use crate::Result;
use crate::cage::Cage;
use crate::connection::Connection;
use crate::load::{Load, Request, Table, Until};
use crate::server::{Plan, Server};
use halcyon_oracle::Version;

/// Requests in flight while tables are filled and caches warmed.
const BUSY: usize = 50;
/// Before it is known what else the server allocates.
const AT_FIRST: u64 = 128 << 20;

pub(super) struct Subject {
    pub(super) server: Server,
    /// What `doctor` says of its tables.
    pub(super) tables: Value,
    /// None where cgroups are not allowed.
    _cage: Option<Cage>,
}

/// The table with chunks of so many KiB. Names are for ever, as the generator has them.
pub(super) fn chunk_table(chunk_kib: u64, arguments: &Arguments) -> Table {
    let name = match chunk_kib {
        64 => "chunks_64",
        16 => "chunks_16",
        4 => "chunks_4",
        _ => "chunks",
    };
    Table { name, rows: arguments.rows, blob: arguments.blob }
}

impl Bench {
    /// `mode`: Halcyon's `disk_access_mode`.
    pub(super) fn halcyon(&mut self, mode: &str) -> Result<Subject> {
        let dir = self.invocation.data.join("halcyon");
        let settings = |mode: &str, cache: String| {
            vec![
                format!("disk_access_mode: {mode}"),
                format!("file_cache_size: {cache}"),
                "key_cache_size: 256MiB".to_owned(),
            ]
        };
        if !self.halcyon_is_filled {
            let dir = self.invocation.fresh("halcyon")?;
            let settings = settings("auto", "64MiB".to_owned());
            let plan = Plan::halcyon("filling", dir).set_all(&settings);
            let server = Server::start(&self.programs, &plan)?;
            self.fill(&server)?;
            server.stop()?;
            self.halcyon_is_filled = true;
        }
        let tables = self.programs.doctor(&dir)?;
        let settings = settings(mode, format!("{}MiB", self.arguments.cache));
        let plan = Plan::halcyon(mode, dir).set_all(&settings);
        let server = Server::start(&self.programs, &plan)?;
        self.caged(server, tables)
    }

    /// `mode`: Cassandra's.
    pub(super) fn cassandra(&mut self, mode: &str) -> Result<Subject> {
        let dir = self.invocation.data.join("cassandra");
        let plan = Plan::cassandra(Version::V5, mode, dir.clone())
            .set(format!("disk_access_mode: {mode}"))
            .set("key_cache_size: 256MiB")
            // Chunks in memory of its own, beside the page cache: as little as may be.
            .set("file_cache_enabled: false")
            .jvm("-XX:+AlwaysPreTouch");
        let server = Server::start(&self.programs, &plan)?;
        self.fill(&server)?;
        server.nodetool(&["flush"])?;
        let tables = self.programs.doctor(&dir.join("data/data"))?;
        self.caged(server, tables)
    }

    fn fill(&self, server: &Server) -> Result<()> {
        let mut connection = Connection::open(server.port)?;
        connection.create_keyspace("bench")?;
        for kib in &self.arguments.chunks {
            let table = chunk_table(*kib, &self.arguments);
            connection.execute(&format!(
                "CREATE TABLE bench.{} (pk bigint PRIMARY KEY, number int, word text, data blob) \
                 WITH compression = {{'class': 'LZ4Compressor', 'chunk_length_in_kb': {kib}}} \
                 AND compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}}",
                table.name
            ))?;
            let filled = self.load(Request::Write, table, Until::EveryKey).run(server.port)?;
            eprintln!(
                "bench: {} rows with chunks of {kib} KiB in {:.0} s",
                filled.operations, filled.seconds
            );
        }
        Ok(())
    }

    pub(super) fn load(&self, request: Request, table: Table, until: Until) -> Load {
        Load { request, table, in_flight: BUSY, until, shard_aware: false, seed: 7 }
    }

    /// Keys are read once, so that the index is in the key cache; then the cage is drawn tight.
    fn caged(&mut self, server: Server, tables: Value) -> Result<Subject> {
        for kib in &self.arguments.chunks {
            let table = chunk_table(*kib, &self.arguments);
            self.load(Request::Read, table, Until::EveryKey).run(server.port)?;
        }
        let cache = self.arguments.cache << 20;
        let cage = match Cage::around(server.pid, cache + AT_FIRST) {
            Ok(cage) => {
                let first =
                    chunk_table(*self.arguments.chunks.first().unwrap_or(&4), &self.arguments);
                let a_while = Until::Elapsed(Duration::from_secs_f64(self.arguments.seconds));
                self.load(Request::Read, first, a_while).run(server.port)?;
                cage.leave_page_cache(cache)?;
                Some(cage)
            }
            Err(error) => {
                self.invocation
                    .record
                    .miss(format!("no memory cgroup, so the page cache is not bounded: {error}"));
                None
            }
        };
        Ok(Subject { server, tables, _cage: cage })
    }
}

/// Bytes of a chunk as stored, on average, and of a row.
pub(super) fn stored(tables: &Value, name: &str) -> Option<(f64, f64)> {
    let tables = tables["tables"].as_array()?;
    let table = tables.iter().find(|table| table["table"] == name)?;
    Some((table["chunk_stored_bytes"].as_f64()?, table["row_bytes"].as_f64()?))
}
