//! The components as files: which are there, which should be, and whether each small one can be decoded.

use halcyon_io::Disk;
use halcyon_model::{Cursor, DecodeResult};

use super::report::VerifyReport;
use crate::data::compress::Decompressor;
use crate::format::compression_info::CompressionInfo;
use crate::format::crc::{ChunkCrcs, DEFAULT_CRC_CHUNK_SIZE};
use crate::format::digest::Digest;
use crate::format::filter::Filter;
use crate::format::listing::{self, ListedSSTable};
use crate::format::statistics::Statistics;
use crate::format::summary::Summary;
use crate::format::toc::Toc;
use crate::{Component, Descriptor};

/// No small component is larger.
const MAX_COMPONENT: u64 = 3 << 30;

/// The components that are sound; the others have been reported.
pub(super) struct Files {
    pub(super) listed: ListedSSTable,
    pub(super) compression: Option<CompressionInfo>,
    pub(super) checksums: Option<ChunkCrcs>,
    pub(super) filter: Option<Filter>,
    pub(super) summary: Option<Summary>,
    pub(super) digest: Option<Digest>,
}

struct Reader<'a> {
    disk: &'a Disk,
    listed: &'a ListedSSTable,
    report: &'a mut VerifyReport,
}

/// `None` if there is nothing to verify.
pub(super) async fn check(
    disk: &Disk,
    descriptor: &Descriptor,
    report: &mut VerifyReport,
) -> Option<Files> {
    let listed = list(disk, descriptor, report).await?;
    check_present(&listed, report);
    let version = descriptor.version;
    let data = disk.stat(&descriptor.component_path(Component::Data)).await;
    let data_length = data.map_or(0, |stat| stat.len);
    if listed.has(Component::Data) && data_length == 0 {
        report.problem(Component::Data, None, "the file is empty");
    }
    let mut reader = Reader { disk, listed: &listed, report };
    let toc = reader.read(Component::Toc, Toc::decode).await;
    reader.read(Component::Statistics, |c| Statistics::decode(c, version)).await;
    let files = Files {
        compression: reader
            .read(Component::CompressionInfo, |c| CompressionInfo::decode(c, version, data_length))
            .await,
        checksums: reader.read(Component::Crc, ChunkCrcs::decode).await,
        filter: reader.read(Component::Filter, |c| Filter::decode(c, version)).await,
        summary: reader.read(Component::Summary, Summary::decode).await,
        digest: reader.read(Component::Digest, Digest::decode).await,
        listed: listed.clone(),
    };
    if let Some(toc) = toc {
        check_toc(&toc, &listed, report);
    }
    if let Some(info) = &files.compression {
        check_compression(info, report);
    }
    if let Some(crcs) = &files.checksums {
        check_crc(crcs, data_length, report);
    }
    Some(files)
}

async fn list(
    disk: &Disk,
    descriptor: &Descriptor,
    report: &mut VerifyReport,
) -> Option<ListedSSTable> {
    if let Err(what) = descriptor.version.readable() {
        report.problem(Component::Data, None, what);
        return None;
    }
    let entries = match disk.list(&descriptor.directory).await {
        Ok(entries) => entries,
        Err(error) => {
            report.unreadable(Component::Data, &error);
            return None;
        }
    };
    let names = entries.iter().filter(|entry| !entry.is_dir).map(|entry| &entry.name);
    let listing = listing::group(&descriptor.directory, names);
    let listed = listing.sstables.into_iter().find(|listed| listed.descriptor == *descriptor);
    if listed.is_none() {
        report.problem(Component::Data, None, "missing: no file of this SSTable is there");
    }
    listed
}

fn check_present(listed: &ListedSSTable, report: &mut VerifyReport) {
    let format = listed.descriptor.version.format;
    for component in Component::of_format(format) {
        if listed.has(*component) {
            continue;
        }
        match component {
            // CompressionInfo.db or CRC.db, depending on compression; a table may have no filter.
            Component::CompressionInfo | Component::Crc | Component::Filter => {}
            required if required.is_required(format) => {
                report.problem(*required, None, "missing: the SSTable cannot be opened without it");
            }
            other => report.remark(*other, None, "missing"),
        }
    }
    match (listed.has(Component::CompressionInfo), listed.has(Component::Crc)) {
        (true, true) => {
            let what = "there beside CompressionInfo.db, though compressed data has no use for it";
            report.remark(Component::Crc, None, what);
        }
        (false, false) => {
            let what = "missing, and so is CompressionInfo.db: nothing guards the data";
            report.remark(Component::Crc, None, what);
        }
        _ => {}
    }
}

