//! A load of one prepared statement, each execution with values of its own, whose answers are read page by page.

use std::time::{Duration, Instant};

use halcyon_client::blocking::Connection;
use halcyon_oracle::Result;
use halcyon_protocol::client::{Answer, Page};
use halcyon_protocol::{Consistency, QueryParameters, Value, Values};

use crate::connection;
use crate::latency::{Completed, Latencies};
use crate::load::Random;
use crate::process::CpuOf;

const PAGE: i32 = 5_000;

/// The values of an execution.
pub(super) type Bind<'a> = &'a (dyn Fn(&mut Random) -> Vec<Vec<u8>> + Sync);
/// Looks at the rows of an answer, and at the values that asked for them.
pub(super) type Look<'a> = &'a (dyn Fn(&[Vec<u8>], &[Row]) -> Result<()> + Sync);
pub(super) type Row = Vec<Option<Vec<u8>>>;

/// Connections that each have one request under way.
pub(super) struct Asking<'a> {
    pub(super) statement: &'a str,
    pub(super) connections: u64,
    pub(super) seed: u64,
    pub(super) until: Until,
    pub(super) bind: Bind<'a>,
    pub(super) look: Look<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Until {
    Seconds(f64),
    /// Executions of all connections together.
    Count(u64),
}

impl Asking<'_> {
    pub(super) fn run(&self, port: u16) -> Result<Completed> {
        let own = CpuOf::Process(std::process::id());
        let (cpu_before, began) = (own.seconds(), Instant::now());
        let ended: Vec<std::result::Result<Vec<u64>, String>> = std::thread::scope(|scope| {
            let lane = |number| move || self.lane(port, number).map_err(|e| e.to_string());
            let lanes: Vec<_> =
                (0..self.connections).map(|number| scope.spawn(lane(number))).collect();
            let panicked = |_| Err("a thread of the generator panicked".to_owned());
            lanes.into_iter().map(|lane| lane.join().unwrap_or_else(panicked)).collect()
        });
        let seconds = began.elapsed().as_secs_f64();
        let mut nanos = Vec::new();
        for lane in ended {
            nanos.extend(lane.map_err(|e| format!("{}: {e}", self.statement))?);
        }
        Ok(Completed {
            operations: nanos.len() as u64,
            seconds,
            latencies: Latencies::of(nanos),
            client_cpu_seconds: own.seconds() - cpu_before,
        })
    }

    fn lane(&self, port: u16, number: u64) -> Result<Vec<u64>> {
        let mut connection = connection::open(port)?;
        let (statement, _) = connection.prepare(self.statement)?;
        let mut random = Random(self.seed ^ number << 32);
        let (mut nanos, began) = (Vec::new(), Instant::now());
        loop {
            let is_over = match self.until {
                Until::Seconds(seconds) => began.elapsed() >= Duration::from_secs_f64(seconds),
                Until::Count(count) => {
                    let share =
                        count / self.connections + u64::from(number < count % self.connections);
                    nanos.len() as u64 >= share
                }
            };
            if is_over {
                return Ok(nanos);
            }
            let values = (self.bind)(&mut random);
            let asked = Instant::now();
            let rows = execute(&mut connection, &statement, &values)?;
            nanos.push(u64::try_from(asked.elapsed().as_nanos())?);
            (self.look)(&values, &rows)?;
        }
    }
}

/// All rows of an answer.
fn execute(connection: &mut Connection, id: &[u8], values: &[Vec<u8>]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut state: Option<Vec<u8>> = None;
    loop {
        let mut parameters = QueryParameters::new(Consistency::One);
        parameters.values = Values::Positional(values.iter().map(|v| Value::Bytes(v)).collect());
        parameters.skip_metadata = true;
        parameters.page_size = Some(PAGE);
        parameters.paging_state = state.as_deref();
        connection.client.execute(0, id, &[], &parameters);
        match connection.ask()? {
            Answer::Void => return Ok(rows),
            Answer::Rows(Page { rows: more, paging_state, .. }) => {
                rows.extend(more);
                state = paging_state;
                if state.is_none() {
                    return Ok(rows);
                }
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
}
