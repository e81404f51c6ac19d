//! What of the schema a statement was prepared against, and whether that is still so.
//!
//! A change of other tables leaves a statement as it is: with thousands of statements and a table made each second, to prepare them all
//! again would keep a shard busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_cql::plan::Plan;
use halcyon_schema::catalog::{Catalog, Table};

#[derive(Debug)]
pub(crate) struct Basis {
    /// As the catalog has them; `None`: it is executed as it was written, whatever changes.
    tables: Option<Vec<Arc<Table>>>,
    types_version: [u8; 16],
    /// The schema under which it was last found to hold: there it need not be compared.
    known: AtomicU64,
}

impl Basis {
    pub(crate) fn of(plan: &Plan, catalog: &Catalog) -> Basis {
        Basis {
            tables: plan.tables().map(|tables| tables.into_iter().cloned().collect()),
            types_version: catalog.types_version,
            known: AtomicU64::new(short(catalog)),
        }
    }

    /// Whether a preparation against this catalog would make the same.
    pub(crate) fn holds(&self, catalog: &Catalog) -> bool {
        if self.known.load(Relaxed) == short(catalog) {
            return true;
        }
        let same = |table: &Arc<Table>| {
            let now = catalog.table(&table.schema.keyspace, &table.schema.name);
            now.is_some_and(|now| Arc::ptr_eq(now, table))
        };
        let holds = self.tables.as_ref().is_none_or(|tables| {
            self.types_version == catalog.types_version && tables.iter().all(same)
        });
        if holds {
            self.known.store(short(catalog), Relaxed);
        }
        holds
    }

    /// A copy that one shard writes alone.
    pub(crate) fn for_shard(&self) -> Basis {
        Basis {
            tables: self.tables.clone(),
            types_version: self.types_version,
            known: AtomicU64::new(self.known.load(Relaxed)),
        }
    }
}

/// Half of the schema's version, which is a hash.
fn short(catalog: &Catalog) -> u64 {
    catalog.version.first_chunk().map_or(0, |half| u64::from_be_bytes(*half))
}
