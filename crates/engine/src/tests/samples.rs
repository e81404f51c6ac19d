//! Samplings of tables (`nodetool profileload`).

use super::point::uncompacted;
use super::*;
use crate::{Sampled, Sampler};

fn found(samples: &[(Sampler, Vec<Sampled>)], of: Sampler) -> Vec<(&str, u64)> {
    let (_, found) = samples.iter().find(|(sampler, _)| *sampler == of).expect("sampled");
    assert!(found.iter().all(|sampled| sampled.table == "ks.t" && sampled.error == 0));
    found.iter().map(|sampled| (sampled.value.as_str(), sampled.count)).collect()
}

async fn visit(node: &Node, table: &Arc<Table>, k: i32) {
    let mut stream = node.shard.read(read(table, k, Slices::all())).await.expect("read");
    while stream.advance().await.expect("advance") {}
}

/// Proves that a sampling finds what is read and written while it runs, that of two samplings of one table only one begins, and that one
/// that is dropped ends.
#[test]
fn a_sampling_finds_what_happens_meanwhile() {
    simulate(async {
        let (disk, _) = Disk::simulated(7);
        let node = start(disk).await.expect("starts");
        let table = uncompacted("t", ID);
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        let write = async |k: i32, timestamp: i64| {
            node.shard.apply(vec![insert(&table, k, 1, k, timestamp)]).await.expect("applied");
        };
        for timestamp in 1..3 {
            write(1, timestamp).await;
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        }
        let samplers =
            [Sampler::Reads, Sampler::Writes, Sampler::ReadSSTableCount, Sampler::WriteSize];
        let tables = node.engine.tables();
        assert!(!node.shard.is_profiled());
        let sampling = tables.begin_sampling(&[ID], &samplers, 16).expect("begins");
        let second = tables.begin_sampling(&[ID], &[Sampler::CasContentions, Sampler::Reads], 16);
        let why = second.err().expect("refused").to_string();
        assert!(why.contains("Sampling already in progress"), "{why}");
        let other = tables.begin_sampling(&[ID], &[Sampler::CasContentions], 16).expect("begins");
        drop(other);
        assert!(node.shard.is_profiled());
        write(2, 3).await;
        write(2, 4).await;
        write(3, 5).await;
        for k in [1, 1, 2, 9] {
            visit(&node, &table, k).await;
        }
        let samples = sampling.finish(2);
        assert_eq!(found(&samples, Sampler::Reads), [("1", 2), ("2", 1)]);
        assert_eq!(found(&samples, Sampler::Writes), [("2", 2), ("3", 1)]);
        assert_eq!(found(&samples, Sampler::ReadSSTableCount), [("1", 2), ("1", 2)]);
        // The partition, the row, its clustering and its cell.
        let sizes = found(&samples, Sampler::WriteSize);
        assert!(
            sizes.len() == 2 && sizes.iter().all(|(_, size)| *size == 29 + 21 + 4 + 24),
            "{sizes:?}"
        );
        assert!(!node.shard.is_profiled());
        visit(&node, &table, 1).await;
        let again = tables.begin_sampling(&[ID], &samplers, 16).expect("begins again");
        assert!(again.finish(9).iter().all(|(_, found)| found.is_empty()));
    });
}
