//! What an open loop asks about a table of `load.rs`: reads of rows that were there before, inserts of rows that were not.

use std::thread::sleep;
use std::time::Duration;

use halcyon_oracle::Result;

use crate::load::{KEYSPACE, POOL, Random, Row, Table, Until, insert, random_bytes, select, write};
use crate::paced::{Paced, Requests};
use crate::server::Server;

/// Reads a second before anything is measured.
pub(crate) const WARMS: f64 = 10_000.0;

/// Makes a table, if it is not there, whose rows are in an SSTable, and hot.
pub(crate) fn make_hot(server: &Server, table: Table, rate: f64) -> Result<()> {
    table.create(server.port)?;
    write(table, Until::EveryKey, server.port)?;
    server.flush(KEYSPACE)?;
    read_twice(server.port, table, rate)
}

/// Reads all rows twice in their order, so that they are hot: caches of all contenders take what is read more than once.
pub(crate) fn read_twice(port: u16, table: Table, rate: f64) -> Result<()> {
    let paced = Paced::start(port, rate, Reads::in_order(table))?;
    sleep(Duration::from_secs_f64(2.0 * table.rows as f64 / rate));
    paced.stop().map(drop)
}

pub(crate) struct Reads {
    table: Table,
    /// None: in their order.
    random: Option<Random>,
    number: u64,
}

impl Reads {
    pub(crate) fn in_order(table: Table) -> Reads {
        Reads { table, random: None, number: 0 }
    }

    pub(crate) fn at_random(table: Table, seed: u64) -> Reads {
        Reads { table, random: Some(Random(seed)), number: 0 }
    }
}

impl Requests for Reads {
    fn statements(&self) -> Vec<String> {
        vec![select(self.table.name)]
    }

    fn next(&mut self) -> (usize, Vec<Vec<u8>>) {
        self.number += 1;
        let rows = self.table.rows.max(1);
        let key = match &mut self.random {
            Some(random) => random.below(rows),
            None => self.number % rows,
        };
        (0, vec![key.to_be_bytes().to_vec()])
    }
}

pub(crate) struct Inserts {
    table: Table,
    pool: Vec<u8>,
    random: Random,
    next_key: u64,
}

impl Inserts {
    /// Behind the table's rows.
    pub(crate) fn after(table: Table) -> Inserts {
        Inserts { table, pool: random_bytes(3, POOL), random: Random(2), next_key: table.rows }
    }
}

impl Requests for Inserts {
    fn statements(&self) -> Vec<String> {
        vec![insert(self.table.name)]
    }

    fn next(&mut self) -> (usize, Vec<Vec<u8>>) {
        let row = Row::of(self.next_key, self.table.blob, &self.pool, &mut self.random);
        self.next_key += 1;
        (0, row.cells().map(<[u8]>::to_vec).into())
    }
}
