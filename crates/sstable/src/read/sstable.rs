//! An SSTable that is open for reading: its small components in memory, its data read on demand.
//!
//! Opening follows Cassandra's order (`SSTableReaderBuilder`): TOC or a listing of the directory, Statistics with its header, the
//! partitioner, CompressionInfo. Index, filter and summary are read at their first use.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use futures_util::future::LocalBoxFuture;
use halcyon_io::{AccessMode, Disk, Purpose, StreamOptions};
use halcyon_model::schema::TableSchema;
use halcyon_model::{Clusterings, CqlType, Cursor, DecodeError, Partitioner};
use halcyon_stream::{Column, Layout, PartitionKey};

use crate::data::Bases;
use crate::data::chunk_read::{ChunkSource, DataReader, Encoding};
use crate::data::compress::Decompressor;
use crate::data::decode::RowDecoder;
use crate::data::scanner::SSTableScanner;
use crate::data::window::DataWindow;
use crate::format::compression_info::CompressionInfo;
use crate::format::crc::ChunkCrcs;
use crate::format::filter::Filter;
use crate::format::listing::{self, ListedSSTable};
use crate::format::statistics::Statistics;
use crate::format::statistics::header::{HeaderColumn, SerializationHeader};
use crate::{Component, Descriptor, Error, Result};

/// No component but Data.db and the indexes is larger.
const MAX_STATISTICS: u64 = 256 << 20;
const MAX_COMPRESSION_INFO: u64 = 2 << 30;
const MAX_FILTER: u64 = 2 << 30;
const MAX_CRC: u64 = 512 << 20;

#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Dropped columns, and a check that the SSTable is of this table.
    pub schema: Option<Arc<TableSchema>>,
}

#[derive(Debug)]
pub struct SSTable {
    listed: ListedSSTable,
    statistics: Statistics,
    layout: Arc<Layout>,
    compression: Option<Arc<CompressionInfo>>,
    /// CRC.db, for uncompressed data.
    checksums: Option<Arc<ChunkCrcs>>,
    file_length: u64,
    data_length: u64,
    dropped: BTreeMap<Vec<u8>, i64>,
    /// The sketch takes some 90 µs to read, and few ask for it.
    estimated_keys: OnceLock<u64>,
}

/// How to scan.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    pub mode: AccessMode,
    pub purpose: Purpose,
    pub stream: StreamOptions,
    /// Column numbering of the fragments; the SSTable's own if none is given.
    pub layout: Option<Arc<Layout>>,
    pub verify_checksums: bool,
}

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        ScanOptions {
            mode: AccessMode::Auto,
            purpose: Purpose::Scan,
            stream: StreamOptions::default(),
            layout: None,
            verify_checksums: true,
        }
    }
}

