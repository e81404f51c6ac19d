//! What a shard keeps of a table between requests.
//!
//! The definition and the version belong to all shards. Requests that held them by their reference counts would write cache lines that the
//! requests of all other shards write too. So each shard has copies whose counts it alone touches, and a request learns from two
//! pointers, which nobody writes but a schema change or an edit, that they are still current. What is large (filters, indexes, the list of SSTables)
//! is not copied: the copies hold it.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use halcyon_schema::catalog::Table;
use halcyon_sstable::read::SSTableReader;
use halcyon_stream::{Layout, Mutation};

use crate::engine::Engine;
use crate::shard::Shard;
use crate::store::{Definition, Store};
use crate::version::{Edit, Version};

impl Shard {
    /// The shard's own copy of a table of the catalog, for plans that it executes often; the table itself if it has none.
    pub fn own_table(&self, table: &Arc<Table>) -> Arc<Table> {
        let own = self.table_by_id(table.id).and_then(|own| own.current().own(table));
        own.unwrap_or_else(|| table.clone())
    }
}

impl Engine {
    /// Applies an edit to a table's live set, and has each shard take the new version: one without requests would keep the files of what
    /// the edit has removed.
    pub(crate) fn edit(&self, store: &Store, edit: &Edit) {
        edit.apply(&store.version);
        if edit.gone.is_empty() && edit.reopened.is_empty() {
            return;
        }
        let id = store.id;
        for index in 0..self.shard_count() {
            self.mesh().post(index, move |shard| {
                if let Some(table) = shard.table_by_id(id) {
                    table.current();
                }
            });
        }
    }
}

/// A table's definition and version, as they belong together.
pub(crate) struct Current {
    /// The common definition, of which `definition` is a copy.
    common: Arc<Definition>,
    pub(crate) definition: Arc<Definition>,
    pub(crate) version: Arc<Version>,
    /// Of the version's SSTables, by position, once they were read.
    readers: Box<[OnceCell<Arc<SSTableReader>>]>,
    /// Layouts of other shards' copies that are the same as the definition's, so that they are compared once.
    same: Rc<RefCell<Vec<Arc<Layout>>>>,
}

/// More layouts than there are shards come from statements of older definitions.
const MOST_LAYOUTS: usize = 256;

impl Current {
    /// What is current of `store`. The copies of `before` stay if the definition is the same.
    pub(crate) fn of(store: &Store, before: Option<&Current>) -> Rc<Current> {
        loop {
            let definition = store.definition.load_full();
            let version = store.version.load_full();
            if Arc::ptr_eq(&definition, &store.definition.load()) {
                return Current::new(definition, version, before);
            }
        }
    }

    pub(crate) fn new(
        common: Arc<Definition>,
        version: Arc<Version>,
        before: Option<&Current>,
    ) -> Rc<Current> {
        let readers = version.sstables().iter().map(|_| OnceCell::new()).collect();
        let before = before.filter(|before| Arc::ptr_eq(&before.common, &common));
        let (definition, same) = match before {
            Some(before) => (before.definition.clone(), before.same.clone()),
            None => (common.for_shard(), Rc::default()),
        };
        Rc::new(Current { common, definition, version, readers, same })
    }

    /// Whether nothing has changed since.
    pub(crate) fn is_of(&self, store: &Store) -> bool {
        Arc::ptr_eq(&self.common, &store.definition.load())
            && Arc::ptr_eq(&self.version, &store.version.load())
    }

    /// This shard's copy of a table of the catalog.
    fn own(&self, table: &Arc<Table>) -> Option<Arc<Table>> {
        (self.common.table == *table).then(|| self.definition.table.clone())
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.definition.table.layout
    }

    /// Of the SSTable at a position of the version.
    pub(crate) fn reader(&self, at: u32) -> Option<&Arc<SSTableReader>> {
        let live = self.version.get(at)?;
        Some(self.readers.get(at as usize)?.get_or_init(|| live.table.for_shard()))
    }

    /// Whether a layout, of whichever copy, is the same as the definition's.
    pub(crate) fn has_layout(&self, layout: &Arc<Layout>) -> bool {
        if Arc::ptr_eq(layout, self.layout()) {
            return true;
        }
        let mut same = self.same.borrow_mut();
        if same.iter().any(|known| Arc::ptr_eq(known, layout)) {
            return true;
        }
        let is_same = **layout == **self.layout();
        if is_same {
            if same.len() == MOST_LAYOUTS {
                same.clear();
            }
            same.push(layout.clone());
        }
        is_same
    }

    /// Makes a mutation from another shard one of this shard's layout, where that is the same.
    pub(crate) fn adopt(&self, mutation: &mut Mutation) {
        if !Arc::ptr_eq(&mutation.layout, self.layout()) && self.has_layout(&mutation.layout) {
            mutation.layout = self.layout().clone();
        }
    }
}
