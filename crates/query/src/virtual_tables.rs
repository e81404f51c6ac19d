//! Tables whose rows are made when asked.

use std::future::Future;
use std::pin::Pin;

use halcyon_cql::catalog::Table;
use halcyon_stream::Mutation;

/// The server's answers for `system_views` and `system_virtual_schema`.
pub trait VirtualTables {
    /// All partitions of a virtual table, in any order, each as the writes that would make it. Some are asked of all shards.
    fn partitions<'a>(
        &'a self,
        table: &'a Table,
    ) -> Pin<Box<dyn Future<Output = Vec<Mutation>> + 'a>>;
}
