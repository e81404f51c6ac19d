//! `cargo x bench cql`: what indexes and views cost a write, and what a query through an index costs, by Halcyon and by Cassandra.
//!
//! 1. The same write on a table without anything, with an index of each kind, and with a view; turns of all servers and tables in turn.
//! 2. A table of a million rows with both kinds of indexes: equality and ranges that find one row in 100, in 1,000, and one row.
//! 3. 100,000 vectors with an index: ten nearest, and how many of the ten that a comparison with all finds.
//!
//! Every answer is compared with what the generator knows of the rows.

mod asking;
mod data;

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use halcyon_oracle::{Result, Version};
use serde::Serialize;
use serde_json::json;

use self::asking::{Asking, Bind, Look, Row, Until};
use crate::connection::{self, bigint, create_keyspace};
use crate::invocation::{Experiment, Invocation, Listed};
use crate::load::Random;
use crate::page::Page;
use crate::record::{Contender, Measurements, Record, Target};
use crate::server::{Plan, Server};

const COLUMNS: &str = "id bigint PRIMARY KEY, hundred int, thousand int, own bigint, word text";
const INSERT: &str = "(id, hundred, thousand, own, word) VALUES (?, ?, ?, ?, ?)";
const NEAREST: usize = 10;
const VECTORS: &str = "ten nearest of all vectors";
/// Searches whose answers are compared with all vectors.
const SEARCHES: u64 = 200;

/// Heading of a kind of write, its table, what is made beside it.
const WRITES: [(&str, &str, &str); 4] = [
    ("writes: plain", "plain", ""),
    (
        "writes: an index",
        "indexed",
        "CREATE INDEX IF NOT EXISTS indexed_own ON q.indexed (thousand)",
    ),
    (
        "writes: a storage-attached index",
        "attached",
        "CREATE INDEX IF NOT EXISTS attached_sai ON q.attached (thousand) USING 'sai'",
    ),
    (
        "writes: a view",
        "viewed",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS q.by_thousand AS SELECT * FROM q.viewed WHERE thousand IS NOT NULL AND id IS NOT NULL \
         PRIMARY KEY (thousand, id)",
    ),
];

/// What a query asks of the rows.
#[derive(Clone, Copy)]
enum Wanted {
    Hundred,
    Thousand,
    Own,
    /// This many rows by `own`.
    Range(u64),
    Both,
}

/// Heading, table, WHERE clause, what it means.
const QUERIES: [(&str, &str, &str, Wanted); 9] = [
    ("index: one row in 100", "by_index", "hundred = ?", Wanted::Hundred),
    ("index: one row in 1,000", "by_index", "thousand = ?", Wanted::Thousand),
    ("index: one row", "by_index", "own = ?", Wanted::Own),
    ("storage-attached: one row in 100", "by_sai", "hundred = ?", Wanted::Hundred),
    ("storage-attached: one row in 1,000", "by_sai", "thousand = ?", Wanted::Thousand),
    ("storage-attached: one row", "by_sai", "own = ?", Wanted::Own),
    (
        "storage-attached: a range of 1,000 rows",
        "by_sai",
        "own >= ? AND own < ?",
        Wanted::Range(1_000),
    ),
    ("storage-attached: a range of 10 rows", "by_sai", "own >= ? AND own < ?", Wanted::Range(10)),
    ("storage-attached: two at once", "by_sai", "hundred = ? AND thousand = ?", Wanted::Both),
];

#[derive(clap::Args, Serialize)]
pub(crate) struct Arguments {
    /// Rows of each table that is asked
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    #[arg(long, default_value_t = 100_000)]
    vectors: u64,
    /// Seconds of each turn
    #[arg(long, default_value_t = 8.0)]
    seconds: f64,
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Connections that write, each one row at a time
    #[arg(long, default_value_t = 32)]
    writers: u64,
    /// Connections that ask, each one query at a time
    #[arg(long, default_value_t = 4)]
    readers: u64,
}

impl Experiment for Arguments {
    const LISTED: Listed = Listed {
        name: "cql",
        asks: "What do indexes, views and the search for vectors cost?",
        page,
    };
    const DATA: &'static str = "queries";

    fn shrink(&mut self) {
        (self.rows, self.vectors, self.seconds, self.rounds) = (2_000, 300, 0.2, 1);
    }

    fn run(self, invocation: &mut Invocation) -> Result<()> {
        let mut bench = Bench { arguments: &self, invocation, servers: Vec::new(), seed: 1 };
        bench.start()?;
        for _ in 0..self.rounds {
            for kind in WRITES {
                bench.write(kind)?;
            }
            bench.invocation.write()?;
        }
        bench.fill()?;
        for _ in 0..self.rounds {
            for query in QUERIES {
                bench.ask(query)?;
            }
            bench.search()?;
            bench.invocation.write()?;
        }
        Ok(())
    }
}

