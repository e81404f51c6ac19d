//! What a shard keeps of a table between requests.
//!
//! The definition and the version belong to all shards. Requests that held them by their reference counts would write cache lines that the
//! requests of all other shards write too. So each shard has copies whose counts it alone touches, and a request learns from two
//! pointers, which only a schema change or an edit writes, that they are still current. What is large (filters, indexes, the list
//! of SSTables) is not copied: the copies hold it.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use arc_swap::ArcSwap;
use halcyon_schema::catalog::Table;
use halcyon_sstable::read::SSTableReader;
use halcyon_stream::{Layout, Mutation};

use crate::definition::Definition;
use crate::version::Version;

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

/// What all shards have in common of a table.
pub(crate) type Common<'a> = (&'a ArcSwap<Definition>, &'a ArcSwap<Version>);

/// More layouts than there are shards come from statements of older definitions.
const MOST_LAYOUTS: usize = 256;

impl Current {
    /// What is current. The copies of `before` stay if the definition is the same.
    pub(crate) fn of((definitions, versions): Common<'_>, before: Option<&Current>) -> Rc<Current> {
        loop {
            let definition = definitions.load_full();
            let version = versions.load_full();
            if Arc::ptr_eq(&definition, &definitions.load()) {
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
    pub(crate) fn is_of(&self, (definitions, versions): Common<'_>) -> bool {
        Arc::ptr_eq(&self.common, &definitions.load())
            && Arc::ptr_eq(&self.version, &versions.load())
    }

    /// This shard's copy of a table of the catalog.
    pub(crate) fn own(&self, table: &Arc<Table>) -> Option<Arc<Table>> {
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
