//! One session of writes and reads that Apache Cassandra 5.0.9 answered (`tests/data/recorded_writes.txt`), answered again by
//! a node on a simulated disk.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_cql::Schema;
use halcyon_cql::catalog::{Catalog, Keyspace, Table, TableKind};
use halcyon_engine::{Engine, Options, Shard};
use halcyon_io::{Disk, block_on, spawn};
use halcyon_model::CqlType;
use halcyon_model::value::hex;
use halcyon_stream::Mutation;

use crate::{
    Client, Coordinator, Error, Outcome, OwnedValue, PreparedStatement, QueryOptions, Rows,
    VirtualTables,
};

const SCHEMA: &str = "CREATE TYPE address (street text, zip int);
CREATE TABLE t (k int, c int, v int, w text, s int static, ss set<int> static, l list<int>, st set<int>, m map<text,int>,
ad address, fl frozen<list<int>>, PRIMARY KEY (k, c));
CREATE TABLE two (a int, b int, c int, d int, e int, v int, s int static, PRIMARY KEY ((a, b), c, d, e))
WITH CLUSTERING ORDER BY (c ASC, d DESC, e ASC);
CREATE TABLE simple (k int PRIMARY KEY, v int, w text, l list<int>, m map<text, int>, st set<int>, ad address,
fm frozen<map<text,int>>, du duration, dt date, bl blob);
CREATE TABLE cnt (k int PRIMARY KEY, c counter, d counter);
CREATE TABLE cnts (k int, j int, c counter, sc counter static, PRIMARY KEY (k, j));
CREATE TABLE ttl (k int PRIMARY KEY, v int) WITH default_time_to_live = 1000;
CREATE TABLE txt (k text PRIMARY KEY, v int);
CREATE TABLE txt2 (a text, b blob, c text, v int, PRIMARY KEY ((a, b), c));
CREATE TABLE pkonly (k int, c int, PRIMARY KEY (k, c));
CREATE TABLE gc0 (k int PRIMARY KEY, v int) WITH gc_grace_seconds = 0;
CREATE TABLE rf3.t (k int PRIMARY KEY, v int);
CREATE TABLE rf3.c (k int PRIMARY KEY, v counter);
CREATE TABLE system.local (key text PRIMARY KEY, host_id uuid);";

struct NoVirtualTables;

impl VirtualTables for NoVirtualTables {
    fn partitions<'a>(&'a self, _: &'a Table) -> Pin<Box<dyn Future<Output = Vec<Mutation>> + 'a>> {
        Box::pin(async { Vec::new() })
    }
}

fn catalog() -> Catalog {
    let schema = Schema::parse(SCHEMA, "km").expect("a schema");
    let mut keyspaces: BTreeMap<String, Keyspace> = BTreeMap::new();
    for (id, table) in (1u8..).zip(schema.tables()) {
        let factor = if table.keyspace == "rf3" { "3" } else { "1" };
        let keyspace = keyspaces.entry(table.keyspace.clone()).or_insert_with(|| Keyspace {
            name: table.keyspace.clone(),
            replication: BTreeMap::from([
                ("class".to_owned(), "org.apache.cassandra.locator.SimpleStrategy".to_owned()),
                ("replication_factor".to_owned(), factor.to_owned()),
            ]),
            durable_writes: true,
            is_virtual: false,
            tables: BTreeMap::new(),
            types: BTreeMap::new(),
        });
        for column in &table.regulars {
            if let CqlType::Udt(udt) = column.cql_type.thawed() {
                let name = String::from_utf8_lossy(&udt.name).into_owned();
                keyspace.types.insert(name, Arc::new(udt.as_ref().clone()));
            }
        }
        let table = Table::new([id; 16], TableKind::Regular, table.clone());
        keyspace.tables.insert(table.schema.name.clone(), Arc::new(table));
    }
    let keyspaces = keyspaces.into_iter().map(|(name, k)| (name, Arc::new(k))).collect();
    Catalog { version: [1; 16], keyspaces }
}

struct Session {
    coordinator: Coordinator,
    client: Client,
    last: Option<Arc<PreparedStatement>>,
}