impl SSTable {
    pub fn open<'a>(
        disk: &'a Disk,
        descriptor: &'a Descriptor,
        options: OpenOptions,
    ) -> LocalBoxFuture<'a, Result<SSTable>> {
        Box::pin(async move {
            let entries = disk.list(&descriptor.directory).await?;
            let names = entries.iter().filter(|entry| !entry.is_dir).map(|entry| &entry.name);
            let listing = listing::group(&descriptor.directory, names);
            match listing.sstables.iter().find(|listed| listed.descriptor == *descriptor) {
                Some(listed) => SSTable::open_listed(disk, listed, options).await,
                None => Err(Error::Missing {
                    path: descriptor.component_path(Component::Data),
                    component: Component::Data,
                    why: "no file of this SSTable is there".into(),
                }),
            }
        })
    }

    /// Opens one whose directory has been listed.
    pub fn open_listed<'a>(
        disk: &'a Disk,
        listed: &'a ListedSSTable,
        options: OpenOptions,
    ) -> LocalBoxFuture<'a, Result<SSTable>> {
        Box::pin(async move {
            let descriptor = &listed.descriptor;
            descriptor.version.readable().map_err(|what| Error::Unsupported {
                path: descriptor.component_path(Component::Data),
                what,
            })?;
            for component in [Component::Data, Component::Statistics] {
                if !listed.has(component) {
                    return Err(Error::Missing {
                        path: descriptor.component_path(component),
                        component,
                        why: "an SSTable cannot be read without it".into(),
                    });
                }
            }
            let statistics = read_statistics(disk, descriptor).await?;
            let layout = Arc::new(layout_of(descriptor, &statistics)?);
            let file_length = disk.stat(&descriptor.component_path(Component::Data)).await?.len;
            let compression = read_compression_info(disk, listed, file_length).await?;
            let checksums = match compression {
                None if listed.has(Component::Crc) => Some(read_crc(disk, descriptor).await?),
                _ => None,
            };
            check_length(descriptor, file_length, checksums.as_deref())?;
            Ok(SSTable {
                estimated_keys: OnceLock::new(),
                listed: listed.clone(),
                dropped: dropped_columns(descriptor, &statistics, &options)?,
                data_length: compression.as_ref().map_or(file_length, |info| info.data_length),
                statistics,
                layout,
                compression: compression.map(Arc::new),
                checksums,
                file_length,
            })
        })
    }

    /// The same by another schema, or after its statistics were written again: nothing else is read.
    pub fn reopen<'a>(
        &'a self,
        disk: &'a Disk,
        options: OpenOptions,
    ) -> LocalBoxFuture<'a, Result<SSTable>> {
        Box::pin(async move {
            let descriptor = self.descriptor();
            let statistics = read_statistics(disk, descriptor).await?;
            Ok(SSTable {
                estimated_keys: OnceLock::new(),
                listed: self.listed.clone(),
                layout: Arc::new(layout_of(descriptor, &statistics)?),
                dropped: dropped_columns(descriptor, &statistics, &options)?,
                statistics,
                compression: self.compression.clone(),
                checksums: self.checksums.clone(),
                file_length: self.file_length,
                data_length: self.data_length,
            })
        })
    }

    pub fn descriptor(&self) -> &Descriptor {
        &self.listed.descriptor
    }

    /// Its files, foreign ones too.
    pub fn listed(&self) -> &ListedSSTable {
        &self.listed
    }

    pub fn has(&self, component: Component) -> bool {
        self.listed.has(component)
    }

    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub fn compression(&self) -> Option<&Arc<CompressionInfo>> {
        self.compression.as_ref()
    }

    pub(crate) fn checksums(&self) -> Option<&Arc<ChunkCrcs>> {
        self.checksums.as_ref()
    }

    /// Bytes of Data.db as stored.
    pub fn file_length(&self) -> u64 {
        self.file_length
    }

    /// Bytes of Data.db uncompressed.
    pub fn data_length(&self) -> u64 {
        self.data_length
    }

    /// From Statistics.db, which has it from `oa` on.
    pub(crate) fn first_key(&self) -> Option<&[u8]> {
        self.statistics.stats.first_key.as_deref().filter(|key| !key.is_empty())
    }

    /// From Statistics.db, which has it from `oa` on.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        self.statistics.stats.last_key.as_deref().filter(|key| !key.is_empty())
    }

    /// First and last key, from Statistics.db.
    pub fn recorded_ends(&self) -> Option<(PartitionKey, PartitionKey)> {
        let (first, last) = self.first_key().zip(self.last_key())?;
        Some((PartitionKey::of(first), PartitionKey::of(last)))
    }

    /// Keys, estimated from the cardinality sketch, or else from the partition size histogram.
    pub fn estimated_keys(&self) -> u64 {
        *self.estimated_keys.get_or_init(|| estimated_keys(&self.statistics))
    }

    /// Its Bloom filter; one that lets everything pass if it has none, or a damaged one: it only saves reads.
    pub fn filter<'a>(&'a self, disk: &'a Disk) -> LocalBoxFuture<'a, Result<Filter>> {
        Box::pin(async move {
            if !self.has(Component::Filter) {
                return Ok(Filter::ALWAYS_PRESENT);
            }
            let path = self.descriptor().component_path(Component::Filter);
            let bytes = disk.read(&path, MAX_FILTER).await?;
            let decoded = Filter::decode(&mut Cursor::new(&bytes), self.descriptor().version);
            Ok(decoded.unwrap_or(Filter::ALWAYS_PRESENT))
        })
    }

    /// All partitions, in order.
    pub async fn scan(&self, disk: &Disk, options: ScanOptions) -> Result<SSTableScanner> {
        self.scanner(disk, options, u64::MAX).await
    }

    /// The partition that begins at this position of the data.
    pub async fn partition_at(
        &self,
        disk: &Disk,
        position: u64,
        options: ScanOptions,
    ) -> Result<SSTableScanner> {
        let mut scanner = self.scanner(disk, options, 1).await?;
        scanner.seek(position).await?;
        Ok(scanner)
    }

    pub(crate) async fn chunk_source(
        &self,
        disk: &Disk,
        options: &ScanOptions,
    ) -> Result<ChunkSource> {
        let path = self.descriptor().component_path(Component::Data);
        let encoding = match &self.compression {
            Some(info) => {
                let dictionary = info.dictionary.as_ref().map(|d| d.bytes.as_slice());
                let decompressor = Decompressor::new(&info.compressor, dictionary)
                    .map_err(|what| unusable_compressor(self.descriptor(), what))?;
                Encoding::Chunked { info: info.clone(), decompressor }
            }
            None => Encoding::Plain { checksums: self.checksums.clone() },
        };
        let reader =
            disk.open_sequential(&path, options.mode, options.purpose, options.stream).await?;
        Ok(ChunkSource::new(path, reader, encoding, options.verify_checksums))
    }

    /// The whole uncompressed data; for small SSTables.
    pub fn read_data<'a>(&'a self, disk: &'a Disk) -> LocalBoxFuture<'a, Result<Vec<u8>>> {
        Box::pin(async move {
            let source = self.chunk_source(disk, &ScanOptions::default()).await?;
            let mut reader = DataReader::new(source);
            let mut data = Vec::new();
            while reader.remaining() > 0 {
                reader.fill(1).await?;
                data.extend_from_slice(reader.available());
                reader.consume(reader.available().len());
            }
            Ok(data)
        })
    }

    async fn scanner(
        &self,
        disk: &Disk,
        options: ScanOptions,
        partitions: u64,
    ) -> Result<SSTableScanner> {
        let data = DataReader::new(self.chunk_source(disk, &options).await?);
        let layout = options.layout.unwrap_or_else(|| self.layout.clone());
        let decoder = Arc::new(self.decoder(&layout)?);
        Ok(self.scanner_of(data, decoder, layout, partitions))
    }

    /// Scans the data of a window, by the decoder of its rows for this layout.
    pub(crate) fn scanner_of<D: DataWindow>(
        &self,
        data: D,
        decoder: Arc<RowDecoder>,
        layout: Arc<Layout>,
        partitions: u64,
    ) -> SSTableScanner<D> {
        let unsigned = decoder.unsigned_deletion_times;
        SSTableScanner::new(data, decoder, layout, unsigned, partitions)
    }

    /// The decoder of its rows for a stream in which `layout` numbers the columns.
    pub(crate) fn decoder(&self, layout: &Arc<Layout>) -> Result<RowDecoder> {
        let header = &self.statistics.header;
        let bases = Bases {
            timestamp: header.min_timestamp,
            local_deletion_time: header.min_local_deletion_time,
            ttl: header.min_ttl,
        };
        let unsigned = self.descriptor().version.has_uint_deletion_time();
        let dropped_at = |name: &[u8]| self.dropped.get(name).copied();
        RowDecoder::new(bases, unsigned, &self.layout, layout, dropped_at).ok_or_else(|| {
            Error::Invalid(format!("{}: the wanted layout lacks a column", self.descriptor()))
        })
    }
}

