//! Indexes against a look at every row, through flushes, compactions, kills, and indexes that come and go.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::PathBuf;
use std::time::Duration;

use halcyon_io::{Random, clock};
use halcyon_model::hex;
use halcyon_schema::index::{Index, IndexSearch, Search, TARGET};
use halcyon_sstable::attached::component_name;
use halcyon_stream::{PrimaryKey, PrimaryKeyRange};

use super::*;
use crate::Error;

const VALUES: u64 = 5;

/// `t` with indexes on these columns, named after them.
fn indexed(columns: &[&str]) -> Arc<Table> {
    let mut table = Table::clone(&table());
    for column in columns {
        let options = BTreeMap::from([(TARGET.to_owned(), (*column).to_owned())]);
        let type_of = |name: &str| Some(&table.column(table.find_column(name)?)?.cql_type);
        let index = Index::stored((*column).to_owned(), "COMPOSITES", options, type_of);
        table.indexes.push(index);
    }
    Arc::new(table)
}

fn equal(index: &str, value: i32) -> IndexSearch {
    IndexSearch { index: index.to_owned(), search: Search::Equal(value.to_be_bytes().to_vec()) }
}

fn everything() -> PrimaryKeyRange {
    PrimaryKeyRange { start: PrimaryKey::before_token(i64::MIN), end: None }
}

