//! Rows of the system tables that the node writes without a client: when, and how.

use halcyon_schema::rows::WriteTime;
use halcyon_stream::Mutation;

use super::Tables;
use crate::{Error, Result};

impl Tables {
    /// The time for one write of the node's own accord, later than all before.
    pub fn write_time(&self) -> WriteTime {
        self.times.of(self.storage.disk.clock())
    }

    /// The node's identity, whatever clients have since written into `system.local`; `None` before [`Tables::join`].
    pub fn host_id(&self) -> Option<[u8; 16]> {
        self.host_id.get().copied()
    }

    /// Writes rows through the shards that own them, one shard after the other. They are durable whatever `commitlog_sync` says: files are
    /// made and removed because of them, and a start must know why.
    pub(crate) async fn persist(&self, rows: Vec<Mutation>) -> Result<()> {
        let mut by_owner: Vec<Vec<Mutation>> =
            (0..self.shard_count()).map(|_| Vec::new()).collect();
        for row in rows {
            if let Some(own) = by_owner.get_mut(self.owner(row.key.token)) {
                own.push(row);
            }
        }
        for (index, rows) in by_owner.into_iter().enumerate() {
            if !rows.is_empty() {
                let written = self.mesh.on(index, |shard| async move {
                    shard.apply(rows).await?;
                    Ok::<(), Error>(shard.log.sync().await?)
                });
                written.await??;
            }
        }
        Ok(())
    }
}
