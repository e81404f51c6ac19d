//! Edits of a table's version: how SSTables become live, and how they cease to be.

use std::sync::Arc;

use halcyon_io::panic_point;
use halcyon_model::schema::TableSchema;

use super::Tables;
use super::store::Store;
use crate::Result;
use crate::version::{Edit, LiveSSTable};

impl Tables {
    /// Applies an edit to a table's live set, and has each shard take the new version: one without requests would keep the files of what
    /// the edit has removed.
    pub(crate) fn edit(&self, store: &Store, edit: &Edit) {
        edit.apply(&store.version);
        if edit.gone.is_empty() && edit.reopened.is_empty() {
            return;
        }
        let id = store.id;
        for index in 0..self.shard_count() {
            self.mesh.post(index, move |shard| {
                if let Some(table) = shard.table_by_id(id) {
                    table.current();
                }
            });
        }
    }

    /// Puts SSTables, by an edit of the live set, beside what the current definition reads. If it was altered since they were opened,
    /// they are opened again first: they may have a column that it lacks. Where that fails they are live all the same, for the disk
    /// has them, and a failed read is what it is.
    pub(crate) async fn admit(
        &self,
        store: &Arc<Store>,
        mut added: Vec<Arc<LiveSSTable>>,
        edit: impl FnOnce(Vec<Arc<LiveSSTable>>) -> Edit,
    ) {
        let _changing = self.reporter.changing("the list of a table's SSTables");
        panic_point("an edit of the live set");
        loop {
            let definition = store.definition.load_full();
            let matched = self.match_schema(&definition.schema, &mut added).await;
            if let Err(e) = &matched {
                self.reporter.read_failed(e);
            }
            let _admission = store.lock_admission();
            if matched.is_err() || Arc::ptr_eq(&definition, &store.definition.load_full()) {
                let lack = !added.iter().all(|live| live.has_all(&definition.indexes));
                added.iter().for_each(|live| self.memory.walk_index(live));
                self.edit(store, &edit(added));
                if lack {
                    self.tend_indexes(store);
                }
                return;
            }
        }
    }

    async fn match_schema(
        &self,
        schema: &Arc<TableSchema>,
        added: &mut [Arc<LiveSSTable>],
    ) -> Result<()> {
        for live in added.iter_mut().filter(|live| !live.schema.has_columns_of(schema)) {
            *live = live.reopen(&self.storage.disk, schema).await?;
        }
        Ok(())
    }

    /// Has the indexes of a table built where they are missing, if there are any.
    pub(crate) fn tend_indexes(&self, store: &Arc<Store>) {
        let definition = store.definition.load();
        let version = store.version.load();
        let differs = |live: &Arc<LiveSSTable>| !live.has_just(&definition.indexes);
        if !definition.indexes.is_empty() || version.sstables().iter().any(differs) {
            self.schedule.complete_indexes(store);
        }
    }
}
