//! Indexes on texts that are long or have very many terms.

use std::collections::BTreeSet;

use halcyon_io::Random;
use halcyon_model::analysis::Matching;
use halcyon_schema::index::{CLASS_NAME, Index, IndexSearch, Search, TARGET};
use halcyon_stream::{PrimaryKey, PrimaryKeyRange};

use super::*;
use crate::memtable::Memtable;

/// `t` with a text `v` and an index on it: `class` and options as in CREATE INDEX.
fn indexed(class: &str, more: &[(&str, &str)]) -> Arc<Table> {
    let mut schema = table().schema.clone();
    schema.regulars = vec![column("v", CqlType::Text)];
    let mut table = Table::new(ID, TableKind::Regular, schema);
    let all = [(TARGET, "v"), (CLASS_NAME, class)];
    let options = all.iter().chain(more).map(|(name, value)| ((*name).into(), (*value).into()));
    let type_of = |_: &str| Some(&CqlType::Text);
    table.indexes.push(Index::stored("i".into(), "CUSTOM", options.collect(), type_of));
    assert!(table.indexes[0].is_kept());
    Arc::new(table)
}

const SASI: &str = "org.apache.cassandra.index.sasi.SASIIndex";
const SAI: &str = "StorageAttachedIndex";

fn contains() -> Arc<Table> {
    indexed(SASI, &[("mode", "CONTAINS")])
}

fn write(table: &Table, k: i32, text: &[u8]) -> Mutation {
    let mut mutation = insert(table, k, 0, 0, 1);
    mutation.rows[0].parts.cells.clear();
    push_cell(&mut mutation.rows[0], text, i64::from(k));
    mutation
}

/// Letters that are all over the place.
fn random_text(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| b'!' + random.below(90) as u8).collect()
}

/// Proves that no index takes more than four times its texts, whatever they are, beside what the entries of one value take, that this is
/// counted, and that what takes long to index does not hold the shard.
#[test]
fn an_index_takes_a_few_times_its_texts() {
    let mut random = Random::seeded(1);
    let words: Vec<u8> = (0..200_000).flat_map(|n: u32| format!("{n:x} ").into_bytes()).collect();
    let texts = [random_text(&mut random, 1 << 20), words, vec![b'a'; 1 << 20]];
    let standard = "org.apache.cassandra.index.sasi.analyzer.StandardAnalyzer";
    let analyzed = [("analyzed", "true"), ("analyzer_class", standard)];
    let of_words = indexed(SASI, &analyzed);
    let both = indexed(SASI, &[&analyzed[..], &[("mode", "CONTAINS")]].concat());
    for table in [contains(), of_words, both, indexed(SAI, &[("case_sensitive", "false")])] {
        for text in &texts {
            for length in [64, 1_000, 8_000, 30_000, text.len()] {
                let Some(text) = text.get(..length) else { continue };
                let grown = |table: &Arc<Table>| {
                    let mut memtable = Memtable::new(table.clone());
                    let mutation = write(table, 1, text);
                    assert!(
                        length < 10_000
                            || table.indexes.is_empty()
                            || memtable.indexes_much(&mutation)
                    );
                    memtable.apply(mutation).expect("applied");
                    memtable.bytes()
                };
                let plain = Arc::new(Table { indexes: Vec::new(), ..Table::clone(&table) });
                let by = grown(&table) - grown(&plain);
                assert!(by <= 4 * length + 3_000, "{length}: {by} {:?}", table.indexes[0].options);
            }
        }
    }
}

async fn found(node: &Node, table: &Arc<Table>, asked: &[u8], limit: usize) -> BTreeSet<i32> {
    let search = Search::Like(Matching::Contains, asked.to_vec());
    let searches = [IndexSearch { index: "i".into(), search }];
    let mut range = PrimaryKeyRange { start: PrimaryKey::before_token(i64::MIN), end: None };
    let (mut all, mut last) = (BTreeSet::new(), None);
    loop {
        let candidates =
            node.shard.candidates(table, &searches, range.clone(), limit).await.expect("found");
        for place in candidates.places {
            assert!(last.as_ref() < Some(&place), "in the order of the table, each once");
            all.insert(i32::from_be_bytes((*place.key).try_into().expect("four bytes")));
            last = Some(place);
        }
        match candidates.next {
            Some(next) => range.start = next,
            None => return all,
        }
    }
}

/// Proves that a search within texts of any length finds all that have what it looks for, and with more than a page few others, in
/// memory and in files, by any number at a time.
#[test]
fn texts_of_any_length_are_found() {
    simulate(async {
        let (disk, _) = Disk::simulated(1);
        let set = |options: &mut Options| options.commitlog.segment_size = 4 << 20;
        let node = start_with(disk, set).await.expect("starts");
        let table = contains();
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        let mut random = Random::seeded(7);
        let lengths = [0, 1, 3, 4, 5, 31, 32, 33, 36, 200, 3_000, 9_000, 20_000, 200_000];
        let mut texts: Vec<Vec<u8>> = Vec::new();
        for round in 0..4 {
            for length in lengths {
                let text = random_text(&mut random, length);
                node.shard.apply(vec![write(&table, texts.len() as i32, &text)]).await.expect("ok");
                texts.push(text);
            }
            for asked in [3, 4, 12, 40] {
                let of = texts[lengths.len() * round + 4 + asked % 9].clone();
                let at = random.below(1 + of.len().saturating_sub(asked) as u64) as usize;
                let asked = of.get(at..(at + asked).min(of.len())).unwrap_or_default();
                let has = |text: &Vec<u8>| text.windows(asked.len().max(1)).any(|w| w == asked);
                let wanted = (0..).zip(&texts).filter(|(_, text)| has(text)).map(|(k, _)| k);
                let wanted: BTreeSet<i32> = wanted.collect();
                for limit in [1, 3, 1_000] {
                    let all = found(&node, &table, asked, limit).await;
                    assert!(all.is_superset(&wanted), "{round}: {all:?} lacks {wanted:?}");
                    let long = texts.iter().filter(|text| text.len() > 8_000).count();
                    assert!(asked.len() < 4 || all.len() <= wanted.len() + long, "{all:?}");
                }
            }
            match round {
                0 | 1 => node.engine.flusher().flush(Some(table.id)).await.expect("flushed"),
                _ => {}
            }
            if round == 2 {
                node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
                node.engine.compactor().compact(table.id).await.expect("compacted");
            }
        }
    });
}
