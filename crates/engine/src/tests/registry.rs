//! What a registry shows of a node.

use halcyon_metrics::{Registry, Value};

use super::*;

/// Proves that engine and disk declare no metric twice, and that a walk shows what a flush and a read have counted, by Cassandra's names.
#[test]
fn a_walk_shows_tables_and_purposes() {
    simulate(async {
        let (disk, _) = Disk::simulated(1);
        let node = start(disk.clone()).await.expect("starts");
        let mut registry = Registry::default();
        registry.register(node.engine.clone());
        registry.register(Arc::new(disk));
        let table = table();
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        node.shard.apply(vec![insert(&table, 1, 1, 1, 1)]).await.expect("applied");
        node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        spell(&node.shard, read(&table, 1, Slices::all())).await;
        let mut shown = BTreeMap::new();
        registry.walk(&mut |sample| {
            let value = match sample.value {
                Value::Number(number) => number,
                Value::Fraction(fraction) => fraction.to_bits(),
                Value::Distribution(values) => values.count(),
            };
            assert!(shown.insert(sample.to_string(), value).is_none(), "{sample} is shown twice");
        });
        let of_table = |name: &str| {
            shown[&format!(
                "org.apache.cassandra.metrics:type=Table,keyspace=ks,scope=t,name={name}"
            )]
        };
        let names = ["MemtableSwitchCount", "PendingFlushes", "LiveSSTableCount", "WriteLatency"];
        assert_eq!(names.map(of_table), [1, 0, 1, 1]);
        let counted = ["EstimatedPartitionCount", "SSTablesPerReadHistogram", "PendingCompactions"];
        assert_eq!(counted.map(of_table), [1, 1, 0]);
        assert_eq!(of_table("BytesFlushed"), of_table("LiveDiskSpaceUsed"));
        assert_eq!(f64::from_bits(of_table("BloomFilterFalseRatio")), 0.0);
        let of_log =
            |name: &str| shown[&format!("org.apache.cassandra.metrics:type=CommitLog,name={name}")];
        assert!(of_log("CompletedTasks") >= 1 && of_log("TotalCommitLogSize") > 0);
        assert_eq!((of_log("PendingTasks"), of_log("WaitingOnCommit") >= 1), (0, true));
        // The selection of rows records its time, and this read selects none.
        assert_eq!(of_table("ReadLatency"), 0);
        assert_eq!(shown["halcyon.metrics:type=Table,keyspace=ks,scope=t,name=SSTablesRead"], 1);
        assert_eq!(
            shown["org.apache.cassandra.metrics:type=Batch,name=PartitionsPerLoggedBatch"],
            0
        );
        assert!(shown["halcyon.metrics:type=IO,scope=flush,name=Operations"] > 0);
        assert!(shown["halcyon.metrics:type=IO,scope=flush,name=Latency"] > 0);
    });
}
