//! Tokens of partitions that are sampled by the index summaries of SSTables: `nodetool rangekeysample`. SSTables of the format BTI have no
//! samples, as in Cassandra.

use futures_util::future::LocalBoxFuture;
use halcyon_io::compute;
use halcyon_model::token::murmur3_token;
use halcyon_stream::TableId;

use crate::Result;
use crate::tables::Tables;

/// Tokens of one table. Chosen: a table with more samples shows every second one, or fewer, so that no answer takes more than some
/// megabytes. Cassandra thins its summaries by itself, too.
const MOST: usize = 20_000;

impl Tables {
    /// In their order.
    pub fn sampled_tokens(&self, table: TableId) -> LocalBoxFuture<'_, Result<Vec<i64>>> {
        Box::pin(async move {
            let version = self.store_of(table)?.version.load_full();
            let all = move || {
                let samples = || version.sstables().iter().flat_map(|live| live.table.samples());
                let step = samples().count().div_ceil(MOST).max(1);
                let mut tokens: Vec<i64> =
                    samples().step_by(step).map(|key| murmur3_token(key).0).collect();
                tokens.sort_unstable();
                tokens
            };
            Ok(compute(all).await?)
        })
    }
}
