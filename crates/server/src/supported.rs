//! The contents of SUPPORTED.

use halcyon_protocol::Version;
use halcyon_tls::Policy;

use crate::shard::Shared;

/// The CQL version of Cassandra 5.0.
pub(crate) const CQL_VERSION: &str = "3.4.7";

/// Cassandra's three options, and ScyllaDB's, with which shard-aware drivers choose a shard. Other drivers ignore them.
pub(crate) fn options(shared: &Shared, shard: usize) -> Vec<(String, Vec<String>)> {
    let one = |name: &str, value: &str| (name.to_owned(), vec![value.to_owned()]);
    let mut options = vec![
        ("PROTOCOL_VERSIONS".to_owned(), Version::supported()),
        ("COMPRESSION".to_owned(), vec!["snappy".to_owned(), "lz4".to_owned()]),
        one("CQL_VERSION", CQL_VERSION),
        one("SCYLLA_SHARD", &shard.to_string()),
        one("SCYLLA_NR_SHARDS", &shared.shards.to_string()),
        one("SCYLLA_PARTITIONER", "org.apache.cassandra.dht.Murmur3Partitioner"),
        one("SCYLLA_SHARDING_ALGORITHM", "biased-token-round-robin"),
        one("SCYLLA_SHARDING_IGNORE_MSB", "0"),
    ];
    if let Some(port) = shared.transport.shard_aware_port {
        let policy = shared.policy();
        if policy != Policy::Encrypted {
            options.push(one("SCYLLA_SHARD_AWARE_PORT", &port.to_string()));
        }
        if policy != Policy::Unencrypted {
            options.push(one("SCYLLA_SHARD_AWARE_PORT_SSL", &port.to_string()));
        }
    }
    options
}
