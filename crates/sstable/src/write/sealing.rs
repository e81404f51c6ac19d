//! The last step of writing an SSTable: the components that are known only when all data is written.

use std::sync::Arc;

use halcyon_io::Disk;
use halcyon_stream::{Column, Layout};

use crate::data::Bases;
use crate::data::chunk_write::DataSummary;
use crate::format::digest::Digest;
use crate::format::statistics::Statistics;
use crate::format::statistics::collector::MetadataCollector;
use crate::format::statistics::header::{HeaderColumn, HeaderType, SerializationHeader};
use crate::format::toc::Toc;
use crate::write::index_files::FinishedIndexes;
use crate::write::options::WriterOptions;
use crate::{Component, Descriptor, Format, Result};

pub(crate) struct Parts<'a> {
    pub(crate) disk: &'a Disk,
    pub(crate) descriptor: &'a Descriptor,
    pub(crate) layout: &'a Arc<Layout>,
    pub(crate) options: &'a WriterOptions,
    pub(crate) bases: Bases,
    pub(crate) data: DataSummary,
    pub(crate) index: FinishedIndexes,
    pub(crate) stats: MetadataCollector,
}

/// Writes and syncs everything but data and index, and then the directory.
pub(crate) async fn write_components(parts: Parts<'_>) -> Result<()> {
    let Parts { disk, descriptor, layout, options, bases, data, index, stats } = parts;
    let version = descriptor.version;
    let mut written = match version.format {
        Format::Big => vec![Component::Data, Component::Index],
        Format::Bti => vec![Component::Data, Component::Partitions, Component::Rows],
    };
    let mut files: Vec<(Component, Vec<u8>)> = Vec::new();
    let mut add = |component, encode: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        files.push((component, bytes));
    };
    if let Some(filter) = &index.filter {
        add(Component::Filter, &|out| filter.encode(version, out));
    }
    if let Some(summary) = &index.summary {
        add(Component::Summary, &|out| summary.encode(out));
    }
    match &data.compression {
        Some(info) => add(Component::CompressionInfo, &|out| info.encode(version, out)),
        None => add(Component::Crc, &|out| data.checksums.encode(out)),
    }
    add(Component::Digest, &|out| Digest(data.digest).encode(out));
    let statistics = statistics(layout, options, bases, &data, stats);
    add(Component::Statistics, &|out| statistics.encode(version, out));
    written.extend(files.iter().map(|(component, _)| *component));
    written.push(Component::Toc);
    let toc = Toc::new(written.iter().map(ToString::to_string));
    let mut bytes = Vec::new();
    toc.encode(&mut bytes);
    files.push((Component::Toc, bytes));
    for (component, bytes) in &files {
        let path = descriptor.component_path(*component);
        disk.write_new(&path, bytes, options.purpose).await?;
    }
    Ok(disk.sync_dir(&descriptor.directory).await?)
}

fn statistics(
    layout: &Layout,
    options: &WriterOptions,
    bases: Bases,
    data: &DataSummary,
    stats: MetadataCollector,
) -> Statistics {
    let columns = |columns: &[Column]| -> Vec<HeaderColumn> {
        let columns = columns.iter();
        columns
            .map(|c| HeaderColumn {
                name: c.name.clone(),
                column_type: HeaderType::from(c.cql_type.clone()),
            })
            .collect()
    };
    let types = layout.clustering_types.iter().cloned().map(HeaderType::from).collect();
    let mut header = SerializationHeader::new(HeaderType::from(layout.key_type.clone()), types);
    header.min_timestamp = bases.timestamp;
    header.min_local_deletion_time = bases.local_deletion_time;
    header.min_ttl = bases.ttl;
    header.static_columns = columns(&layout.statics);
    header.regular_columns = columns(&layout.regulars);
    let mut provenance = options.provenance.clone();
    provenance.compression_ratio = data
        .compression
        .as_ref()
        .map(|_| data.payload_length as f64 / data.data_length.max(1) as f64);
    stats.finish(header, provenance)
}
