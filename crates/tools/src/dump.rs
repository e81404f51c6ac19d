//! The partitions of SSTables, as streams of fragments.
//!
//! One pass over the data: memory does not grow with the size of a partition.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use halcyon_io::{AccessMode, Disk};
use halcyon_model::schema::TableSchema;
use halcyon_model::value::to_string;
use halcyon_sstable::{IndexWalk, OpenOptions, SSTable, SSTableScanner, ScanOptions};
use halcyon_stream::{Fragment, FragmentStream};

use crate::error::Error;
use crate::notices::Notices;
use crate::paths::{self, TableName};
use crate::schema_source::{self, SchemaSource};

pub struct Request {
    pub paths: Vec<PathBuf>,
    /// `None`: the columns are those of the header, as for sstabledump.
    pub schema: Option<SchemaSource>,
    pub partitions: Partitions,
}

/// Which partitions are wanted, by their keys as a dump shows them.
#[derive(Default)]
pub struct Partitions {
    /// Empty: all.
    pub only: BTreeSet<String>,
    pub not: BTreeSet<String>,
}

impl Partitions {
    fn has(&self, key: &str) -> bool {
        (self.only.is_empty() || self.only.contains(key)) && !self.not.contains(key)
    }

    fn is_everything(&self) -> bool {
        self.only.is_empty() && self.not.is_empty()
    }
}

/// An SSTable to dump.
pub struct Source<'a> {
    pub table: &'a TableName,
    pub sstable: SSTable,
    /// With a schema, cells of dropped columns are omitted, as in a read.
    pub schema: Option<Arc<TableSchema>>,
    wanted: &'a Partitions,
}

/// Hands the SSTables over, one after the other.
pub async fn each_sstable<E: From<Error>>(
    disk: &Disk,
    request: &Request,
    notices: &dyn Notices,
    mut each: impl AsyncFnMut(Source<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for folder in &paths::find(disk, &request.paths).await? {
        folder.warn_of_left_out(notices);
        let schema = match &request.schema {
            Some(source) => schema_source::of_folder(disk, source, folder, notices).await?,
            None => None,
        };
        for listed in &folder.sstables {
            let options = OpenOptions { schema: schema.clone() };
            let sstable = SSTable::open_listed(disk, listed, options).await.map_err(Error::from)?;
            let (table, wanted) = (&folder.table, &request.partitions);
            each(Source { table, sstable, schema: schema.clone(), wanted }).await?;
        }
    }
    Ok(())
}

impl Source<'_> {
    /// The schema, or else one with neutral names for the key's columns.
    pub fn schema_or_neutral(&self) -> Arc<TableSchema> {
        self.schema.clone().unwrap_or_else(|| {
            Arc::new(schema_source::neutral(self.sstable.statistics(), self.table))
        })
    }

    /// Hands the scanner over at the start of each wanted partition. Reads all of the SSTable.
    pub async fn scan<E: From<Error>>(
        &self,
        disk: &Disk,
        mut each: impl AsyncFnMut(&mut SSTableScanner) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut scanner =
            self.sstable.scan(disk, ScanOptions::default()).await.map_err(Error::from)?;
        while scanner.advance().await.map_err(Error::from)? {
            let Fragment::Start(start) = scanner.fragment() else { continue };
            if self.wanted.is_everything() || self.wants(&start.key.bytes) {
                each(&mut scanner).await?;
            }
        }
        Ok(())
    }

    /// The same, by the index where single partitions are wanted, so that others are not read.
    pub async fn look_up<E: From<Error>>(
        &self,
        disk: &Disk,
        mut each: impl AsyncFnMut(&mut SSTableScanner) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.wanted.only.is_empty() {
            return self.scan(disk, each).await;
        }
        let index =
            IndexWalk::open(disk, &self.sstable, AccessMode::Auto).await.map_err(Error::from)?;
        let sources = index.sources();
        let mut keys = index.keys(&sources);
        while let Some(entry) = keys.next().await.map_err(Error::from)? {
            if !self.wants(entry.key) {
                continue;
            }
            let options = ScanOptions::default();
            let found = self.sstable.partition_at(disk, entry.data_position, options).await;
            let mut scanner = found.map_err(Error::from)?;
            if scanner.advance().await.map_err(Error::from)? {
                each(&mut scanner).await?;
            }
        }
        Ok(())
    }

    fn wants(&self, key: &[u8]) -> bool {
        self.wanted.has(&to_string(&self.sstable.layout().key_type, key))
    }
}