/// The compressor's name is the first field of its component.
fn unusable_compressor(descriptor: &Descriptor, what: String) -> Error {
    let path = descriptor.component_path(Component::CompressionInfo);
    Error::Unsupported { path, what: format!("at offset 0: {what}") }
}

async fn read_statistics(disk: &Disk, descriptor: &Descriptor) -> Result<Statistics> {
    let path = descriptor.component_path(Component::Statistics);
    let bytes = disk.read(&path, MAX_STATISTICS).await?;
    Statistics::decode(&mut Cursor::new(&bytes), descriptor.version)
        .map_err(|e| Error::corrupt(path, Component::Statistics, e))
}

async fn read_compression_info(
    disk: &Disk,
    listed: &ListedSSTable,
    file_length: u64,
) -> Result<Option<CompressionInfo>> {
    let descriptor = &listed.descriptor;
    let path = descriptor.component_path(Component::CompressionInfo);
    if !listed.has(Component::CompressionInfo) {
        if toc_lists(disk, listed, Component::CompressionInfo).await? {
            let why = "TOC.txt lists it: without it the compressed data cannot be read".into();
            return Err(Error::Missing { path, component: Component::CompressionInfo, why });
        }
        return Ok(None);
    }
    let bytes = disk.read(&path, MAX_COMPRESSION_INFO).await?;
    CompressionInfo::decode(&mut Cursor::new(&bytes), descriptor.version, file_length)
        .map(Some)
        .map_err(|e| Error::corrupt(path, Component::CompressionInfo, e))
}

