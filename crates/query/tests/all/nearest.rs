//! `ORDER BY … ANN OF` against all rows, scored one by one, on a node of two shards: through overwrites, deletions, expiry, flushes and
//! compactions.

use std::sync::Arc;
use std::time::Duration;

use halcyon_io::{Random, SimRuntime, clock};
use halcyon_model::access::Principal;
use halcyon_model::similarity::{Similarity, floats};
use halcyon_query::{Coordinator, Error, Outcome, QueryOptions, Rows};
use halcyon_stream::TableId;

use crate::node::start;

async fn execute(
    node: &Coordinator,
    text: &str,
    options: QueryOptions<'_>,
) -> Result<Option<Rows>, Error> {
    let statement = Arc::new(halcyon_query::prepare(node, text, None)?);
    let options = QueryOptions { protocol_version: 4, ..options };
    match halcyon_query::execute(node, &statement, &options, &Principal::Anonymous).await? {
        Outcome::Rows(rows) => Ok(Some(rows)),
        _ => Ok(None),
    }
}

async fn run(node: &Coordinator, text: &str) -> Rows {
    let done = execute(node, text, QueryOptions::default()).await;
    done.unwrap_or_else(|e| panic!("{text}: {e}")).unwrap_or_default()
}

fn values(rows: &Rows) -> Vec<Vec<Option<Vec<u8>>>> {
    let mut at = rows.content.as_slice();
    let mut value = || {
        let (length, rest) = at.split_first_chunk::<4>().expect("a length");
        at = rest;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
        let (bytes, rest) = at.split_at(length);
        at = rest;
        Some(bytes.to_vec())
    };
    (0..rows.count).map(|_| rows.columns.iter().map(|_| value()).collect()).collect()
}

/// `(k, c)`, and the score of each row that has a vector.
fn scores(rows: &Rows, similarity: Similarity, query: &[f32]) -> Vec<((i32, i32), f32)> {
    let int = |value: &Option<Vec<u8>>| {
        let bytes = value.as_deref().and_then(|bytes| bytes.try_into().ok());
        i32::from_be_bytes(bytes.expect("an int"))
    };
    let row = |row: Vec<Option<Vec<u8>>>| match row.as_slice() {
        [k, c, Some(vector)] => Some(((int(k), int(c)), similarity.score(&floats(vector), query))),
        _ => None,
    };
    values(rows).into_iter().filter_map(row).collect()
}

fn table_of(node: &Coordinator, name: &str) -> TableId {
    let find = |catalog: &halcyon_schema::catalog::Catalog| {
        catalog.table("ks", name).map(|table| table.id)
    };
    node.engine().tables().with_catalog(find).expect("there")
}

fn vector(random: &mut Random, dimension: usize) -> Vec<f32> {
    (0..dimension).map(|_| random.below(2000) as f32 / 100.0 - 9.995).collect()
}

fn literal(vector: &[f32]) -> String {
    let texts: Vec<String> = vector.iter().map(|float| format!("{float}")).collect();
    format!("[{}]", texts.join(", "))
}

async fn create(node: &Coordinator, name: &str, dimension: usize, function: &str) {
    run(node, "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").await;
    run(node, &format!("CREATE TABLE ks.{name} (k int, c int, a int, v vector<float, {dimension}>, PRIMARY KEY (k, c))")).await;
    run(node, &format!("CREATE INDEX ON ks.{name} (v) USING 'sai' WITH OPTIONS = {{'similarity_function': '{function}'}}")).await;
    run(node, &format!("CREATE INDEX ON ks.{name} (a) USING 'sai'")).await;
}

/// The rows of a query, and those of all that satisfy its condition, the best first.
async fn both(
    node: &Coordinator,
    condition: &str,
    similarity: Similarity,
    query: &[f32],
    limit: usize,
) -> [Vec<((i32, i32), f32)>; 2] {
    let from = format!("SELECT k, c, v FROM ks.t {condition}");
    let text = format!("{from} ORDER BY v ANN OF {} LIMIT {limit}", literal(query));
    let found = scores(&run(node, &text).await, similarity, query);
    let all = run(node, &format!("{from} ALLOW FILTERING")).await;
    let mut wanted = scores(&all, similarity, query);
    wanted.sort_by(|a, b| b.1.total_cmp(&a.1));
    wanted.truncate(limit);
    [found, wanted]
}