fn page(record: &mut Record) -> Result<Page> {
    let of = |start: &str| -> Vec<String> {
        let headings = record.headings().into_iter();
        headings.filter(|heading| heading.starts_with(start)).map(str::to_owned).collect()
    };
    let queries = [of("index"), of("storage")].concat();
    let drawn = [of("writes"), queries.clone(), of(VECTORS)].concat();
    let names = json!({
        "drawn": drawn,
        "writes": of("writes"),
        "queries": queries,
        "searches": of(VECTORS),
    });
    Ok(Page {
        template: include_str!("../../cql/page.md"),
        targets: targets(record),
        names,
        ..Page::default()
    })
}

struct Bench<'a> {
    arguments: &'a Arguments,
    invocation: &'a mut Invocation,
    servers: Vec<Server>,
    seed: u64,
}

impl Bench<'_> {
    fn start(&mut self) -> Result<()> {
        const SETTINGS: [&str; 2] =
            ["materialized_views_enabled: true", "commitlog_sync_period: 10000ms"];
        if self.invocation.takes_part("halcyon") {
            let plan = Plan::halcyon("periodic", self.invocation.fresh("halcyon")?);
            self.ready(&plan.set_all(&SETTINGS).set("commitlog_sync: periodic"))?;
        }
        if self.invocation.takes_part(Version::V5.name()) {
            let plan =
                Plan::cassandra(Version::V5, "periodic", self.invocation.data.join("cassandra"));
            self.ready(&plan.set_all(&SETTINGS).set("commitlog_sync: periodic").heap("4g"))?;
        }
        Ok(())
    }

    fn ready(&mut self, plan: &Plan<'_>) -> Result<()> {
        let server = Server::start(&self.invocation.programs, plan)?;
        let mut connection = connection::open(server.port)?;
        create_keyspace(&mut connection, "q")?;
        for table in ["plain", "indexed", "attached", "viewed", "by_index", "by_sai"] {
            connection.query(&format!("CREATE TABLE IF NOT EXISTS q.{table} ({COLUMNS})"))?;
        }
        connection.query(&format!(
            "CREATE TABLE IF NOT EXISTS q.vectors (id bigint PRIMARY KEY, v vector<float, {}>)",
            data::DIMENSIONS
        ))?;
        for (_, _, beside) in WRITES.iter().filter(|(_, _, beside)| !beside.is_empty()) {
            connection.query(beside)?;
        }
        server.freeze()?;
        self.servers.push(server);
        Ok(())
    }

    /// A turn of each server.
    fn turns(
        &mut self,
        heading: &str,
        turn: impl Fn(&Bench<'_>, &Server) -> Result<Measurements>,
    ) -> Result<()> {
        self.seed += 1;
        for server in std::mem::take(&mut self.servers) {
            let figures = server.awake(|| turn(self, &server))?;
            self.invocation.record.add(heading, &server.contender, figures);
            self.servers.push(server);
        }
        Ok(())
    }

    fn write(&mut self, (heading, table, _): (&str, &str, &str)) -> Result<()> {
        let statement = format!("INSERT INTO q.{table} {INSERT}");
        let rows = self.arguments.rows;
        self.turns(heading, |bench, server| {
            let (bind, look): (Bind<'_>, Look<'_>) =
                (&|random| data::row(random.below(rows)), &|_, _| Ok(()));
            let asking = bench.asking(&statement, bench.arguments.writers, bind, look);
            server.asked(|port| asking.run(port))
        })
    }

    fn asking<'b>(
        &self,
        statement: &'b str,
        connections: u64,
        bind: Bind<'b>,
        look: Look<'b>,
    ) -> Asking<'b> {
        let until = Until::Seconds(self.arguments.seconds);
        Asking { statement, connections, seed: self.seed, until, bind, look }
    }

    /// Fills the tables that are asked, and makes their indexes, on every server.
    fn fill(&mut self) -> Result<()> {
        let (rows, vectors) = (self.arguments.rows, self.arguments.vectors);
        for server in &self.servers {
            server.awake(|| {
                for table in ["by_index", "by_sai"] {
                    fill(server, &format!("INSERT INTO q.{table} {INSERT}"), rows, 32, &data::row)?;
                }
                let row =
                    |id: u64| vec![id.to_be_bytes().to_vec(), data::bytes(&data::vector(id, 3))];
                fill(server, "INSERT INTO q.vectors (id, v) VALUES (?, ?)", vectors, 32, &row)?;
                settle(server)
            })?;
        }
        Ok(())
    }

    fn ask(&mut self, (heading, table, clause, wanted): (&str, &str, &str, Wanted)) -> Result<()> {
        let statement = format!("SELECT id, word FROM q.{table} WHERE {clause}");
        let rows = self.arguments.rows;
        self.turns(heading, |bench, server| {
            let bind = |random: &mut Random| wanted.bind(random, rows);
            let found = AtomicU64::new(0);
            let look = |values: &[Vec<u8>], answer: &[Row]| {
                found.fetch_add(answer.len() as u64, Relaxed);
                wanted.check(values, answer, rows)
            };
            let asking = bench.asking(&statement, bench.arguments.readers, &bind, &look);
            let figures = server.asked(|port| asking.run(port))?;
            let queries = figures.get("count").unwrap_or(1.0).max(1.0);
            Ok(figures.with("rows", found.into_inner() as f64 / queries))
        })
    }

    fn search(&mut self) -> Result<()> {
        const STATEMENT: &str = "SELECT id FROM q.vectors ORDER BY v ANN OF ? LIMIT 10";
        let count = self.arguments.vectors;
        let all: Vec<Vec<f32>> = (0..count).map(|id| data::vector(id, 3)).collect();
        let known: Vec<HashSet<u64>> = (0..SEARCHES)
            .map(|n| data::nearest(&all, &data::vector(n, 5), NEAREST).into_iter().collect())
            .collect();
        self.turns(VECTORS, |bench, server| {
            let hits = Mutex::new((0_u64, 0_u64));
            let bind =
                |random: &mut Random| vec![data::bytes(&data::vector(random.below(SEARCHES), 5))];
            let numbers: std::collections::HashMap<Vec<u8>, usize> =
                (0..SEARCHES).map(|n| (data::bytes(&data::vector(n, 5)), n as usize)).collect();
            let look = |values: &[Vec<u8>], answer: &[Row]| {
                let known = values.first().and_then(|value| known.get(*numbers.get(value)?));
                let known = known.ok_or("an unknown search")?;
                let hit = answer.iter().filter_map(|row| bigint(row.first()?.as_ref()));
                let hit = hit.filter(|id| known.contains(id)).count() as u64;
                let mut hits = hits.lock().map_err(|_| "a thread panicked")?;
                *hits = (hits.0 + hit, hits.1 + known.len() as u64);
                Ok(())
            };
            let asking = bench.asking(STATEMENT, bench.arguments.readers, &bind, &look);
            let figures = server.asked(|port| asking.run(port))?;
            let (hit, of) = *hits.lock().map_err(|_| "a thread panicked")?;
            Ok(figures.with("recall", hit as f64 / of.max(1) as f64))
        })
    }
}

