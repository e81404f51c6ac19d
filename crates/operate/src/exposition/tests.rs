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
    shown_as(Names::JmxExporter, format)
}

fn shown_as(names: Names, format: Format) -> String {
    let mut registry = Registry::default();
    registry.register(Arc::new(Node));
    let place = NodeIdentity {
        cluster: "c".to_owned(),
        datacenter: "dc1".to_owned(),
        rack: "r".to_owned(),
        address: "10.0.0.1".to_owned(),
        host_id: "h".to_owned(),
    };
    render(&registry, names, &place, format).concat()
}

fn has_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert_eq!(text.lines().filter(|shown| shown == line).count(), 1, "{line}\n{text}");
    }
}

/// Proves that management-api's names have its labels, and buckets in microseconds that add up.
#[test]
fn names_are_those_of_management_api() {
    let text = shown_as(Names::ManagementApi, Format::Prometheus);
    let place = r#"host="h",instance="10.0.0.1",cluster="c",datacenter="dc1",rack="r""#;
    let read = "org_apache_cassandra_metrics_table_read_latency";
    let of_t = format!(r#"{{{place},keyspace="ks",table="t""#);
    has_lines(
        &text,
        &[
            &format!("# TYPE {read} histogram"),
            &format!(r#"{read}_bucket{of_t},le="924"}} 0"#),
            &format!(r#"{read}_bucket{of_t},le="1597"}} 1"#),
            &format!(r#"{read}_bucket{of_t},le="+Inf"}} 1"#),
            &format!("{read}_sum{of_t}}} 1000"),
            &format!("org_apache_cassandra_metrics_table_live_ss_table_count{of_t}}} 3"),
            &format!("org_apache_cassandra_metrics_storage_exceptions{{{place}}} 0"),
            &format!(
                r#"org_apache_cassandra_metrics_thread_pools_pending_tasks{{{place},pool_name="ReadStage",pool_type="request"}} 1"#
            ),
        ],
    );
}

/// Proves the paths of Criteo's exporter, which are in lower case and whose parts a colon separates.
#[test]
fn names_are_those_of_criteo() {
    let text = shown_as(Names::Criteo, Format::Prometheus);
    let of = |keyspace: &str, table: &str, name: &str| {
        format!(
            r#"cassandra_stats{{cluster="c",datacenter="dc1",keyspace="{keyspace}",table="{table}",name="org:apache:cassandra:metrics:{name}"}}"#
        )
    };
    has_lines(
        &text,
        &[
            &format!("{} 1", of("ks", "t", "table:ks:t:readlatency:count")),
            &format!("{} 1048.575", of("ks", "t", "table:ks:t:readlatency:99thpercentile")),
            &format!("{} 3", of("ks", "t", "table:ks:t:livesstablecount:value")),
            &format!("{} 0", of("", "", "storage:exceptions:count")),
            &format!("{} 1", of("", "", "threadpools:request:readstage:pendingtasks:value")),
        ],
    );
    assert_eq!(text.matches("# TYPE cassandra_stats gauge").count(), 1);
}

/// Proves that instaclustr's and OpenTelemetry's names come from their tables, with their units.
#[test]
fn names_are_those_of_instaclustr_and_opentelemetry() {
    let text = shown_as(Names::Instaclustr, Format::Prometheus);
    let place = r#"cassandra_cluster="c",cassandra_node="10.0.0.1",cassandra_datacenter="dc1",cassandra_rack="r""#;
    has_lines(
        &text,
        &[
            "# TYPE cassandra_table_operation_latency_seconds summary",
            &format!(
                r#"cassandra_table_operation_latency_seconds{{{place},keyspace="ks",table="t",operation="read",quantile="0.99"}} 0.001048575"#
            ),
            &format!(r#"cassandra_table_live_sstables{{{place},keyspace="ks",table="t"}} 3"#),
            "# TYPE cassandra_storage_exceptions_total counter",
            &format!("cassandra_storage_exceptions_total{{{place}}} 0"),
        ],
    );
    let text = shown_as(Names::OpenTelemetry, Format::Prometheus);
    has_lines(
        &text,
        &[
            r#"cassandra_table_read_latency_p99_microseconds{keyspace="ks",table="t"} 1048.575"#,
            r#"cassandra_table_sstable_count_live{keyspace="ks",table="t"} 3"#,
            r#"cassandra_thread_pool_tasks_pending{pool="ReadStage",pool_path="request"} 1"#,
        ],
    );
}

/// Proves that a distribution without values has the same series as one with values, under one name.
#[test]
fn an_empty_histogram_has_one_family() {
    struct Idle;
    impl Source for Idle {
        fn declared(&self) -> &'static [Metric] {
            const { &[Metric::own("Client", "RequestWait", "").of(Kind::Timer, Unit::Nanoseconds)] }
        }
        fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
            let nothing = Summary::<4, BUCKETS>::nothing();
            let value = Value::Distribution(&nothing);
            show(Sample { metric: &self.declared()[0], labels: Labels::default(), value });
        }
    }
    let mut registry = Registry::default();
    registry.register(Arc::new(Idle));
    let place = NodeIdentity::default();
    let text = render(&registry, Names::JmxExporter, &place, Format::Prometheus).concat();
    let of = "halcyon_client_request_wait_seconds";
    let expected = format!("# TYPE {of} histogram\n{of}_bucket{{le=\"+Inf\"}} 0\n{of}_count 0\n");
    assert!(text.ends_with(&expected), "{text}");
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