async fn change(node: &Coordinator, random: &mut Random, dimension: usize) {
    let (k, c, a) = (random.below(7), random.below(9), random.below(3));
    let v = literal(&vector(random, dimension));
    let text = match random.below(12) {
        0 => format!("DELETE FROM ks.t WHERE k = {k} AND c = {c}"),
        1 => format!("DELETE v FROM ks.t WHERE k = {k} AND c = {c}"),
        2 if a == 0 => format!("DELETE FROM ks.t WHERE k = {k}"),
        3 => format!("DELETE FROM ks.t WHERE k = {k} AND c > {c}"),
        4 => format!("INSERT INTO ks.t (k, c, a, v) VALUES ({k}, {c}, {a}, {v}) USING TTL 5"),
        5 => format!("INSERT INTO ks.t (k, c, a) VALUES ({k}, {c}, {a})"),
        _ => format!("INSERT INTO ks.t (k, c, a, v) VALUES ({k}, {c}, {a}, {v})"),
    };
    run(node, &text).await;
}

/// Proves that the nearest rows are found, all of them, in their order and each once, while they exist: whatever was overwritten,
/// deleted, has expired, was flushed or compacted; with conditions on the partition, the token, an indexed column.
#[test]
fn the_nearest_rows_are_found() {
    let functions = [
        ("cosine", Similarity::Cosine),
        ("EUCLIDEAN", Similarity::Euclidean),
        ("dot_product", Similarity::DotProduct),
    ];
    for seed in 0..12 {
        let (name, similarity) = functions[seed as usize % 3];
        SimRuntime::seeded(seed).block_on(async {
            let mut random = Random::seeded(seed);
            let node = start().await;
            let dimension = 2 + random.below(6) as usize;
            create(&node, "t", dimension, name).await;
            let engine = node.engine().clone();
            let table = table_of(&node, "t");
            for _ in 0..30 {
                for _ in 0..random.below(20) {
                    change(&node, &mut random, dimension).await;
                }
                match random.below(8) {
                    0 | 1 => engine.flusher().flush(Some(table)).await.expect("flushed"),
                    2 => drop(engine.compactor().compact(table).await.expect("compacted")),
                    3 => clock::sleep(Duration::from_secs(random.below(7))).await,
                    _ => {}
                }
                let conditions = [
                    String::new(),
                    format!("WHERE a = {}", random.below(3)),
                    format!("WHERE k = {}", random.below(7)),
                    format!("WHERE k = {} AND c > 3", random.below(7)),
                    format!("WHERE k = {} AND a = 1", random.below(7)),
                    "WHERE token(k) > 0".to_owned(),
                    "WHERE token(k) <= 0 AND a > 0".to_owned(),
                ];
                for condition in &conditions {
                    let query = vector(&mut random, dimension);
                    let limit = [1, 3, 10, 1000][random.below(4) as usize];
                    let both = both(&node, condition, similarity, &query, limit).await;
                    let of = |rows: &[((i32, i32), f32)]| -> Vec<f32> {
                        rows.iter().map(|row| row.1).collect()
                    };
                    let [found, wanted] = &both;
                    assert_eq!(of(found), of(wanted), "seed {seed}, {condition}, {limit}");
                    let mut keys: Vec<_> = found.iter().map(|row| row.0).collect();
                    keys.sort_unstable();
                    keys.dedup();
                    assert_eq!(keys.len(), found.len(), "each once");
                }
            }
        });
    }
}