async fn toc_lists(disk: &Disk, listed: &ListedSSTable, component: Component) -> Result<bool> {
    if !listed.has(Component::Toc) {
        return Ok(false);
    }
    let path = listed.descriptor.component_path(Component::Toc);
    let bytes = disk.read(&path, 1 << 20).await?;
    let toc = crate::format::toc::Toc::decode(&mut Cursor::new(&bytes))
        .map_err(|e| Error::corrupt(path, Component::Toc, e))?;
    Ok(toc.contains(component))
}

async fn read_crc(disk: &Disk, descriptor: &Descriptor) -> Result<Arc<ChunkCrcs>> {
    let path = descriptor.component_path(Component::Crc);
    let bytes = disk.read(&path, MAX_CRC).await?;
    ChunkCrcs::decode(&mut Cursor::new(&bytes))
        .map(Arc::new)
        .map_err(|e| Error::corrupt(path, Component::Crc, e))
}

/// Data.db must be complete: a file cut off between two partitions would read like a shorter one.
fn check_length(descriptor: &Descriptor, length: u64, checksums: Option<&ChunkCrcs>) -> Result<()> {
    let chunks = |checksums: &ChunkCrcs| length.div_ceil(u64::from(checksums.chunk_size.max(1)));
    let what = match checksums {
        _ if length == 0 => "the file is empty".to_owned(),
        // Cassandra's compaction has a checksum of nothing at the end.
        Some(sums) if sums.crcs.len() as u64 > chunks(sums) + 1 => {
            format!("the file ends here, CRC.db has {} checksums", sums.crcs.len())
        }
        _ => return Ok(()),
    };
    let path = descriptor.component_path(Component::Data);
    Err(Error::corrupt(path, Component::Data, DecodeError { offset: length, what }))
}

fn estimated_keys(statistics: &Statistics) -> u64 {
    let sketch = statistics.compaction.as_ref().and_then(|c| c.cardinality().ok());
    match sketch.map(|sketch| sketch.estimate()) {
        Some(keys) if keys > 0 => keys,
        _ => u64::try_from(statistics.stats.partition_sizes.count()).unwrap_or(0).max(1),
    }
}

