//! `nodetool verify`: the checks of `halcyon sstable verify` on the live SSTables of a table, while it is read and written.
//!
//! A thread of idle priority reads the files. The SSTables are held meanwhile, so that a compaction deletes none of them.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_io::{Disk, ThreadPriority};
use halcyon_sstable::verify::{Extent, Severity, VerifyOptions, verify};
use halcyon_sstable::{Component, Descriptor};
use halcyon_stream::TableId;

use crate::Result;
use crate::background::{Background, JobKind};
use crate::tables::Tables;

/// An SSTable with problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub path: PathBuf,
    pub problems: Vec<String>,
}

impl Tables {
    /// The SSTables of a table that are not sound. `extended`: each row is decoded, and index and filter are compared with it.
    pub fn verify(
        self: &Arc<Tables>,
        table: TableId,
        extended: bool,
    ) -> LocalBoxFuture<'_, Result<Vec<Verified>>> {
        Box::pin(async move {
            let store = self.store_of(table)?;
            let runtime = self.storage.disk.runtime();
            let background = Background::start(runtime, "verify", 1, ThreadPriority::Idle);
            let tables = self.clone();
            let job = move || async move {
                let schema = store.definition.load().schema.clone();
                let extent = if extended { Extent::Rows } else { Extent::Digest };
                let mode = tables.storage.options.background_read_mode;
                let options = VerifyOptions { extent, schema: Some(schema), mode };
                let version = store.version.load_full();
                let mut found = Vec::new();
                for live in version.sstables() {
                    let descriptor = live.descriptor();
                    let disk = &tables.storage.disk;
                    let problems = problems_of(disk, descriptor, &options).await;
                    if !problems.is_empty() {
                        let path = descriptor.component_path(Component::Data);
                        found.push(Verified { path, problems });
                    }
                }
                found
            };
            Ok(background.run(JobKind::Long, job).await?)
        })
    }
}

/// What is not sound in an SSTable.
pub(crate) async fn problems_of(
    disk: &Disk,
    descriptor: &Descriptor,
    options: &VerifyOptions,
) -> Vec<String> {
    let report = verify(disk, descriptor, options, &mut |_| {}).await;
    let problems = report.findings.iter().filter(|of| of.severity == Severity::Problem);
    let mut problems: Vec<String> = problems.map(ToString::to_string).collect();
    if report.unreadable && problems.is_empty() {
        problems.push("a part of it could not be read".to_owned());
    }
    problems
}
