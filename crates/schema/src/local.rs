//! `system.local`: a node's row about itself.

use std::net::IpAddr;

use halcyon_model::{DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL};
use halcyon_stream::{Cell, ComplexDeletion, Layout, Mutation, PartitionKey, RowBuf, Span};

use super::rows::WriteTime;
use super::system::system_tables;

/// The versions that clients see: those of the Cassandra release whose behaviour Halcyon has.
pub const RELEASE_VERSION: &str = "5.0.9";
pub const CQL_VERSION: &str = "3.4.7";
pub const NATIVE_PROTOCOL_VERSION: &str = "5";
pub const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

/// The rack of Cassandra's `SimpleSnitch`.
pub const RACK: &str = "rack1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalNode {
    pub cluster_name: String,
    pub data_center: String,
    pub rack: String,
    pub host_id: [u8; 16],
    pub tokens: Vec<i64>,
    pub listen_address: IpAddr,
    pub listen_port: u16,
    pub broadcast_address: IpAddr,
    pub rpc_address: IpAddr,
    pub rpc_port: u16,
    /// Seconds since 1970 at the start.
    pub gossip_generation: i32,
    pub schema_version: [u8; 16],
}

/// The row of `system.local` that a node which has joined its ring has.
pub fn local_row(node: &LocalNode, at: WriteTime) -> Option<Mutation> {
    let address = |address: &IpAddr| match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let int = |value: i32| value.to_be_bytes().to_vec();
    let text = |text: &str| text.as_bytes().to_vec();
    write(
        &[
            ("bootstrapped", text("COMPLETED")),
            ("broadcast_address", address(&node.broadcast_address)),
            ("broadcast_port", int(i32::from(node.listen_port))),
            ("cluster_name", text(&node.cluster_name)),
            ("cql_version", text(CQL_VERSION)),
            ("data_center", text(&node.data_center)),
            ("gossip_generation", int(node.gossip_generation)),
            ("host_id", node.host_id.to_vec()),
            ("listen_address", address(&node.listen_address)),
            ("listen_port", int(i32::from(node.listen_port))),
            ("native_protocol_version", text(NATIVE_PROTOCOL_VERSION)),
            ("partitioner", text(PARTITIONER)),
            ("rack", text(&node.rack)),
            ("release_version", text(RELEASE_VERSION)),
            ("rpc_address", address(&node.rpc_address)),
            ("rpc_port", int(i32::from(node.rpc_port))),
            ("schema_version", node.schema_version.to_vec()),
        ],
        &node.tokens,
        at,
    )
}

/// The row after a schema change.
pub fn schema_version_row(version: [u8; 16], at: WriteTime) -> Option<Mutation> {
    write(&[("schema_version", version.to_vec())], &[], at)
}

fn write(cells: &[(&str, Vec<u8>)], tokens: &[i64], at: WriteTime) -> Option<Mutation> {
    let system = system_tables();
    let table = system.table("system", "local")?;
    let key = PartitionKey::of(b"local");
    let mut mutation = Mutation::new(table.id, table.layout.clone(), key);
    let mut row = RowBuf::new();
    row.parts.liveness =
        Liveness { timestamp: at.micros, ttl: NO_TTL, local_expiration_time: NO_DELETION_TIME };
    let layout: &Layout = &table.layout;
    for (index, column) in layout.regulars.iter().enumerate() {
        let index = u16::try_from(index).ok()?;
        if let Some((_, value)) = cells.iter().find(|(name, _)| name.as_bytes() == column.name) {
            let value = row.store(value);
            row.parts.cells.push(cell(index, Span::default(), value, at));
        } else if column.name == b"tokens" && !tokens.is_empty() {
            // Like an assignment: the old cells are deleted by a timestamp just before.
            let time = DeletionTime { marked_for_delete_at: at.micros - 1, ..at.deletion() };
            row.parts.complex_deletions.push(ComplexDeletion { column: index, time });
            let mut texts: Vec<String> = tokens.iter().map(i64::to_string).collect();
            texts.sort();
            for text in texts {
                let path = row.store(text.as_bytes());
                row.parts.cells.push(cell(index, path, Span::default(), at));
            }
        }
    }
    mutation.rows.push(row);
    Some(mutation)
}

fn cell(column: u16, path: Span, value: Span, at: WriteTime) -> Cell {
    Cell {
        column,
        ttl: NO_TTL,
        timestamp: at.micros,
        local_deletion_time: NO_DELETION_TIME,
        path,
        value,
    }
}