fn int(bytes: &[u8]) -> i32 {
    i32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

/// `(k, c)` of all candidates, found a few at a time.
async fn found(
    node: &Node,
    table: &Arc<Table>,
    searches: &[IndexSearch],
    limit: usize,
) -> Result<Vec<(i32, i32)>> {
    let mut range = everything();
    let mut found = Vec::new();
    let mut last = None;
    loop {
        let candidates = node.shard.candidates(table, searches, range.clone(), limit).await?;
        for place in candidates.places {
            assert!(last.as_ref() < Some(&place), "in the order of the table, each once");
            found.push((int(&place.key), int(place.clustering.get(1..).expect("a row"))));
            last = Some(place);
        }
        match candidates.next {
            Some(next) => range.start = next,
            None => return Ok(found),
        }
    }
}

/// What the rows say, for each index.
async fn check(node: &Node, table: &Arc<Table>, limit: usize, exact: bool) {
    let rows = contents(node, table).await;
    for index in &table.indexes {
        let value_of = |key: &(i32, i32), v: i32| if index.name == "v" { v } else { key.1 };
        for value in 0..VALUES as i32 {
            let all = found(node, table, &[equal(&index.name, value)], limit).await;
            let all: BTreeSet<_> = all.expect("available").into_iter().collect();
            let wanted = rows.iter().filter(|(key, v)| value_of(key, **v) == value);
            let wanted: BTreeSet<_> = wanted.map(|(key, _)| *key).collect();
            assert!(all.is_superset(&wanted), "{} = {value}: {all:?} lacks {wanted:?}", index.name);
            assert!(!exact || all == wanted, "{} = {value}: {all:?} is not {wanted:?}", index.name);
        }
        let bound = |value: i32| value.to_be_bytes().to_vec();
        let search =
            Search::Range { start: Bound::Excluded(bound(1)), end: Bound::Included(bound(3)) };
        let searches = [IndexSearch { index: index.name.clone(), search }];
        let all: BTreeSet<_> =
            found(node, table, &searches, limit).await.expect("available").into_iter().collect();
        let wanted = rows.iter().filter(|(key, v)| (2..=3).contains(&value_of(key, **v)));
        assert!(all.is_superset(&wanted.map(|(key, _)| *key).collect()), "a range");
    }
    if table.indexes.len() == 2 {
        for value in 0..VALUES as i32 {
            let both = [equal("v", value), equal("c", 1)];
            let all = found(node, table, &both, limit).await.expect("available");
            let mut wanted = rows.iter().filter(|(key, v)| key.1 == 1 && **v == value);
            assert!(wanted.all(|(key, _)| all.contains(key)), "both");
            assert!(!exact || all.iter().all(|key| key.1 == 1), "both");
        }
    }
}

fn random_write(table: &Table, random: &mut Random, timestamp: i64) -> Mutation {
    let (k, c) = (random.below(9) as i32, random.below(VALUES) as i32);
    insert(table, k, c, random.below(VALUES) as i32, timestamp)
}

async fn wait_until_built(node: &Node, table: &Arc<Table>) {
    // The clock of the simulation: builds are as fast as their tasks.
    for _ in 0..5 {
        node.engine.indexes().wait(table.id).await;
    }
}

async fn one_life(node: Node, random: &mut Random, clock: &mut i64) {
    let mut table = user_table(&node);
    wait_until_built(&node, &table).await;
    for _ in 0..40 {
        for _ in 0..random.below(12) {
            *clock += 1;
            let write = random_write(&table, random, *clock);
            node.shard.apply(vec![write]).await.expect("applied");
        }
        match random.below(12) {
            0..=2 => node.engine.flusher().flush(Some(table.id)).await.expect("flushed"),
            3 => {
                node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
                node.engine.compactor().compact(table.id).await.expect("compacted");
                check(&node, &table, 3, true).await;
            }
            4 => {
                let choices: [&[&str]; 4] = [&[], &["v"], &["c"], &["v", "c"]];
                table = indexed(choices[random.below(4) as usize]);
                change(&node, std::slice::from_ref(&table)).await.expect("schema");
                wait_until_built(&node, &table).await;
            }
            5 if random.below(4) == 0 => {
                node.engine.schema().truncate(table.id).await.expect("truncated")
            }
            _ => check(&node, &table, 1 + random.below(40) as usize, false).await,
        }
    }
    check(&node, &table, 7, false).await;
}

/// Proves that an index has every row that has the value, in order and by pages, whatever was flushed, compacted, built later, truncated
/// or killed; and nothing else, once all is compacted.
#[test]
fn indexes_find_what_rows_have() {
    for seed in 0..30 {
        let (_, sim) = Disk::simulated(seed);
        let mut random = Random::seeded(seed);
        let mut clock = 10;
        life(&sim, |disk| async move {
            let node = start(disk).await.expect("starts");
            change(&node, &[indexed(&["v"])]).await.expect("schema");
        });
        for _ in 0..3 {
            let (random, clock) = (&mut random, &mut clock);
            life(&sim, |disk| async move {
                let node = start(disk).await.expect("starts");
                one_life(node, random, clock).await;
            });
            sim.crash_to_synced();
        }
    }
}

/// Proves that a file that is missing, damaged or of another index is made again, that until then the index is not searched, and that
/// the files of dropped indexes go, and their names in TOC.txt.
#[test]
fn files_of_indexes_come_and_go() {
    let (_, sim) = Disk::simulated(3);
    let sim = &sim;
    let folder = format!("/halcyon/data/ks/t-{}", hex::encode(&ID));
    let folder = Path::new(&folder);
    life(sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        let table = indexed(&["v"]);
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        for c in 0..50 {
            node.shard.apply(vec![insert(&table, c % 3, c, c % 5, 10)]).await.expect("applied");
        }
        node.engine.drain().await.expect("drained");
    });
    let is_it =
        |path: &&PathBuf| path.to_string_lossy().ends_with(&component_name("v").expect("a name"));
    let file = || sim.files().iter().find(is_it).cloned();
    for damage in 0..3 {
        let path = file().expect("the index has a file");
        life(sim, |disk| async move {
            match damage {
                0 => disk.remove(&path).await.expect("removed"),
                1 => assert!(sim.flip(&path, 20, 3)),
                _ => disk.truncate_sync(&path, 100).await.expect("cut"),
            }
            let node = start(disk).await.expect("starts");
            let table = user_table(&node);
            let early = found(&node, &table, &[equal("v", 1)], 10).await;
            assert!(matches!(early, Err(Error::IndexNotAvailable(_))), "{early:?}");
            wait_until_built(&node, &table).await;
            check(&node, &table, 10, true).await;
            node.engine.drain().await.expect("drained");
        });
    }
    life(sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        change(&node, &[table()]).await.expect("schema");
        clock::sleep(Duration::from_secs(1)).await;
        node.engine.drain().await.expect("drained");
    });
    assert_eq!(file(), None);
    life(sim, |disk| async move {
        for path in disk.list(folder).await.expect("listed") {
            if path.name.ends_with("TOC.txt") {
                let toc = disk.read(&folder.join(&path.name), 1 << 20).await.expect("read");
                assert!(!String::from_utf8_lossy(&toc).contains("Halcyon"), "{toc:?}");
            }
        }
    });
}
