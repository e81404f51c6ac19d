//! What a virtual table is, and the node that its rows are computed from.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use halcyon_engine::Engine;
use halcyon_io::compute;
use halcyon_query::{Error, Result, truncation_is_not_supported};
use halcyon_schema::catalog::Table;
use halcyon_stream::{Mutation, PartitionKey};

use super::facts::Facts;
use super::rows::Rows;
use super::servers::Servers;
use super::write::{Write, texts_of_key};
use crate::metrics::ClientMetrics;

/// A virtual table: its definition, how its rows are computed, what a write to it does.
#[derive(Clone, Copy)]
pub(in crate::virtual_tables) struct VirtualTable {
    pub(in crate::virtual_tables) cql: &'static str,
    source: Source,
    apply: Option<Apply>,
    truncate: Option<fn(&Node)>,
}

#[derive(Clone, Copy)]
enum Apply {
    Now(fn(&Node, &Write<'_>) -> Result<()>),
    /// What takes time: it is answered when it is done.
    Awaited(for<'a> fn(&'a Node, &'a Write<'_>) -> Applied<'a>),
}

#[derive(Clone, Copy)]
enum Source {
    Empty,
    /// What any shard knows.
    Computed(fn(&Node, &mut Rows<'_>)),
    /// What shards must be asked for.
    Gathered(for<'a> fn(&'a Node, &'a mut Rows<'_>) -> Filled<'a>),
    /// What depends on the partition key, whose components are texts; a read without one has no rows.
    OfKey(for<'a> fn(&'a Node, Vec<String>, &'a mut Rows<'_>) -> Applied<'a>),
}

pub(in crate::virtual_tables) type Filled<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;
pub(in crate::virtual_tables) type Applied<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

impl VirtualTable {
    pub(in crate::virtual_tables) const fn empty(cql: &'static str) -> VirtualTable {
        VirtualTable { cql, source: Source::Empty, apply: None, truncate: None }
    }

    pub(in crate::virtual_tables) const fn computed(
        cql: &'static str,
        fill: fn(&Node, &mut Rows<'_>),
    ) -> VirtualTable {
        VirtualTable { cql, source: Source::Computed(fill), apply: None, truncate: None }
    }

    pub(in crate::virtual_tables) const fn gathered(
        cql: &'static str,
        fill: for<'a> fn(&'a Node, &'a mut Rows<'_>) -> Filled<'a>,
    ) -> VirtualTable {
        VirtualTable { cql, source: Source::Gathered(fill), apply: None, truncate: None }
    }

    pub(in crate::virtual_tables) const fn of_key(
        cql: &'static str,
        fill: for<'a> fn(&'a Node, Vec<String>, &'a mut Rows<'_>) -> Applied<'a>,
    ) -> VirtualTable {
        VirtualTable { cql, source: Source::OfKey(fill), apply: None, truncate: None }
    }

    /// The same, and a write to it is done at once.
    pub(in crate::virtual_tables) const fn writable(
        self,
        apply: fn(&Node, &Write<'_>) -> Result<()>,
    ) -> VirtualTable {
        VirtualTable { apply: Some(Apply::Now(apply)), ..self }
    }

    /// The same, and can be truncated.
    pub(in crate::virtual_tables) const fn truncated(self, truncate: fn(&Node)) -> VirtualTable {
        VirtualTable { truncate: Some(truncate), ..self }
    }

    /// A table without rows: what is inserted is done.
    pub(in crate::virtual_tables) const fn commands(
        cql: &'static str,
        apply: for<'a> fn(&'a Node, &'a Write<'_>) -> Applied<'a>,
    ) -> VirtualTable {
        VirtualTable {
            cql,
            source: Source::Empty,
            apply: Some(Apply::Awaited(apply)),
            truncate: None,
        }
    }

    /// Computes its rows, in their partitions.
    pub(super) async fn partitions(
        &self,
        node: &Node,
        table: &Arc<Table>,
        key: Option<&PartitionKey>,
    ) -> Result<Vec<Mutation>> {
        let mut rows = Rows::of(table);
        match (self.source, key) {
            (Source::Empty, _) | (Source::OfKey(_), None) => {}
            (Source::Computed(fill), _) => {
                let (node, table) = (node.clone(), table.clone());
                // Not on a shard: of a thousand tables it takes milliseconds.
                let computed = compute(move || {
                    let mut rows = Rows::of(&table);
                    fill(&node, &mut rows);
                    rows.finish()
                });
                return computed.await.map_err(|lost| Error::Server(lost.to_string()))?;
            }
            (Source::Gathered(fill), _) => fill(node, &mut rows).await,
            (Source::OfKey(fill), Some(key)) => {
                let key = texts_of_key(table, &key.bytes)?;
                fill(node, key, &mut rows).await?;
            }
        }
        rows.finish()
    }

    /// Executes what a write to it means.
    pub(super) async fn write(&self, node: &Node, write: &Write<'_>) -> Result<()> {
        match self.apply {
            Some(Apply::Now(apply)) => apply(node, write),
            Some(Apply::Awaited(apply)) => apply(node, write).await,
            None => Err(write.not_supported()),
        }
    }

    pub(super) fn truncate(&self, node: &Node, table: &Table) -> Result<()> {
        let truncate = self.truncate.ok_or_else(|| truncation_is_not_supported(table))?;
        truncate(node);
        Ok(())
    }
}

/// What rows are computed from.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) engine: Arc<Engine>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) servers: Arc<dyn Servers>,
}

impl Node {
    /// A metric, over all shards.
    pub(in crate::virtual_tables) fn sum(&self, of: fn(&ClientMetrics) -> u64) -> u64 {
        self.facts.metrics.iter().map(of).sum()
    }
}
