//! Many tables, each with a row in its memtable when it counts.

use std::time::Instant;

use halcyon_client::blocking::Connection;
use halcyon_oracle::Result;

use super::arguments::Arguments;
use super::page;
use crate::connection::{self, create_keyspace, create_tables};
use crate::invocation::Invocation;
use crate::process::resident;
use crate::record::Measurements;
use crate::server::{Plan, Server};

const MANY: &str = "many";
const HEAP: &str = "4g";

pub(super) fn run(arguments: &Arguments, invocation: &mut Invocation) -> Result<()> {
    invocation.turns(1, |invocation, version| {
        let dir = invocation.fresh(version.map_or("halcyon", |_| "cassandra"))?;
        let plan = Plan::as_it_comes(version, dir, HEAP);
        let mut server = Server::start(&invocation.programs, &plan)?;
        let before = resident(server.pid);
        let mut connection = connection::open(server.port)?;
        create_keyspace(&mut connection, MANY)?;
        let created = timed(|| create_tables(&mut connection, MANY, arguments.tables))?;
        let grown = resident(server.pid).saturating_sub(before) as f64;
        let mut figures = Measurements::default()
            .with("tables", f64::from(arguments.tables))
            .with("create_seconds", created)
            .with("memory_by_table", grown / f64::from(arguments.tables.max(1)));
        insert(&mut connection, arguments.tables, 1)?;
        figures.add("flush_seconds", timed(|| server.flush(MANY))?);
        if server.is_halcyon() {
            insert(&mut connection, arguments.tables, 2)?;
            server.kill()?;
            server = Server::start(&invocation.programs, &plan)?;
            figures.add("start_seconds", server.start_seconds);
            connection = connection::open(server.port)?;
        }
        let drop_keyspace = format!("DROP KEYSPACE {MANY}");
        figures.add("drop_seconds", timed(|| Ok(connection.query(&drop_keyspace).map(drop)?))?);
        invocation.record.add(page::TABLES, &server.contender, figures);
        server.stop()
    })
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed().as_secs_f64())
}

fn insert(connection: &mut Connection, tables: u32, row: u32) -> Result<()> {
    for number in 0..tables {
        let table = format!("{MANY}.t{number}");
        connection
            .query(&format!("INSERT INTO {table} (pk, number, word) VALUES ({row}, 1, 'one')"))?;
    }
    Ok(())
}
