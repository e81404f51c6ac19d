//! What Apache Cassandra 5.0.9 answered to some hundreds of statements (`tests/data/recorded_*.txt`), compared with what
//! planning and binding give: values, bind markers, refusals.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::hex;
use halcyon_model::request::Value;
use halcyon_model::schema::ColumnKind;
use halcyon_model::uuid;
use halcyon_stream::RowBuf;

use super::modify::{BoundConditions, Company, CounterShard, CurrentPartition, CurrentRow};
use super::{Execution, Plan, Prepared, Work};
use halcyon_schema::Schema;
use halcyon_schema::catalog::{Catalog, Keyspace, Table, TableKind};
use halcyon_schema::index::Index;
use halcyon_syntax::{Error, Result};

const TERMS: &str = "CREATE TYPE address (street text, zip int, tags frozen<list<text>>);
CREATE TABLE x (k int PRIMARY KEY, a ascii, b bigint, bl blob, bo boolean, da date, de decimal, do double, du duration,
f float, i inet, n int, si smallint, t text, ti time, ts timestamp, tu timeuuid, ty tinyint, u uuid, va varint,
l list<int>, s set<text>, m map<text, int>, fl frozen<list<int>>, fs frozen<set<int>>, fm frozen<map<int, text>>,
ad address, fa frozen<address>, tp tuple<int, text, double>, v vector<float, 3>, nl list<frozen<list<int>>>,
mu map<int, frozen<address>>, vt vector<text, 2>, st set<frozen<tuple<int, text>>>, lts list<timestamp>, sd set<int>);";

const MODIFICATIONS: &str = "CREATE TYPE address (street text, zip int);
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
CREATE TABLE gc0 (k int PRIMARY KEY, v int) WITH gc_grace_seconds = 0;";

fn catalog(keyspace: &str, schema: &str) -> Catalog {
    let schema = Schema::parse(schema, keyspace).expect("a schema");
    let mut tables = BTreeMap::new();
    let mut types = BTreeMap::new();
    for (id, table) in (0u8..).zip(schema.tables()) {
        for column in &table.regulars {
            if let CqlType::Udt(udt) = column.cql_type.thawed() {
                let name = String::from_utf8_lossy(&udt.name).into_owned();
                types.insert(name, Arc::new(udt.as_ref().clone()));
            }
        }
        let table = Table::new([id; 16], TableKind::Regular, table.clone());
        tables.insert(table.schema.name.clone(), Arc::new(table));
    }
    let found = Keyspace {
        name: keyspace.to_owned(),
        replication: BTreeMap::new(),
        durable_writes: true,
        is_virtual: false,
        tables,
        types,
        functions: halcyon_schema::function::Functions::default(),
    };
    let keyspaces = BTreeMap::from([(keyspace.to_owned(), Arc::new(found))]);
    Catalog { keyspaces, ..Catalog::default() }
}

fn prepare(text: &str, catalog: &Catalog, keyspace: &str) -> Result<Prepared> {
    let statement = halcyon_syntax::parse_statement(text)?;
    super::prepare(&statement, catalog, Some(keyspace), &Work::while_there_is_time(&|| true))
}

fn bytes(text: &str) -> Vec<u8> {
    let text = text.replace('\'', "");
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex"))
        .collect()
}

/// The value that a mutation's only column has when it is read back.
fn value(row: Option<&RowBuf>, table: &Table, column: &str) -> String {
    let Some(row) = row else { return "null".to_owned() };
    let found = table.find_column(column).expect("a column");
    let live = |cell: &&halcyon_stream::Cell| !cell.is_tombstone();
    let mut current = CurrentRow::default();
    for cell in row.parts.cells.iter().filter(live) {
        current.push(cell.column, cell.path.of(&row.bytes), cell.value.of(&row.bytes));
    }
    let cql_type = &table.column(found).expect("a column").cql_type;
    current.value(found.index, cql_type).map_or("null".to_owned(), |value| hex::encode(&value))
}

