//! Outputs are verified before Cassandra hears of them: one that its reader finds damaged makes it act on its disk failure policy, which
//! may take the node offline.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use halcyon_codec::Crc32;
use halcyon_compaction::{Error, Outcome, Progress, Result};
use halcyon_io::{AccessMode, Disk};
use halcyon_model::schema::TableSchema;
use halcyon_sstable::read::IndexSources;
use halcyon_sstable::verify::{Extent, Severity, VerifyOptions, verify};
use halcyon_sstable::{Component, Descriptor, IndexWalk, OpenOptions, SSTable};
use halcyon_stream::PartitionKey;

use crate::exchange::Exchange;
use crate::messages::{ComponentFile, OutputFiles};

/// Larger components are compared by their lengths.
const MOST_CHECKSUMMED: u64 = 64 << 20;
/// Keys between two looks at the clock.
const KEYS_BETWEEN: u64 = 4096;

/// What is wrong with an output, or why it could not be found out.
pub(crate) enum Unsound {
    Bad { path: String, what: String },
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Unsound {
    fn from(error: E) -> Unsound {
        Unsound::Failed(error.into())
    }
}

pub(crate) struct Verifier<'a> {
    pub(crate) disk: &'a Disk,
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) rows: bool,
    pub(crate) exchange: &'a Exchange,
}

impl Verifier<'_> {
    /// Checks all outputs, and that they have as many partitions as the merge gave.
    pub(crate) async fn outputs(
        &self,
        outcome: &Outcome,
    ) -> std::result::Result<Vec<OutputFiles>, Unsound> {
        let mut files = Vec::with_capacity(outcome.outputs.len());
        let mut partitions = 0;
        for output in &outcome.outputs {
            let progress = &self.exchange.progress;
            partitions += until_cancelled(progress, self.output(output)).await??;
            files.push(self.files(output).await?);
            self.exchange.goes_on()?;
        }
        if partitions != outcome.partitions_written {
            let what =
                format!("{partitions} partitions, {} were merged", outcome.partitions_written);
            let path = files.last().map(|f| f.path.clone()).unwrap_or_default();
            return Err(Unsound::Bad { path, what });
        }
        Ok(files)
    }

    /// Components, checksums, the order of the keys; the number of partitions.
    async fn output(&self, output: &Descriptor) -> std::result::Result<u64, Unsound> {
        let path = output.component_path(Component::Data).display().to_string();
        let options = VerifyOptions {
            extent: if self.rows { Extent::Rows } else { Extent::Files },
            schema: Some(self.schema.clone()),
            mode: AccessMode::Auto,
        };
        let mut goes_on = |_| {
            // If the receiver was dropped, this ends as if it were cancelled.
            self.exchange.goes_on().unwrap_or_else(|_| self.exchange.progress.cancel());
        };
        let report = verify(self.disk, output, &options, &mut goes_on).await;
        let error = report.findings.iter().find(|f| f.severity == Severity::Problem);
        if let Some(error) = error {
            return Err(Unsound::Bad { path, what: error.to_string() });
        }
        let options = OpenOptions { schema: Some(self.schema.clone()) };
        let sstable = SSTable::open(self.disk, output, options).await?;
        let bad = |what: String| Unsound::Bad { path: path.clone(), what };
        let walk = IndexWalk::open(self.disk, &sstable, AccessMode::Auto).await?;
        let sources = walk.sources();
        let indexed = match &sources {
            // A trie has no other order. Its keys are in the data, which is not read again.
            IndexSources::Bti { root, .. } => root.partitions,
            IndexSources::Big { .. } => {
                let mut keys = walk.keys(&sources);
                let (mut count, mut before) = (0, PartitionKey::empty());
                while let Some(entry) = keys.next().await? {
                    let key = PartitionKey::of(entry.key);
                    if count > 0 && sstable.layout().compare_keys(&before, &key).is_ge() {
                        return Err(bad("the keys of its index are not in order".to_owned()));
                    }
                    before = key;
                    count += 1;
                    if count % KEYS_BETWEEN == 0 {
                        self.exchange.goes_on()?;
                    }
                }
                count
            }
        };
        let counted = sstable.statistics().stats.partition_sizes.count();
        if u64::try_from(counted) != Ok(indexed) {
            let what = format!("its index has {indexed} partitions, its statistics {counted}");
            return Err(bad(what));
        }
        Ok(indexed)
    }

    async fn files(&self, output: &Descriptor) -> Result<OutputFiles> {
        let mut components = Vec::new();
        for component in Component::of_format(output.version.format) {
            let path = output.component_path(*component);
            let length = match self.disk.stat(&path).await {
                Ok(stat) => stat.len,
                Err(e) if e.is_not_found() => continue,
                Err(e) => return Err(e.into()),
            };
            let checksum = match component {
                Component::Data => None,
                _ if length > MOST_CHECKSUMMED => None,
                _ => Some(checksum(&self.disk.read(&path, MOST_CHECKSUMMED).await?)),
            };
            components.push(ComponentFile { name: component.to_string(), length, checksum });
        }
        let path = output.component_path(Component::Data).display().to_string();
        Ok(OutputFiles { path, components })
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = Crc32::new();
    hasher.update(bytes);
    hasher.finalize()
}

/// Gives up where the future waits for the disk.
async fn until_cancelled<T>(progress: &Progress, future: impl Future<Output = T>) -> Result<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if progress.is_cancelled() {
            return Poll::Ready(Err(Error::Cancelled));
        }
        future.as_mut().poll(context).map(Ok)
    })
    .await
}