/// Proves that graphs find at least 95 of 100 of the ten nearest rows, of random vectors and of clusters, also where half of what they
/// have is overwritten or deleted; and that all rows are found if the limit asks for all.
#[test]
fn graphs_find_most_of_the_nearest_rows() {
    for (seed, spread) in [(1, 1000.0), (2, 1.0)] {
        SimRuntime::seeded(seed).block_on(async {
            let mut random = Random::seeded(seed);
            let node = start().await;
            create(&node, "t", 8, "euclidean").await;
            let engine = node.engine().clone();
            let table = table_of(&node, "t");
            let centers: Vec<Vec<f32>> = (0..12).map(|_| vector(&mut random, 8)).collect();
            let mut point = || -> Vec<f32> {
                let center = &centers[random.below(12) as usize];
                let near = |float: &f32| float + random.below(1000) as f32 / 1000.0 * spread;
                center.iter().map(near).collect()
            };
            for round in 0..2 {
                for i in 0..4000 {
                    let v = literal(&point());
                    let (k, c) = (i % 50, i / 50 + round * 40);
                    let text =
                        format!("INSERT INTO ks.t (k, c, a, v) VALUES ({k}, {c}, {}, {v})", i % 2);
                    run(&node, &text).await;
                }
                engine.flusher().flush(Some(table)).await.expect("flushed");
            }
            for k in 0..5 {
                run(&node, &format!("DELETE FROM ks.t WHERE k = {k}")).await;
            }
            for step in 0..2 {
                if step == 1 {
                    engine.compactor().compact(table).await.expect("compacted");
                }
                let (mut hits, mut total) = (0, 0);
                for condition in ["", "WHERE a = 1", "WHERE token(k) > 0"] {
                    for _ in 0..10 {
                        let query = point();
                        let both = both(&node, condition, Similarity::Euclidean, &query, 10).await;
                        let [found, wanted] = &both;
                        assert_eq!(found.len(), 10);
                        hits += wanted.iter().filter(|row| found.contains(row)).count();
                        total += wanted.len();
                    }
                }
                assert!(hits * 100 >= total * 95, "seed {seed}: {hits} of {total}");
            }
            let query = point();
            let [found, wanted] =
                both(&node, "WHERE a = 0", Similarity::Euclidean, &query, 1000).await;
            assert_eq!((found.len(), wanted.len()), (1000, 1000));
        });
    }
}

/// Proves that what has no place in the order is refused when it is written and when it is asked for, and that a client learns what is
/// done otherwise than it asked.
#[test]
fn what_cannot_be_ordered_is_refused() {
    SimRuntime::seeded(1).block_on(async {
        let node = start().await;
        create(&node, "t", 2, "cosine").await;
        let zero = "Zero vectors cannot be indexed or queried with cosine similarity";
        let refused = [
            ("INSERT INTO ks.t (k, c, v) VALUES (1, 1, [0, 0])", zero),
            ("INSERT INTO ks.t (k, c, v) VALUES (1, 1, [1, NaN])", "non-finite value at vector[1]=NaN"),
            ("SELECT k FROM ks.t ORDER BY v ANN OF [0, 0] LIMIT 1", zero),
            ("SELECT k FROM ks.t ORDER BY v ANN OF null LIMIT 1", "Unsupported null value for column v"),
        ];
        for (text, why) in refused {
            let error = execute(&node, text, QueryOptions::default()).await.expect_err(text);
            assert_eq!(error.to_string(), why, "{text}");
        }
        run(&node, "INSERT INTO ks.t (k, c, v) VALUES (1, 1, null)").await;
        run(&node, "INSERT INTO ks.t (k, c, v) VALUES (1, 2, [1, 0])").await;
        run(&node, "INSERT INTO ks.t (k, c, v) VALUES (1, 3, [1, 1])").await;
        let options = QueryOptions {
            page_size: Some(1),
            consistency: halcyon_model::request::Consistency::Quorum,
            ..QueryOptions::default()
        };
        let text = "SELECT k, c, v FROM ks.t ORDER BY v ANN OF [1, 0] LIMIT 5";
        let rows = execute(&node, text, options).await.expect("rows").expect("rows");
        assert_eq!((rows.count, rows.paging_state), (2, None));
        assert_eq!(
            rows.warnings,
            [
                "Top-K queries can only be run with consistency level ONE / LOCAL_ONE / NODE_LOCAL. \
                 Consistency level QUORUM was requested. Downgrading the consistency level to ONE.",
                "Top-K queries do not support paging and the page size is set to 1, which is less than LIMIT 5. \
                 The page size has been set to 5 to match the LIMIT.",
            ]
        );
    });
}