fn run(text: &str, catalog: &Catalog, keyspace: &str) -> Result<String> {
    let (text, values) = text.split_once("  ?? ").map_or((text, None), |(t, v)| (t, Some(v)));
    let prepared = prepare(text, catalog, keyspace)?;
    if values.is_none() && !prepared.variables.specs.is_empty() {
        let names: Vec<&str> = prepared.variables.specs.iter().map(|s| s.name.as_str()).collect();
        let key: Vec<String> =
            prepared.variables.partition_key.iter().map(u16::to_string).collect();
        return Ok(format!("markers {} pk={}", names.join(","), key.join(",")));
    }
    let owned: Vec<Vec<u8>> = values
        .unwrap_or_default()
        .split(' ')
        .map(|v| match v {
            "null" | "unset" => Vec::new(),
            other => bytes(other),
        })
        .collect();
    let texts = values.unwrap_or_default().split(' ');
    let values: Vec<Value<'_>> = texts
        .zip(&owned)
        .map(|(text, bytes)| match text {
            "null" => Value::Null,
            "unset" => Value::Unset,
            _ => Value::Bytes(bytes),
        })
        .collect();
    let uuids = uuid::Generator::seeded(1);
    let work = Work::while_there_is_time(&|| true);
    let execution = Execution {
        values: &values,
        now_micros: 1_700_000_000_000_000,
        now_seconds: 1_700_000_000,
        protocol_version: 5,
        uuids: &uuids,
        json: &[],
        guard: None,
        work: &work,
    };
    let plans = match &prepared.plan {
        Plan::Modification(plan) => vec![plan.clone()],
        Plan::Batch(batch) => {
            batch.bind_timestamp(5, &execution)?;
            batch.statements.clone()
        }
        other => panic!("no modification: {other:?}"),
    };
    let mut last = String::new();
    for plan in plans {
        let bound = plan.bind(5, &Company::None, &execution)?;
        if let Some(BoundConditions::Columns(conditions)) = &bound.conditions {
            conditions.iter().try_for_each(|condition| condition.applies(None).map(drop))?;
        }
        let column = text.split(['(', ')']).nth(1).and_then(|list| list.split(", ").nth(1));
        for key in &bound.keys {
            if bound.requires_read() {
                continue;
            }
            let mutation = bound.mutation(key, &CurrentPartition::default(), CounterShard::NONE)?;
            if plan.table.schema.name == "x"
                && let Some(column) = column
                && plan.table.find_column(column).is_some_and(|c| c.kind == ColumnKind::Regular)
            {
                last = value(mutation.rows.first(), &plan.table, column);
            }
        }
    }
    Ok(last)
}

/// Names of the markers, without keyspace, table and type; then the partition key.
fn shorten_markers(expected: &str) -> String {
    let (specs, key) = expected.rsplit_once(" pk=").expect("the key");
    let specs = specs.trim_start_matches("markers ");
    // Names may hold commas: a spec begins with keyspace and table.
    let mut names = Vec::new();
    let starts: Vec<usize> = specs
        .char_indices()
        .filter(|(at, _)| {
            let here = &specs[*at..];
            (*at == 0 || specs[..*at].ends_with(','))
                && (here.starts_with("ks.")
                    || here.starts_with("km.")
                    || here.starts_with("[batch]."))
        })
        .map(|(at, _)| at)
        .collect();
    for (i, start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).map_or(specs.len(), |next| next - 1);
        let spec = &specs[*start..end];
        let name = spec.splitn(3, '.').nth(2).expect("a name");
        names.push(name.rsplit_once(':').map_or(name, |_| {
            let colon = name.find(':').expect("a type");
            &name[..colon]
        }));
    }
    format!("markers {} pk={key}", names.join(","))
}

