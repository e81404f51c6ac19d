//! `system_virtual_schema`: what virtual tables there are, as clients read it.

use std::sync::Arc;

use halcyon_schema::catalog::{Catalog, Keyspace};

pub(super) mod columns;
pub(super) mod keyspaces;
pub(super) mod tables;

fn virtual_keyspaces(catalog: &Catalog) -> impl Iterator<Item = &Arc<Keyspace>> {
    catalog.keyspaces.values().filter(|keyspace| keyspace.is_virtual)
}