impl Session {
    async fn open() -> Session {
        let (disk, _) = Disk::simulated(1);
        let options = Options::in_directory(std::path::Path::new("/halcyon"), 1);
        let (engine, _) = Engine::open(disk, options).await.expect("opens");
        let (shard, inbox) = Shard::open(engine.clone(), 0).await.expect("opens");
        spawn(inbox.serve(shard.clone())).detach();
        engine.change_schema(Arc::new(catalog()), Vec::new()).await.expect("a schema");
        let coordinator = Coordinator::new(shard, Rc::new(NoVirtualTables));
        let client = Client { keyspace: Some("km".to_owned()), role: None };
        let mut session = Session { coordinator, client, last: None };
        let local = "INSERT INTO system.local (key, host_id) VALUES ('local', 99921699-a4c0-4a3d-9c5c-3b5e6e3b6b1a)";
        session.answer(&format!("> {local}")).await;
        session
    }

    async fn answer(&mut self, line: &str) -> String {
        match self.run(line).await {
            Ok(Outcome::Void) => "ok".to_owned(),
            Ok(Outcome::Warned(warnings)) => format!("ok\\n  w {}", warnings.join("\\n  w ")),
            Ok(Outcome::Rows(rows)) => show(&rows),
            Ok(other) => format!("{other:?}"),
            Err(Error::Unavailable { consistency, required, alive, .. }) => format!(
                "! 1000 Cannot achieve consistency level {consistency} required {required} alive {alive}"
            ),
            Err(error) => format!("! 2200 {error}"),
        }
    }

    async fn run(&mut self, line: &str) -> crate::Result<Outcome> {
        let (tag, text) = line[1..].split_once(' ').expect("a text");
        let mut options =
            QueryOptions { consistency: 1, protocol_version: 5, ..QueryOptions::default() };
        if tag == "b" {
            options.values = text
                .split(' ')
                .map(|value| match value {
                    "null" => OwnedValue::Null,
                    "unset" => OwnedValue::Unset,
                    value => OwnedValue::Bytes(bytes(value)),
                })
                .collect();
            let statement = self.last.clone().expect("prepared");
            return self.coordinator.execute(&statement, &options, &self.client).await;
        }
        if let Some((consistency, serial)) = tag.split_once('/') {
            options.consistency = consistency.parse().expect("a level");
            options.serial_consistency = serial.parse().ok();
        }
        let statement = Arc::new(self.coordinator.prepare(text, &self.client)?);
        if tag == "p" {
            self.last = Some(statement);
            return Ok(Outcome::Void);
        }
        self.coordinator.execute(&statement, &options, &self.client).await
    }
}

fn bytes(text: &str) -> Vec<u8> {
    let text = text.replace('\'', "");
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex"))
        .collect()
}

fn show(rows: &Rows) -> String {
    let names: Vec<&str> = rows.columns.iter().map(|column| column.name.as_str()).collect();
    let mut content = rows.content.as_slice();
    let mut value = || {
        let (length, rest) = content.split_first_chunk::<4>().expect("a length");
        content = rest;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            return "null".to_owned();
        };
        let (value, rest) = content.split_at(length);
        content = rest;
        hex(value)
    };
    let shown: Vec<String> = (0..rows.count)
        .map(|_| names.iter().map(|_| value()).collect::<Vec<_>>().join(","))
        .collect();
    format!("{} | {}", names.join(","), shown.join(";"))
}

/// Proves that writes of all kinds, batches, conditions and counters leave and answer what they do in Cassandra.
#[test]
fn a_session_is_answered_as_by_cassandra() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded_writes.txt");
    let recorded = std::fs::read_to_string(path).expect("readable");
    block_on(async {
        let mut session = Session::open().await;
        let mut lines = recorded.lines().skip(1);
        let mut wrong = Vec::new();
        while let (Some(text), Some(expected)) = (lines.next(), lines.next()) {
            let found = session.answer(text).await;
            if found != expected[2..] {
                wrong.push(format!(
                    "{text}\n   Cassandra: {}\n   Halcyon:   {found}",
                    &expected[2..]
                ));
            }
        }
        assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
    });
}
