//! Many connections without a request, many prepared statements that are never executed, and reads beside them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use halcyon_client::blocking::Connection;
use halcyon_oracle::Result;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::arguments::Arguments;
use super::page;
use crate::connection::{self, bigint};
use crate::invocation::Invocation;
use crate::load::{KEYSPACE, Table};
use crate::process::resident;
use crate::record::Contender;
use crate::rows::{Reads, WARMS, make_hot};
use crate::server::{Plan, Server};

const HOT: &str = "hot";
const HOT_ROWS: u64 = 10_000;
const VALUE: usize = 256;
/// What a start does beside its first answer is done by then.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) fn run(arguments: &Arguments, invocation: &mut Invocation) -> Result<()> {
    raise_descriptors()?;
    let dir = invocation.fresh("halcyon")?;
    // Statements are kept that would be dropped otherwise: what they take is measured.
    let plan = Plan::halcyon("as it comes", dir).set("prepared_statements_cache_size: 1GiB");
    let server = Server::start(&invocation.programs, &plan)?;
    let rows = if invocation.tiny { arguments.rows } else { HOT_ROWS };
    let hot = Table { name: HOT, rows, blob: VALUE };
    make_hot(&server, hot, WARMS)?;
    sleep(PAUSE);
    let before = resident(server.pid) as f64;
    let mut add = |server: &Server, mode: &str, more: &[(&str, f64)]| -> Result<()> {
        let mut figures = arguments.reads(server, Reads::at_random(hot, 1))?;
        more.iter().for_each(|(name, value)| figures.add(name, *value));
        invocation.record.add(page::CLIENTS, &Contender::new("halcyon", mode), figures);
        Ok(())
    };
    add(&server, "at rest", &[])?;

    let began = Instant::now();
    let mut connections: Vec<Connection> = Vec::new();
    for _ in 0..arguments.connections {
        connections.push(connection::open(server.port)?);
    }
    let seconds = began.elapsed().as_secs_f64();
    let by_one = (resident(server.pid) as f64 - before) / f64::from(arguments.connections.max(1));
    let mode = format!("{} connections", arguments.connections);
    add(&server, &mode, &[("seconds", seconds), ("memory_by_one", by_one)])?;
    drop(connections);
    sleep(PAUSE);

    let before = resident(server.pid) as f64;
    let began = Instant::now();
    prepare(&server, arguments.statements)?;
    let seconds = began.elapsed().as_secs_f64();
    let by_one = (resident(server.pid) as f64 - before) / f64::from(arguments.statements.max(1));
    server.kill()?;
    let server = Server::start(&invocation.programs, &plan)?;
    let kept =
        connection::open(server.port)?.page("SELECT count(*) FROM system.prepared_statements")?;
    let kept = kept.rows.first().and_then(|row| bigint(row.first()?.as_ref()));
    let more = [
        ("seconds", seconds),
        ("memory_by_one", by_one),
        ("start_seconds", server.start_seconds),
        ("kept", kept.ok_or("no prepared statements are counted")? as f64),
    ];
    let mode = format!("{} statements, after a start", arguments.statements);
    add(&server, &mode, &more)?;
    server.stop()
}

/// Each is another statement.
fn prepare(server: &Server, statements: u32) -> Result<()> {
    let mut connection = connection::open(server.port)?;
    for number in 0..statements {
        connection.prepare(&format!(
            "SELECT number AS number_{number}, word, data FROM {KEYSPACE}.{HOT} WHERE pk = ?"
        ))?;
    }
    Ok(())
}

/// As many as the system allows, for this program and for the servers that it starts.
fn raise_descriptors() -> Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}