fn check(file: &str, keyspace: &str, schema: &str, differences: &[&str]) {
    let catalog = catalog(keyspace, schema);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    let recorded = std::fs::read_to_string(path).expect("readable");
    let mut lines = recorded.lines().skip(1);
    let mut wrong = Vec::new();
    while let (Some(text), Some(expected)) = (lines.next(), lines.next()) {
        let (text, expected) = (&text[2..], &expected[2..]);
        if differences.iter().any(|known| text.contains(known)) {
            continue;
        }
        let found = match run(text, &catalog, keyspace) {
            Ok(value) => value,
            Err(error @ Error::FunctionFailure { .. }) => format!("! 1400 {error}"),
            Err(error) => format!("! 2200 {error}"),
        };
        // A statement that Halcyon does not support yet is compared once it is supported.
        if found.contains("not supported yet") {
            continue;
        }
        let expected = match expected {
            markers if markers.starts_with("markers") => shorten_markers(markers),
            "ok" if !found.starts_with('!') => continue,
            other => other.to_owned(),
        };
        if found != expected {
            wrong.push(format!("{text}\n   Cassandra: {expected}\n   Halcyon:   {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// Proves that literals and bound bytes of all types come to Cassandra's values or messages.
#[test]
fn terms_are_cassandras() {
    // Names of time zones other than UTC need a database of them; a parser finds the clash of columns before the timestamp.
    let differences =
        [" PST'", " CET'", "Europe/Paris'", "UPDATE x USING TTL ? AND TIMESTAMP ? SET l[?]"];
    check("recorded_terms.txt", "ks", TERMS, &differences);
}

/// Proves that modifications are accepted or refused as by Cassandra, with its messages and bind markers.
#[test]
fn modifications_are_cassandras() {
    check("recorded_modifications.txt", "km", MODIFICATIONS, &[]);
}

/// Proves that a value of 64 KiB is refused for Cassandra's own indexes, with its message, wherever the value stands.
#[test]
fn values_too_large_for_an_index() {
    let schema = "CREATE TABLE t (a int, b text, c text, s text static, v text, l list<text>, m map<text, text>, k map<text, int>,
        f frozen<list<text>>, e set<text>, PRIMARY KEY ((a, b), c));";
    let mut catalog = catalog("ki", schema);
    let keyspace = Arc::make_mut(catalog.keyspaces.get_mut("ki").expect("a keyspace"));
    let table = Arc::make_mut(keyspace.tables.get_mut("t").expect("a table"));
    let targets = ["c", "s", "v", "values(l)", "entries(m)", "keys(k)", "full(f)", "e"];
    table.indexes = targets
        .iter()
        .map(|target| {
            let options = BTreeMap::from([("target".to_owned(), (*target).to_owned())]);
            let type_of = |name: &str| Some(&table.column(table.find_column(name)?)?.cql_type);
            Index::stored(format!("{target}_idx"), "COMPOSITES", options, type_of)
        })
        .collect();
    let row = |columns: &str, values: &str| {
        format!("INSERT INTO t (a, b, c, {columns}) VALUES (1, 'b', 'c', {values})")
    };
    // What the index gets, beside the text itself.
    let statements = |text: &str| {
        [
            (format!("INSERT INTO t (a, b, c) VALUES (1, 'b', '{text}')"), "c", 0),
            (format!("INSERT INTO t (a, b, s) VALUES (1, 'b', '{text}')"), "s", 0),
            (row("v", &format!("'{text}'")), "v", 0),
            (row("l", &format!("['x', '{text}']")), "values(l)", 0),
            (row("m", &format!("{{'k': '{text}'}}")), "entries(m)", 7),
            (row("k", &format!("{{'{text}': 1}}")), "keys(k)", 0),
            (row("f", &format!("['{text}']")), "full(f)", 8),
            (row("e", &format!("{{'{text}'}}")), "e", 0),
        ]
    };
    let largest = 65534;
    for at in 0..targets.len() {
        let (_, target, beside) = statements("").into_iter().nth(at).expect("a statement");
        for (length, is_refused) in [(largest - beside, false), (largest - beside + 1, true)] {
            let (text, ..) = statements(&"x".repeat(length)).into_iter().nth(at).expect("one");
            let found = run(&text, &catalog, "ki").map_err(|error| error.to_string());
            let column = target.split(['(', ')']).nth(1).unwrap_or(target);
            let refusal = format!(
                "Cannot index value of size 65535 for index {target}_idx on ki.t({column}) (maximum allowed size=65535)"
            );
            match found {
                Ok(_) => assert!(!is_refused, "{target}"),
                Err(error) => assert!(is_refused && error == refusal, "{target}: {error}"),
            }
        }
    }
}
