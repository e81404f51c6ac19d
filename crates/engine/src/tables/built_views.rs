//! Which materialized views are built: `system.built_views`, as Cassandra keeps it, so that neither program builds one again.

use std::collections::BTreeSet;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use halcyon_schema::catalog::Table;
use halcyon_schema::rows::built_view;
use halcyon_schema::system_tables;
use halcyon_stream::{Fragment, FragmentStream, Slices};

use super::Tables;
use crate::shard::Shard;
use crate::{Error, RangeBound, Read, ReadTarget, Result, TokenRange};

impl Tables {
    /// Keyspace and name of each.
    pub fn built_views(&self) -> LocalBoxFuture<'_, Result<BTreeSet<(String, String)>>> {
        Box::pin(async move {
            let system = system_tables();
            let Some(table) = system.table("system", "built_views").cloned() else {
                return Ok(BTreeSet::new());
            };
            let range = TokenRange { start: RangeBound::Open, end: RangeBound::Open };
            let target = ReadTarget::Range(range);
            let read = Read { table, target, slices: Slices::all() };
            let of_shard = move |shard: Rc<Shard>| {
                let read = read.clone();
                async move { names(&shard, read).await }
            };
            let mut found = BTreeSet::new();
            for of_shard in self.mesh.on_each(of_shard).await {
                found.extend(of_shard??);
            }
            Ok(found)
        })
    }

    /// Says that a view is built, or not (any more).
    pub fn note_built_view<'a>(
        &'a self,
        view: &'a Table,
        built: bool,
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let rows = built_view(&view.schema, self.host_id(), built, self.write_time());
            self.persist(rows).await
        })
    }
}

async fn names(shard: &Shard, read: Read) -> Result<Vec<(String, String)>> {
    let clusterings = read.table.layout.clone();
    let mut stream = shard.read(read).await?;
    let (mut keyspace, mut deletion) = (String::new(), halcyon_model::DeletionTime::LIVE);
    let mut found = Vec::new();
    while stream.advance().await? {
        match stream.fragment() {
            Fragment::Start(start) => {
                keyspace = String::from_utf8_lossy(&start.key.bytes).into_owned();
                deletion = start.deletion;
            }
            Fragment::Row(row) => {
                let deletion = deletion.max(row.deletion.time);
                let value = clusterings.clusterings.values(row.clustering, 1).next();
                if let Some(halcyon_model::clustering::ClusteringValue::Bytes(name)) = value
                    && !row.liveness.is_empty()
                    && !deletion.deletes(row.liveness.timestamp)
                {
                    found.push((keyspace.clone(), String::from_utf8_lossy(name).into_owned()));
                }
            }
            Fragment::Static(_) | Fragment::Marker(_) | Fragment::End => {}
        }
    }
    Ok::<_, Error>(found)
}
