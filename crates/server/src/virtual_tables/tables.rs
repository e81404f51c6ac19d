//! The virtual tables of a node, as `query` reads and writes them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use halcyon_query::{Result, VirtualTables};
use halcyon_schema::catalog::Table;
use halcyon_stream::{Mutation, PartitionKey};

use super::registry::Registry;
use super::table::Node;
use super::write::Write;

pub(crate) struct Tables {
    pub(crate) node: Node,
    pub(crate) registry: Arc<Registry>,
}

impl VirtualTables for Tables {
    fn partitions<'a>(
        &'a self,
        table: &'a Arc<Table>,
        key: Option<&'a PartitionKey>,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Mutation>>> + 'a>> {
        Box::pin(async move { self.registry.get(table)?.partitions(&self.node, table, key).await })
    }

    fn apply<'a>(
        &'a self,
        table: &'a Table,
        mutation: Mutation,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        Box::pin(async move {
            let write = Write { table, mutation: &mutation };
            self.registry.get(table)?.write(&self.node, &write).await
        })
    }

    fn truncate(&self, table: &Table) -> Result<()> {
        self.registry.get(table)?.truncate(&self.node, table)
    }
}
