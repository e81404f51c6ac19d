//! The node's own row in `system.local`.

use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_io::Random;
use halcyon_schema::catalog::Catalog;
use halcyon_schema::{DATA_CENTER, LocalNode, RACK, local_row, system_tables};
use halcyon_stream::{Fragment, FragmentStream, PartitionKey, Slices};

use super::Tables;
use crate::{Error, Read, ReadTarget, Result};

/// The row of an earlier start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Saved {
    cluster_name: Option<String>,
    host_id: Option<[u8; 16]>,
    tokens: Vec<i64>,
    data_center: Option<String>,
    rack: Option<String>,
}

/// As Cassandra's.
const DEFAULT_CLUSTER_NAME: &str = "Test Cluster";

impl Tables {
    /// Writes the node's row once the shards are open. Host id and tokens are kept from an earlier start, or from the Cassandra node
    /// of this directory; a host id of zeros is replaced by a random one. Empty names of cluster, data centre and rack mean the saved ones.
    pub fn join(&self, node: LocalNode) -> LocalBoxFuture<'_, Result<LocalNode>> {
        Box::pin(async move {
            let saved = self.saved_node().await?;
            let mut node = LocalNode { schema_version: self.catalog().version, ..node };
            let name = saved.cluster_name.as_deref();
            if node.cluster_name.is_empty() {
                node.cluster_name = name.unwrap_or(DEFAULT_CLUSTER_NAME).to_owned();
            } else if let Some(name) = name.filter(|name| *name != node.cluster_name) {
                return Err(Error::CannotStart(format!(
                    "Saved cluster name {name} != configured name {}: set cluster_name to the saved one, or choose another data \
                 directory",
                    node.cluster_name
                )));
            }
            node.data_center =
                placed("data center", node.data_center, saved.data_center, DATA_CENTER)?;
            node.rack = placed("rack", node.rack, saved.rack, RACK)?;
            if node.data_center != DATA_CENTER {
                let mut catalog = Catalog::clone(&self.catalog.load());
                catalog.data_center = Some(node.data_center.as_str().into());
                self.catalog.store(Arc::new(catalog));
            }
            if !saved.tokens.is_empty() {
                node.tokens = saved.tokens;
            }
            match saved.host_id {
                Some(host_id) => node.host_id = host_id,
                None if node.host_id == [0; 16] => {
                    node.host_id = random_uuid(self.storage.disk.runtime().random())
                }
                None => {}
            }
            self.persist(local_row(&node, self.write_time()).into_iter().collect()).await?;
            // A node joins once.
            let _ = self.host_id.set(node.host_id);
            Ok(node)
        })
    }

    async fn saved_node(&self) -> Result<Saved> {
        let system = system_tables();
        let Some(table) = system.table("system", "local").cloned() else {
            return Ok(Saved::default());
        };
        let key = PartitionKey::of(b"local");
        let owner = self.owner(key.token);
        let read = move |shard: std::rc::Rc<crate::Shard>| async move {
            let target = ReadTarget::Partition(key);
            let layout = table.layout.clone();
            let mut stream = shard.read(Read { table, target, slices: Slices::all() }).await?;
            let mut saved = Saved::default();
            while stream.advance().await? {
                let Fragment::Row(row) = stream.fragment() else { continue };
                for cell in row.cells.iter().filter(|cell| !cell.is_tombstone()) {
                    let column = layout.regulars.get(usize::from(cell.column));
                    let value = cell.value.of(row.bytes);
                    match column.map_or(&[][..], |column| &column.name) {
                        b"cluster_name" => {
                            saved.cluster_name = String::from_utf8(value.to_vec()).ok();
                        }
                        b"data_center" => {
                            saved.data_center = String::from_utf8(value.to_vec()).ok();
                        }
                        b"rack" => saved.rack = String::from_utf8(value.to_vec()).ok(),
                        b"host_id" => saved.host_id = value.try_into().ok(),
                        b"tokens" => {
                            let text = String::from_utf8_lossy(cell.path.of(row.bytes));
                            saved.tokens.extend(text.parse::<i64>());
                        }
                        _ => {}
                    }
                }
            }
            Ok(saved)
        };
        self.mesh.on(owner, read).await?
    }
}

/// A name that must not change after the first start, because replication depends on it.
fn placed(what: &str, given: String, saved: Option<String>, default: &str) -> Result<String> {
    match saved.filter(|saved| !saved.is_empty()) {
        Some(saved) if given.is_empty() || given == saved => Ok(saved),
        Some(saved) => Err(Error::CannotStart(format!(
            "Cannot start node if snitch's {what} ({given}) differs from previous {what} ({saved}). Please fix the snitch \
             configuration (endpoint_snitch, cassandra-rackdc.properties)"
        ))),
        None if given.is_empty() => Ok(default.to_owned()),
        None => Ok(given),
    }
}

fn random_uuid(mut random: Random) -> [u8; 16] {
    halcyon_model::uuid::random(random.next_u64(), random.next_u64())
}