fn check_toc(toc: &Toc, listed: &ListedSSTable, report: &mut VerifyReport) {
    for name in &toc.names {
        let component: Option<Component> = name.parse().ok();
        let there = match component {
            Some(component) => listed.has(component) || listed.extra.contains(name),
            None => listed.extra.contains(name),
        };
        // A secondary index writes no component for an SSTable without indexed values, and is rebuilt where one is missing.
        let of_index = name.starts_with("SAI") || name.starts_with("SI_");
        if there || of_index {
            continue;
        }
        let what = format!("lists {name}, which is not there");
        let format = listed.descriptor.version.format;
        match component {
            Some(Component::CompressionInfo) => report.problem(Component::Toc, None, what),
            Some(c) if c.is_required(format) => report.problem(Component::Toc, None, what),
            _ => report.remark(Component::Toc, None, what),
        }
    }
    let components = listed.components.iter().map(ToString::to_string);
    for name in components.chain(listed.extra.iter().cloned()) {
        if !toc.contains(&name) {
            report.remark(Component::Toc, None, format!("does not list {name}, which is there"));
        }
    }
}

fn check_compression(info: &CompressionInfo, report: &mut VerifyReport) {
    let component = Component::CompressionInfo;
    let dictionary = info.dictionary.as_ref().map(|dictionary| dictionary.bytes.as_slice());
    if let Err(what) = Decompressor::new(&info.compressor, dictionary) {
        // Its name is the first field.
        report.problem(component, 0, what);
    }
    match info.offsets.get(0) {
        Some(0) => {}
        other => report.problem(component, None, format!("the first chunk is at {other:?}, not 0")),
    }
    // Cassandra's compactions may leave one chunk more, which holds nothing.
    let expected = info.data_length.div_ceil(u64::from(info.chunk_length));
    let found = info.chunk_count() as u64;
    if found > expected.saturating_add(1) {
        report.problem(component, None, format!("{found} chunks, {expected} are enough"));
    }
}

fn check_crc(crcs: &ChunkCrcs, data_length: u64, report: &mut VerifyReport) {
    if crcs.chunk_size != DEFAULT_CRC_CHUNK_SIZE {
        let what = format!("chunks of {} bytes; Cassandra's have 65536", crcs.chunk_size);
        report.remark(Component::Crc, 0, what);
    }
    let expected = data_length.div_ceil(u64::from(crcs.chunk_size.max(1)));
    let found = crcs.crcs.len() as u64;
    // Compactions write one more, of nothing, which is 0.
    let trailing = found == expected + 1 && crcs.crcs.last() == Some(&0);
    if found != expected && !trailing {
        let what = format!("{found} checksums for {expected} chunks of Data.db");
        report.problem(Component::Crc, None, what);
    }
}

impl Reader<'_> {
    /// Decodes a component that exists.
    async fn read<T>(
        &mut self,
        component: Component,
        decode: impl FnOnce(&mut Cursor<'_>) -> DecodeResult<T>,
    ) -> Option<T> {
        if !self.listed.has(component) {
            return None;
        }
        let path = self.listed.descriptor.component_path(component);
        let bytes = match self.disk.read(&path, MAX_COMPONENT).await {
            Ok(bytes) => bytes,
            Err(error) => {
                self.report.unreadable(component, &error);
                return None;
            }
        };
        let mut cursor = Cursor::new(&bytes);
        let decoded = decode(&mut cursor);
        for remark in cursor.remarks() {
            match remark.is_damage {
                true => self.report.problem(component, remark.offset, remark.what.clone()),
                false => self.report.remark(component, remark.offset, remark.what.clone()),
            }
        }
        match decoded {
            Ok(decoded) => {
                if cursor.remaining() > 0 {
                    let what = format!("{} bytes follow the end", cursor.remaining());
                    self.report.remark(component, cursor.offset(), what);
                }
                Some(decoded)
            }
            Err(error) => {
                self.report.problem(component, error.offset, error.what);
                None
            }
        }
    }
}
