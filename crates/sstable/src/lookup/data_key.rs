//! The key of a partition whose place in Data.db is known: reads the chunk or chunks that hold it, and nothing else.
//!
//! The chunk that was read last is kept, so keys asked for in order cost one read per chunk.

use std::path::PathBuf;

use halcyon_io::{AccessMode, Disk, Purpose, ReadFile};
use halcyon_model::DecodeError;

use crate::components::compression_info::CHUNK_CRC_LENGTH;
use crate::data::compress::Decompressor;
use crate::{Component, Error, Result, SSTable};

/// Uncompressed data is read, and where it can be checked against CRC.db, in pieces of this size.
const PLAIN_CHUNK: u64 = 64 * 1024;

pub(crate) struct DataKeys<'a> {
    sstable: &'a SSTable,
    file: ReadFile,
    path: PathBuf,
    decompressor: Option<Decompressor>,
    /// Number and content of the last chunk.
    chunk: Option<u64>,
    bytes: Vec<u8>,
    key: Vec<u8>,
}

impl<'a> DataKeys<'a> {
    pub(crate) async fn open(
        sstable: &'a SSTable,
        disk: &Disk,
        mode: AccessMode,
        purpose: Purpose,
    ) -> Result<DataKeys<'a>> {
        let path = sstable.descriptor().component_path(Component::Data);
        let file = disk.open(&path, mode, purpose).await?;
        let decompressor = match sstable.compression() {
            Some(info) => {
                let dictionary = info.dictionary.as_ref().map(|d| d.bytes.as_slice());
                let decompressor = Decompressor::new(&info.compressor, dictionary);
                Some(decompressor.map_err(|what| Error::Unsupported { path: path.clone(), what })?)
            }
            None => None,
        };
        let (bytes, key) = (Vec::new(), Vec::new());
        Ok(DataKeys { sstable, file, path, decompressor, chunk: None, bytes, key })
    }

    /// The key of the partition at `position` of the data.
    pub(crate) async fn key_at(&mut self, position: u64) -> Result<&[u8]> {
        self.read(position, 2).await?;
        let length = match self.key.first_chunk::<2>() {
            Some(length) => u64::from(u16::from_be_bytes(*length)),
            None => 0,
        };
        self.read(position.saturating_add(2), length).await?;
        Ok(&self.key)
    }

    /// Gathers exactly `length` bytes of the data into `key`.
    async fn read(&mut self, mut position: u64, length: u64) -> Result<()> {
        self.key.clear();
        let end = position.saturating_add(length);
        if end > self.sstable.data_length() {
            let what = format!("key of {length} bytes reaches beyond the end of the data");
            return Err(self.corrupt(position, what));
        }
        while position < end {
            let chunk_length = self.chunk_length();
            self.load(position / chunk_length).await?;
            let from = (position % chunk_length) as usize;
            let rest = self.bytes.get(from..).unwrap_or_default();
            let wanted = usize::try_from(end - position).unwrap_or(usize::MAX).min(rest.len());
            if wanted == 0 {
                return Err(self.corrupt(position, "data ends within a key".into()));
            }
            self.key.extend_from_slice(rest.get(..wanted).unwrap_or_default());
            position += wanted as u64;
        }
        Ok(())
    }

    fn chunk_length(&self) -> u64 {
        self.sstable.compression().map_or(PLAIN_CHUNK, |info| u64::from(info.chunk_length))
    }

    fn corrupt(&self, offset: u64, what: String) -> Error {
        Error::corrupt(&self.path, Component::Data, DecodeError { offset, what })
    }

    async fn load(&mut self, chunk: u64) -> Result<()> {
        if self.chunk == Some(chunk) {
            return Ok(());
        }
        self.chunk = None;
        match self.sstable.compression() {
            Some(_) => self.load_compressed(chunk).await?,
            None => self.load_plain(chunk).await?,
        }
        self.chunk = Some(chunk);
        Ok(())
    }

    async fn load_plain(&mut self, index: u64) -> Result<()> {
        let start = index * PLAIN_CHUNK;
        let length = PLAIN_CHUNK.min(self.file.len().saturating_sub(start));
        let stored = self.file.read_at(start, length as usize).await?;
        if let Some(crcs) = self.sstable.checksums()
            && u64::from(crcs.chunk_size) == PLAIN_CHUNK
        {
            crcs.verify(index as usize, &stored).map_err(|what| self.corrupt(start, what))?;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&stored);
        Ok(())
    }

    async fn load_compressed(&mut self, index: u64) -> Result<()> {
        let info = self.sstable.compression();
        let chunk = info.and_then(|info| info.chunk(usize::try_from(index).ok()?));
        let Some(chunk) = chunk else {
            return Err(self.corrupt(0, format!("there is no chunk {index}")));
        };
        let length = chunk.payload_length as usize + CHUNK_CRC_LENGTH as usize;
        let stored = self.file.read_at(chunk.offset, length).await?;
        self.bytes.clear();
        self.bytes.resize(chunk.data_length as usize, 0);
        let decompressor = &mut self.decompressor;
        let opened =
            chunk.open(&stored, true, &mut self.bytes, |payload, output| match decompressor {
                Some(decompressor) => decompressor.decompress(payload, output),
                None => Ok(()),
            });
        opened.map_err(|what| self.corrupt(chunk.offset, format!("chunk {index}: {what}")))?;
        Ok(())
    }
}