fn layout_of(descriptor: &Descriptor, statistics: &Statistics) -> Result<Layout> {
    let path = descriptor.component_path(Component::Statistics);
    let header = &statistics.header;
    let unsupported = |what: String| Error::Unsupported { path: path.clone(), what };
    let partitioner = match &statistics.validation {
        Some(validation) => Partitioner::parse(&validation.partitioner)
            .map_err(|e| unsupported(e.to_string()))?
            .with_key_type(header.key_type.cql()),
        None => Partitioner::Murmur3,
    };
    if !partitioner.supported() {
        return Err(unsupported(format!(
            "written with {}, which is not supported",
            partitioner.class_name()
        )));
    }
    let clustering_types: Vec<CqlType> =
        header.clustering_types.iter().map(|t| t.cql().clone()).collect();
    let columns = |columns: &[HeaderColumn]| -> Result<Vec<Column>> {
        let columns: Vec<Column> = columns
            .iter()
            .map(|c| Column::new(c.name.clone(), c.column_type.cql().clone()))
            .collect();
        if columns.is_sorted_by(|a, b| a.compare(b).is_lt()) {
            return Ok(columns);
        }
        Err(unsupported("columns of the serialization header are not in order".into()))
    };
    Ok(Layout {
        partitioner,
        key_type: header.key_type.cql().clone(),
        clusterings: Clusterings::new(&clustering_types),
        clustering_types,
        statics: columns(&header.static_columns)?,
        regulars: columns(&header.regular_columns)?,
    })
}

/// The columns that were dropped from a schema, with the times, if an SSTable has what the schema says.
fn dropped_columns(
    descriptor: &Descriptor,
    statistics: &Statistics,
    options: &OpenOptions,
) -> Result<BTreeMap<Vec<u8>, i64>> {
    let Some(schema) = &options.schema else { return Ok(BTreeMap::new()) };
    check_schema(descriptor, &statistics.header, schema)?;
    let dropped = schema.dropped.iter();
    Ok(dropped.map(|column| (column.name.clone().into_bytes(), column.dropped_time)).collect())
}

/// A schema fits if keys have the same types and every column of the header is known to it, now or once.
fn check_schema(
    descriptor: &Descriptor,
    header: &SerializationHeader,
    schema: &TableSchema,
) -> Result<()> {
    let table = format!("{}.{}", schema.keyspace, schema.name);
    let misfit = |what: String| {
        Err(Error::Invalid(format!(
            "{descriptor} does not fit the schema of {table}: {what}. Give the schema of the table \
             that the SSTable belongs to, or none"
        )))
    };
    let wanted = schema.clustering.len();
    if header.clustering_types.len() != wanted {
        let n = header.clustering_types.len();
        return misfit(format!("it has {n} clustering columns, the schema {wanted}"));
    }
    for (column, stored) in schema.clustering.iter().zip(&header.clustering_types) {
        if column.cql_type.fixed_len() != stored.cql().fixed_len() {
            return misfit(format!(
                "clustering column {} is stored as {}, the schema says {}",
                column.name,
                stored.cql().cql_name(),
                column.cql_type.cql_name()
            ));
        }
    }
    let stored = header.static_columns.iter().chain(&header.regular_columns);
    for column in stored {
        let name = String::from_utf8_lossy(&column.name);
        let known = schema.statics.iter().chain(&schema.regulars).find(|c| c.name == name);
        let dropped = schema.dropped.iter().any(|c| c.name == name);
        match known {
            None if !dropped => return misfit(format!("column {name} is not in the schema")),
            Some(known)
                if !dropped
                    && known.cql_type.is_multi_cell()
                        != column.column_type.cql().is_multi_cell() =>
            {
                return misfit(format!(
                    "column {name} is stored as {}, the schema says {}",
                    column.column_type.cql().cql_name(),
                    known.cql_type.cql_name()
                ));
            }
            _ => {}
        }
    }
    Ok(())
}
