//! A server with its three tables in SSTables, in a cage that leaves it little page cache.

use serde_json::Value;

use super::{Arguments, Bench};
use crate::cage::Cage;
use crate::connection::{self, create_keyspace};
use crate::load::{Load, Request, Table, Until};
use crate::server::{Plan, Server};
use halcyon_oracle::{Result, Version};

/// Before it is known what else the server allocates.
const AT_FIRST: u64 = 128 << 20;

pub(super) struct Subject {
    pub(super) server: Server,
    /// What `doctor` says of its tables.
    pub(super) tables: Value,
    /// None where cgroups are not allowed.
    _cage: Option<Cage>,
}

/// The table with chunks of this many KiB. Names are for ever, as the generator has them.
pub(super) fn chunk_table(chunk_kib: u64, arguments: &Arguments) -> Table {
    let name = match chunk_kib {
        64 => "chunks_64",
        16 => "chunks_16",
        4 => "chunks_4",
        _ => "chunks",
    };
    Table { name, rows: arguments.rows, blob: arguments.blob }
}

impl Bench<'_> {
    /// `mode`: Halcyon's `disk_access_mode`.
    pub(super) fn halcyon(&mut self, mode: &str) -> Result<Subject> {
        let dir = self.invocation.data.join("halcyon");
        let plan = |mode: &str, access: &str, cache_mib: u64| {
            Plan::halcyon(mode, dir.clone())
                .set(format!("disk_access_mode: {access}"))
                .set(format!("file_cache_size: {cache_mib}MiB"))
                .set("key_cache_size: 256MiB")
        };
        if !self.halcyon_is_filled {
            self.invocation.fresh("halcyon")?;
            let plan = plan("filling", "auto", 64);
            let server = Server::start(&self.invocation.programs, &plan)?;
            self.fill(&server)?;
            server.stop()?;
            self.halcyon_is_filled = true;
        }
        let tables = self.invocation.programs.doctor(&dir)?;
        let plan = plan(mode, mode, self.arguments.cache);
        let server = Server::start(&self.invocation.programs, &plan)?;
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
        let server = Server::start(&self.invocation.programs, &plan)?;
        self.fill(&server)?;
        server.nodetool(&["flush"])?;
        let tables = self.invocation.programs.doctor(&dir.join("data/data"))?;
        self.caged(server, tables)
    }

    fn fill(&self, server: &Server) -> Result<()> {
        let mut connection = connection::open(server.port)?;
        create_keyspace(&mut connection, "bench")?;
        for kib in &self.arguments.chunks {
            let table = chunk_table(*kib, self.arguments);
            connection.query(&format!(
                "CREATE TABLE bench.{} (pk bigint PRIMARY KEY, number int, word text, data blob) \
                 WITH compression = {{'class': 'LZ4Compressor', 'chunk_length_in_kb': {kib}}} \
                 AND compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}}",
                table.name
            ))?;
            let filled = Load::new(Request::Write, table, Until::EveryKey).run(server.port)?;
            eprintln!(
                "bench: {} rows with chunks of {kib} KiB in {:.0} s",
                filled.operations, filled.seconds
            );
        }
        Ok(())
    }

    /// Keys are read once, so that the index is in the key cache; then the cage is drawn tight.
    fn caged(&mut self, server: Server, tables: Value) -> Result<Subject> {
        for kib in &self.arguments.chunks {
            let table = chunk_table(*kib, self.arguments);
            Load::new(Request::Read, table, Until::EveryKey).run(server.port)?;
        }
        let cache = self.arguments.cache << 20;
        let cage = match Cage::around(server.pid, cache + AT_FIRST) {
            Ok(cage) => {
                let first = self.arguments.chunks.first().unwrap_or(&4);
                let first = chunk_table(*first, self.arguments);
                Load::lasting(Request::Read, first, self.arguments.seconds).run(server.port)?;
                cage.leave_page_cache(cache)?;
                Some(cage)
            }
            Err(error) => {
                let why = format!("no memory cgroup, so the page cache is not bounded: {error}");
                self.invocation.record.miss(why);
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