impl Wanted {
    fn bind(self, random: &mut Random, rows: u64) -> Vec<Vec<u8>> {
        let id = random.below(rows);
        match self {
            Wanted::Hundred => vec![data::of_hundred(id).to_be_bytes().to_vec()],
            Wanted::Thousand => vec![data::of_thousand(id).to_be_bytes().to_vec()],
            Wanted::Own => vec![id.to_be_bytes().to_vec()],
            Wanted::Range(count) => {
                let first = random.below(rows.saturating_sub(count).max(1));
                [first, first + count].map(|bound| bound.to_be_bytes().to_vec()).to_vec()
            }
            Wanted::Both => vec![
                data::of_hundred(id).to_be_bytes().to_vec(),
                data::of_thousand(id).to_be_bytes().to_vec(),
            ],
        }
    }

    /// Every row fits, none is missing where their number is known.
    fn check(self, values: &[Vec<u8>], answer: &[Row], rows: u64) -> Result<()> {
        let value = |at: usize| values.get(at).map(Vec::as_slice).unwrap_or_default();
        let ids = answer.iter().map(|row| bigint(row.first().and_then(Option::as_ref)));
        for id in ids {
            let id = id.ok_or("a row without a key")?;
            let fits = match self {
                Wanted::Hundred => data::of_hundred(id).to_be_bytes() == value(0),
                Wanted::Thousand => data::of_thousand(id).to_be_bytes() == value(0),
                Wanted::Own => id.to_be_bytes() == value(0),
                Wanted::Range(_) => (value(0)..value(1)).contains(&&id.to_be_bytes()[..]),
                Wanted::Both => {
                    data::of_hundred(id).to_be_bytes() == value(0)
                        && data::of_thousand(id).to_be_bytes() == value(1)
                }
            };
            if !fits {
                return Err(format!("row {id} is not of the answer").into());
            }
        }
        let expected = match self {
            Wanted::Own => 1..=1,
            Wanted::Range(count) => count.min(rows)..=count,
            Wanted::Hundred | Wanted::Thousand | Wanted::Both => 1..=rows,
        };
        if expected.contains(&(answer.len() as u64)) {
            return Ok(());
        }
        Err(format!("{} rows, not {expected:?}", answer.len()).into())
    }
}

