//! Names of Cassandra's classes and of nodetool's components, and the loggers that correspond to them.

use super::level::ROOT;

const PREFIX: &str = "org.apache.cassandra";

/// Classes and packages under `org.apache.cassandra`, and the loggers of what they do here.
const COUNTERPARTS: [(&str, &[&str]); 23] = [
    ("audit", &["server.request_log"]),
    ("auth", &["server.login", "server.connection.handshake"]),
    ("cache", &["server.saved_caches"]),
    ("config", &["server.settings"]),
    ("cql3", &["server.session"]),
    ("cql3.QueryProcessor", &["server.persisted"]),
    ("db.ColumnFamilyStore", &["engine.flush"]),
    ("db.SizeEstimatesRecorder", &["server.shard"]),
    ("db.commitlog", &["engine.commitlog"]),
    ("db.compaction", &["engine.compact"]),
    ("db.guardrails", &["engine.guardrails"]),
    ("db.monitoring", &["server.slow_queries"]),
    ("db.view", &["engine.views"]),
    ("db.virtual", &["server.virtual_tables"]),
    ("fql", &["server.request_log"]),
    ("index", &["engine.index"]),
    ("io", &["engine.disk"]),
    ("schema.PartitionDenylist", &["server.denylist"]),
    ("security", &["server.encryption"]),
    ("service.CassandraDaemon", &["server.node"]),
    ("service.StorageService", &["server.node"]),
    ("service.snapshot", &["engine.snapshots"]),
    ("transport", &["server.connection", "server.listen"]),
];

/// The components of `nodetool setlogginglevel`, with the classes that Cassandra 5.0 sets for each.
const COMPONENTS: [(&str, &[&str]); 6] = [
    (
        "bootstrap",
        &[
            "gms",
            "hints",
            "schema",
            "service.StorageService",
            "db.SystemKeyspace",
            "batchlog.BatchlogManager",
            "net.MessagingService",
        ],
    ),
    ("repair", &["repair", "db.compaction.CompactionManager", "service.SnapshotVerbHandler"]),
    ("streaming", &["streaming", "dht.RangeStreamer"]),
    (
        "compaction",
        &["db.compaction", "db.ColumnFamilyStore", "io.sstable.IndexSummaryRedistribution"],
    ),
    (
        "cql",
        &[
            "cql3",
            "auth",
            "batchlog",
            "net.ResponseVerbHandler",
            "service.AbstractReadExecutor",
            "service.AbstractWriteResponseHandler",
            "service.paxos",
            "service.ReadCallback",
            "service.ResponseResolver",
        ],
    ),
    (
        "ring",
        &[
            "gms",
            "service.PendingRangeCalculatorService",
            "service.LoadBroadcaster",
            "transport.Server",
        ],
    ),
];

/// The first parts of the names of loggers.
const CRATES: [&str; 3] = ["engine", "halcyon", "server"];

/// Whether a name is another, or above it.
fn holds(above: &str, name: &str) -> bool {
    name.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The loggers of a class or package: of all below it, else of the nearest package above it.
fn of_class(class: &str) -> Vec<&'static str> {
    let below = COUNTERPARTS.iter().filter(|(known, _)| holds(class, known));
    let mut found: Vec<_> = below.flat_map(|(_, loggers)| loggers.iter().copied()).collect();
    if found.is_empty() {
        let above = COUNTERPARTS.iter().filter(|(known, _)| holds(known, class));
        let nearest = above.max_by_key(|(known, _)| known.len());
        found.extend(nearest.iter().flat_map(|(_, loggers)| loggers.iter().copied()));
    }
    found
}

/// The loggers that a name means: one of Halcyon's own, a class of Cassandra's, or a component.
pub(crate) fn loggers(name: &str) -> Result<Vec<String>, String> {
    let mut found: Vec<&str> = match COMPONENTS.iter().find(|(component, _)| *component == name) {
        Some((_, classes)) => classes.iter().flat_map(|class| of_class(class)).collect(),
        None if name.eq_ignore_ascii_case(ROOT) || name == PREFIX => vec![ROOT],
        None => match name.strip_prefix(PREFIX).and_then(|class| class.strip_prefix('.')) {
            Some(class) => of_class(class),
            None if CRATES.iter().any(|known| holds(known, name)) => vec![name],
            None => {
                let components: Vec<_> = COMPONENTS.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "unknown logger '{name}'; expected ROOT, a name that begins with {}, a class under {PREFIX}, or one of {}",
                    CRATES.join(", "),
                    components.join(", ")
                ));
            }
        },
    };
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        return Err(format!(
            "'{name}' has no counterpart here: Halcyon does not do what it logs; nodetool getlogginglevels lists the loggers that have a \
             level of their own"
        ));
    }
    Ok(found.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that components, packages, classes and names of Halcyon map to loggers, and that a refusal lists the known names.
    #[test]
    fn names_of_cassandra_have_counterparts() {
        let found = |name: &str| loggers(name).unwrap().join(" ");
        assert_eq!(found("compaction"), "engine.compact engine.disk engine.flush");
        assert_eq!(found("ring"), "server.connection server.listen");
        assert_eq!(found("org.apache.cassandra"), "ROOT");
        assert_eq!(found("root"), "ROOT");
        assert_eq!(found("org.apache.cassandra.db.compaction.CompactionTask"), "engine.compact");
        assert_eq!(found("org.apache.cassandra.cql3.QueryProcessor"), "server.persisted");
        assert!(found("org.apache.cassandra.db").contains("engine.commitlog engine.compact"));
        assert_eq!(found("engine.compact"), "engine.compact");
        assert!(loggers("streaming").unwrap_err().contains("has no counterpart here"));
        assert!(loggers("org.apache.cassandrax").unwrap_err().contains("unknown logger"));
    }
}
