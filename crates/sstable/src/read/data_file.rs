//! Data.db of an SSTable, open for reads of any chunk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use halcyon_io::{AccessMode, Disk, Purpose, ReadFile};

use super::caches::FileId;
use crate::format::compression_info::CompressionInfo;
use crate::format::crc::ChunkCrcs;
use crate::{Component, Result, SSTable};

/// Uncompressed data without CRC.db is cached in pieces of this size.
const PLAIN_CHUNK: u64 = 4096;

/// Immutable; threads share the files, each with caches of its own.
#[derive(Clone)]
pub(super) struct DataFile {
    id: FileId,
    file: ReadFile,
    /// The same file for scans: the statistics of I/O are kept per purpose.
    scan_file: ReadFile,
    path: PathBuf,
    compression: Option<Arc<CompressionInfo>>,
    checksums: Option<Arc<ChunkCrcs>>,
    data_length: u64,
    /// Which decompressor of the caches it needs. One with a dictionary belongs to its SSTable.
    codec: (u64, String),
}

impl DataFile {
    /// `id`: of the SSTable, in the caches.
    pub(super) async fn open(
        disk: &Disk,
        sstable: &SSTable,
        id: u64,
        mode: AccessMode,
    ) -> Result<DataFile> {
        let path = sstable.descriptor().component_path(Component::Data);
        let codec = match sstable.compression() {
            Some(info) if info.dictionary.is_some() => (id, info.compressor.clone()),
            Some(info) => (0, info.compressor.clone()),
            None => (0, String::new()),
        };
        let file = disk.open(&path, mode, Purpose::UserRead).await?;
        let scan_file = match file.for_purpose(Purpose::Scan) {
            Some(shared) => shared,
            None => disk.open(&path, mode, Purpose::Scan).await?,
        };
        Ok(DataFile {
            id: FileId::of(id, Component::Data),
            file,
            scan_file,
            path,
            compression: sstable.compression().cloned(),
            checksums: sstable.checksums().cloned(),
            data_length: sstable.data_length(),
            codec,
        })
    }

    pub(super) fn id(&self) -> FileId {
        self.id
    }

    pub(super) fn file(&self, scan: bool) -> &ReadFile {
        if scan { &self.scan_file } else { &self.file }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn compression(&self) -> Option<&Arc<CompressionInfo>> {
        self.compression.as_ref()
    }

    pub(super) fn checksums(&self) -> Option<&ChunkCrcs> {
        self.checksums.as_deref()
    }

    pub(super) fn chunk_length(&self) -> u64 {
        match (&self.compression, &self.checksums) {
            (Some(info), _) => u64::from(info.chunk_length),
            (None, Some(crcs)) => u64::from(crcs.chunk_size),
            (None, None) => PLAIN_CHUNK,
        }
    }

    /// Bytes uncompressed.
    pub(super) fn data_length(&self) -> u64 {
        self.data_length
    }

    pub(super) fn codec(&self) -> &(u64, String) {
        &self.codec
    }
}
