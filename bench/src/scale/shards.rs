//! More shards than cores: requests in a closed loop, in turns with as many shards as cores.

use halcyon_oracle::Result;

use super::arguments::Arguments;
use super::page;
use crate::invocation::Invocation;
use crate::load::{KEYSPACE, Table, Until, read, write};
use crate::process::CpuOf;
use crate::record::Measurements;
use crate::server::{Plan, Server};

const TABLE: &str = "loaded";
const VALUE: usize = 256;

pub(super) fn run(arguments: &Arguments, invocation: &mut Invocation) -> Result<()> {
    let cores = u32::try_from(std::thread::available_parallelism()?.get())?;
    let table = Table { name: TABLE, rows: arguments.rows, blob: VALUE };
    let mut servers = Vec::new();
    for shards in [cores, arguments.shards] {
        let dir = invocation.fresh(&format!("halcyon-{shards}"))?;
        let plan = Plan::halcyon(&page::shards(shards), dir).set(format!("shards: {shards}"));
        let server = Server::start(&invocation.programs, &plan)?;
        table.create(server.port)?;
        write(table, Until::EveryKey, server.port)?;
        server.flush(KEYSPACE)?;
        server.freeze()?;
        servers.push(server);
    }
    for _ in 0..arguments.rounds {
        for server in &servers {
            let figures = server.awake(|| turn(arguments, table, server))?;
            invocation.record.add(page::SHARDS, &server.contender, figures);
        }
    }
    servers.into_iter().try_for_each(Server::stop)
}

fn turn(arguments: &Arguments, table: Table, server: &Server) -> Result<Measurements> {
    let cpu = CpuOf::Process(server.pid);
    let mut figures = Measurements::default();
    let mut add = |name: &str, rate: f64, before: f64| {
        figures.add(&format!("{name}_by_second"), rate);
        let cores = (cpu.seconds() - before) / arguments.seconds;
        figures.add(&format!("{name}_cpu_us"), 1e6 * cores / rate.max(1.0));
    };
    let before = cpu.seconds();
    add("reads", read(table, arguments.stretch(), server.port)?, before);
    let before = cpu.seconds();
    add("writes", write(table, Until::Elapsed(arguments.stretch()), server.port)?, before);
    Ok(figures)
}
