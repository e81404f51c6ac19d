use std::sync::Arc;

use halcyon_metrics::{
    Counts, Kind, Labels, Metric, Reservoir, Sample, Seconds, Source, Summary, Unit, Value,
    buckets_below,
};

use super::*;

const DECLARED: [Metric; 7] = [
    Metric::cassandra("Table", "ReadLatency", "Local reads.").of(Kind::Timer, Unit::Nanoseconds),
    Metric::cassandra("Table", "LiveSSTableCount", "Live SSTables.").of(Kind::Gauge, Unit::Count),
    Metric::cassandra("Table", "TombstoneScannedHistogram", "Tombstones.")
        .of(Kind::Histogram, Unit::Count),
    Metric::cassandra("Storage", "Exceptions", "Errors."),
    Metric::cassandra("ThreadPools", "PendingTasks", "Waiting.").of(Kind::Gauge, Unit::Count),
    Metric::own("Table", "SSTablesRead", "SSTables that reads opened."),
    Metric::own("Client", "RequestWait", "Time in the queue.").of(Kind::Timer, Unit::Nanoseconds),
];

const BUCKETS: usize = buckets_below(4, 40);

/// Two tables, of which one has a name that no label may have as it is.
struct Node;

impl Source for Node {
    fn declared(&self) -> &'static [Metric] {
        &DECLARED
    }

    fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        let [reads, sstables, tombstones, exceptions, pending, read, wait] = &DECLARED;
        let of_reads = Reservoir::<4, BUCKETS>::default();
        of_reads.record(1_000_000, Seconds(60));
        let mut summary = Summary::nothing();
        summary.add(&of_reads, Seconds(60));
        for table in ["t", "a\\b\"c\nd"] {
            let labels = Labels { keyspace: Some("ks"), scope: Some(table), path: None };
            show(Sample { metric: reads, labels, value: Value::Distribution(&summary) });
            show(Sample { metric: sstables, labels, value: Value::Number(3) });
        }
        let labels = Labels { keyspace: Some("ks"), scope: Some("t"), path: None };
        show(Sample { metric: tombstones, labels, value: Value::Distribution(&summary) });
        show(Sample { metric: read, labels, value: Value::Number(9) });
        show(Sample { metric: exceptions, labels: Labels::default(), value: Value::Number(0) });
        let labels = Labels { keyspace: None, scope: Some("ReadStage"), path: Some("request") };
        show(Sample { metric: pending, labels, value: Value::Number(1) });
        let mut waits = Counts::<1, { buckets_below(1, 48) }>::default();
        waits.record_many(1500, 2);
        waits.record(3_000_000);
        show(Sample {
            metric: wait,
            labels: Labels::default(),
            value: Value::Distribution(&waits),
        });
    }
}

fn shown(format: Format) -> String {
    let mut registry = Registry::default();
    registry.register(Arc::new(Node));
    render(&registry, format)
}

/// Proves that Cassandra's metrics have the names and labels of jmx_exporter's example, one family after the other.
#[test]
fn names_are_those_of_jmx_exporter() {
    let text = shown(Format::Prometheus);
    let expected = r#"# HELP cassandra_table_readlatency_seconds Local reads.
# TYPE cassandra_table_readlatency_seconds gauge
cassandra_table_readlatency_seconds{table="t",keyspace="ks",quantile="0.50"} 0.001048575
"#;
    assert!(text.starts_with(expected), "{text}");
    for line in [
        r#"cassandra_table_readlatency_seconds{table="a\\b\"c\nd",keyspace="ks",quantile="0.999"} 0.001048575"#,
        r#"cassandra_table_readlatency_seconds_count{table="t",keyspace="ks"} 1"#,
        r#"cassandra_table_readlatency_seconds_sum{table="t",keyspace="ks"} 0.001"#,
        r#"cassandra_table_livesstablecount{table="t",keyspace="ks"} 3"#,
        r#"cassandra_table_tombstonescannedhistogram{table="t",keyspace="ks",quantile="0.75"} 1048575"#,
        r#"cassandra_table_tombstonescannedhistogram_count{table="t",keyspace="ks"} 1"#,
        "cassandra_storage_exceptions_count 0",
        r#"cassandra_threadpools_pendingtasks{threadpools="ReadStage",path="request"} 1"#,
    ] {
        assert_eq!(text.lines().filter(|shown| *shown == line).count(), 1, "{line}\n{text}");
    }
    assert_eq!(text.matches("# TYPE cassandra_table_readlatency_seconds gauge").count(), 1);
}

/// Proves that Halcyon's own metrics are counters with their suffix, and histograms whose buckets add up.
#[test]
fn own_metrics_are_as_prometheus_wants_them() {
    let text = shown(Format::Prometheus);
    for line in [
        "# TYPE halcyon_table_sstables_read_total counter",
        r#"halcyon_table_sstables_read_total{scope="t",keyspace="ks"} 9"#,
        "# TYPE halcyon_client_request_wait_seconds histogram",
        r#"halcyon_client_request_wait_seconds_bucket{le="0.000001024"} 0"#,
        r#"halcyon_client_request_wait_seconds_bucket{le="0.000002048"} 2"#,
        r#"halcyon_client_request_wait_seconds_bucket{le="0.004194304"} 3"#,
        r#"halcyon_client_request_wait_seconds_bucket{le="+Inf"} 3"#,
        "halcyon_client_request_wait_seconds_count 3",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
}

/// Proves that OpenMetrics is what a scraper gets that asks for it, with its end and its names of types.
#[test]
fn open_metrics_end() {
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    assert_eq!(Format::accepted(accept), Format::OpenMetrics);
    assert_eq!(Format::accepted("text/plain"), Format::Prometheus);
    let text = shown(Format::OpenMetrics);
    assert!(text.ends_with("# EOF\n"));
    assert!(text.contains(
        "# TYPE halcyon_table_sstables_read counter\nhalcyon_table_sstables_read_total{"
    ));
    assert!(text.contains("# TYPE cassandra_storage_exceptions_count unknown\n"));
}