/// Writes every row once.
fn fill(
    server: &Server,
    statement: &str,
    rows: u64,
    connections: u64,
    row: &(dyn Fn(u64) -> Vec<Vec<u8>> + Sync),
) -> Result<()> {
    let next = AtomicU64::new(0);
    let bind = |_: &mut Random| row(next.fetch_add(1, Relaxed));
    let asking = Asking {
        statement,
        connections,
        seed: 1,
        until: Until::Count(rows),
        bind: &bind,
        look: &|_, _| Ok(()),
    };
    asking.run(server.port).map(drop)
}

/// Brings everything into SSTables, makes the indexes, and waits until they answer.
fn settle(server: &Server) -> Result<()> {
    const BUILT_WITHIN: Duration = Duration::from_secs(1_800);
    let mut connection = connection::open(server.port)?;
    server.flush("q")?;
    for column in ["hundred", "thousand", "own"] {
        for (name, table, using) in [("i", "by_index", ""), ("s", "by_sai", " USING 'sai'")] {
            connection
                .query(&format!("CREATE INDEX {name}_{column} ON q.{table} ({column}){using}"))?;
        }
    }
    let with = "WITH OPTIONS = {'similarity_function': 'cosine'}";
    connection.query(&format!("CREATE INDEX nearest ON q.vectors (v) USING 'sai' {with}"))?;
    let (began, zeros) = (Instant::now(), vec!["1"; data::DIMENSIONS].join(", "));
    for question in [
        "SELECT id FROM q.by_index WHERE hundred = 0 AND thousand = 0 AND own = 0 ALLOW FILTERING"
            .to_owned(),
        "SELECT id FROM q.by_sai WHERE hundred = 0 AND thousand = 0 AND own = 0".to_owned(),
        format!("SELECT id FROM q.vectors ORDER BY v ANN OF [{zeros}] LIMIT 1"),
    ] {
        while let Err(error) = connection.query(&question) {
            if began.elapsed() > BUILT_WITHIN {
                return Err(format!("{}: not built: {error}", server.contender.name()).into());
            }
            sleep(Duration::from_millis(200));
        }
    }
    Ok(())
}

fn targets(record: &Record) -> Vec<Target> {
    let (ours, theirs) =
        (Contender::new("halcyon", "periodic"), Contender::new(Version::V5.name(), "periodic"));
    let of = |heading: &str, who: &Contender, figure: &str| record.median(heading, who, figure);
    let mut targets = Vec::new();
    let plain = WRITES[0].0;
    for (heading, limit) in [(WRITES[1].0, 1.6), (WRITES[2].0, 1.6), (WRITES[3].0, 2.5)] {
        let ratio =
            |who| Some(of(heading, who, "server_cpu_us")? / of(plain, who, "server_cpu_us")?);
        let Some(ratio_of_ours) = ratio(&ours) else { continue };
        let beside =
            ratio(&theirs).map(|theirs| format!(" (Cassandra {theirs:.2})")).unwrap_or_default();
        targets.push(Target::new(
            format!("{heading}: CPU of a write by that of a plain one"),
            format!("≤ {limit}"),
            format!("{ratio_of_ours:.2}{beside}"),
            ratio_of_ours <= limit,
        ));
    }
    for (heading, ..) in QUERIES {
        let ratio =
            || Some(of(heading, &theirs, "server_cpu_us")? / of(heading, &ours, "server_cpu_us")?);
        if let Some(ratio) = ratio() {
            targets.push(Target::new(
                format!("{heading}: Cassandra's CPU of a query by Halcyon's"),
                "≥ 4",
                format!("{ratio:.1}"),
                ratio >= 4.0,
            ));
        }
    }
    if let Some(recall) = of(VECTORS, &ours, "recall") {
        targets.push(Target::new(
            "recall@10 of vectors",
            "≥ 0.95",
            format!("{recall:.3}"),
            recall >= 0.95,
        ));
    }
    let rate = || Some(of(VECTORS, &ours, "per_second")? / of(VECTORS, &theirs, "per_second")?);
    if let Some(ratio) = rate() {
        targets.push(Target::new(
            "searches for vectors a second by Cassandra's",
            "≥ 3",
            format!("{ratio:.1}"),
            ratio >= 3.0,
        ));
    }
    targets
}
