//! Tables whose rows are computed when they are read.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use halcyon_schema::catalog::Table;
use halcyon_stream::{Mutation, PartitionKey};

use crate::{Error, Result};

/// The virtual tables of the node, which the server implements.
pub trait VirtualTables {
    /// All partitions of a virtual table, in any order, each as the mutation that would write it. May run jobs on all shards.
    ///
    /// `key`: the one that is wanted, if it is one; others may be left out. Some tables have only rows that depend on it.
    fn partitions<'a>(
        &'a self,
        table: &'a Arc<Table>,
        key: Option<&'a PartitionKey>,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Mutation>>> + 'a>>;

    /// Executes the command that a write to a virtual table means. Most virtual tables are read-only.
    fn apply<'a>(
        &'a self,
        table: &'a Table,
        _mutation: Mutation,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        Box::pin(async { Err(modification_is_not_supported(table)) })
    }

    /// Executes what a TRUNCATE of a virtual table means.
    fn truncate(&self, table: &Table) -> Result<()> {
        Err(truncation_is_not_supported(table))
    }
}

/// `VirtualTable.truncate`
pub fn truncation_is_not_supported(table: &Table) -> Error {
    Error::Invalid(format!("Truncation is not supported by table {}", table.full_name()))
}

/// `AbstractVirtualTable.apply`
pub fn modification_is_not_supported(table: &Table) -> Error {
    Error::Invalid(format!("Modification is not supported by table {}", table.full_name()))
}
