//! Reports everything that is wrong with an SSTable, as far as its own files show it.
//!
//! 1. *Files*: components present, each small one decodes, TOC.txt and directory agree, chunks fit Data.db.
//! 2. *Checksums*: Data.db read once as it is stored, against Digest.crc32 and (of rows) the checksum of every chunk.
//! 3. *Content* (of rows): every row decoded, beside the index, the row indexes, summary, filter and statistics.
//!
//! A problem never stops more than what depends on it. Data that cannot be read is skipped, up to the next partition in the
//! index.  Memory is bounded: small components, one row, one block of a row index, a thousand findings.
//!
//! Damage that no checksum covers and no other component contradicts cannot be found: bits of a filter that are set without need, padding,
//! options of a compressor.

mod blocks;
mod cells;
mod content;
mod files;
mod indexed;
mod progress;
mod report;
mod sampled;
mod scrub;
mod stored;
mod totals;

use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_io::{AccessMode, Disk};
use halcyon_model::schema::TableSchema;
use halcyon_stream::Validator;

use crate::bti::PartitionIndex;
use crate::format::filter::Filter;
use crate::format::listing::ListedSSTable;
use crate::format::statistics::MetadataCollector;
use crate::read::index_files::IndexSources;
use crate::{Component, Descriptor, Error, IndexWalk, OpenOptions, SSTable};

use content::{Partition, Walk};
use files::Files;
use indexed::IndexEntries;
use sampled::SummaryCheck;

pub use progress::{Progress, Step};
pub use report::{Checked, Finding, Severity, VerifyReport};
pub use scrub::{Damage, Scrub, ScrubOptions};

/// How much is looked at; each includes the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// All but the bytes of Data.db: their writer has just compared them ([`halcyon_io::WriteOptions::read_back`]).
    Files,
    /// And its digest.
    #[default]
    Digest,
    /// And every chunk, every row, every index entry.
    Rows,
}

#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    pub extent: Extent,
    /// Checks that the SSTable is of this table.
    pub schema: Option<Arc<TableSchema>>,
    pub mode: AccessMode,
}

/// Never fails: what keeps it from reading is a finding too.
pub fn verify<'a>(
    disk: &'a Disk,
    descriptor: &'a Descriptor,
    options: &'a VerifyOptions,
    progress: &'a mut dyn FnMut(Progress),
) -> LocalBoxFuture<'a, VerifyReport> {
    Box::pin(async move {
        let mut report = VerifyReport::default();
        let Some(files) = files::check(disk, descriptor, &mut report).await else { return report };
        let rows = options.extent == Extent::Rows;
        if options.extent >= Extent::Digest && files.listed.has(Component::Data) {
            let how = (options.mode, rows);
            stored::check(disk, &files, how, &mut report, progress).await;
        }
        if let Some(sstable) = open(disk, &files, options, &mut report).await {
            check_filter(&sstable, files.filter.as_ref(), &mut report);
            if rows {
                content(disk, &sstable, &files, options, &mut report, progress).await;
            }
        }
        report
    })
}

/// Opens what can be read, without the components that are damaged and not needed.
async fn open(
    disk: &Disk,
    files: &Files,
    options: &VerifyOptions,
    report: &mut VerifyReport,
) -> Option<SSTable> {
    let mut listed: ListedSSTable = files.listed.clone();
    listed.components.retain(|component| match component {
        Component::Crc => files.checksums.is_some() && !report.has_problems_in(Component::Crc),
        _ => true,
    });
    let opened = SSTable::open_listed(disk, &listed, OpenOptions::default()).await;
    let sstable = match opened {
        Ok(sstable) => sstable,
        Err(error) => {
            report.failed(Component::Statistics, &error);
            return None;
        }
    };
    if let Some(schema) = &options.schema {
        let with_schema = OpenOptions { schema: Some(schema.clone()) };
        if let Err(Error::Invalid(what)) = SSTable::open_listed(disk, &listed, with_schema).await {
            report.problem(Component::Statistics, None, what);
        }
    }
    Some(sstable)
}

/// The filter's hash count follows from the chance of false positives that Statistics.db names.
fn check_filter(sstable: &SSTable, filter: Option<&Filter>, report: &mut VerifyReport) {
    let Some(validation) = &sstable.statistics().validation else { return };
    let chance = validation.bloom_filter_fp_chance;
    match (Filter::for_keys(1, chance), filter) {
        (Ok(Some(_)), None) if !sstable.has(Component::Filter) => {
            report.remark(Component::Filter, None, "missing");
        }
        (Ok(Some(_)), Some(filter)) if filter.memory() == 0 => {
            report.remark(Component::Filter, None, "empty: it lets every key pass");
        }
        (Ok(Some(expected)), Some(filter)) => {
            let (is, should) = (filter.hash_count(), expected.hash_count());
            if is != should {
                let what = format!("{is} hashes per key, {should} belong to a chance of {chance}");
                report.remark(Component::Filter, 0, what);
            }
        }
        _ => {}
    }
}

async fn content(
    disk: &Disk,
    sstable: &SSTable,
    files: &Files,
    options: &VerifyOptions,
    report: &mut VerifyReport,
    progress: &mut dyn FnMut(Progress),
) {
    let opened = IndexWalk::open(disk, sstable, options.mode).await;
    let index = opened.map_err(|error| report.failed(Component::Partitions, &error)).ok();
    let sources = index.as_ref().map(IndexWalk::sources);
    let summary = files.summary.as_ref().map(SummaryCheck::new);
    let partitioner = &sstable.layout().partitioner;
    let entries = match &sources {
        Some(sources) => Some(IndexEntries::start(sources, partitioner, summary, report).await),
        None => None,
    };
    let walk = Walk {
        sstable,
        sources: sources.as_ref(),
        index: entries,
        filter: files.filter.as_ref(),
        report,
        progress,
        partition: Partition::none(),
        collector: MetadataCollector::new(sstable.layout().clusterings.clone()),
        validator: Validator::new(sstable.layout().clone()),
        complete: true,
    };
    let content = walk.run(disk, options.mode).await;
    if !content.complete {
        return;
    }
    if let Some(IndexSources::Bti { root, .. }) = &sources {
        check_ends(root, &content, report);
    }
    let version = sstable.descriptor().version;
    let partitions = report.checked.partitions;
    totals::check(sstable.statistics(), version, content, partitions, report);
}

/// First and last key in the footer of Partitions.db.
fn check_ends(root: &PartitionIndex, content: &content::Content, report: &mut VerifyReport) {
    for (which, said, is) in [
        ("first", &root.first_key, content.first_key.as_ref()),
        ("last", &root.last_key, content.last_key.as_ref()),
    ] {
        if is.is_some_and(|is| is != said) {
            let what = format!("another {which} key than the data");
            report.problem(Component::Partitions, root.keys_position, what);
        }
    }
}
