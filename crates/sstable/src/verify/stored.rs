//! Data.db as it is stored, read once from front to back: its digest and the checksum of every chunk.

use halcyon_io::{AccessMode, Disk, Purpose, SequentialReader, StreamOptions};

use super::files::Files;
use super::progress::{Progress, Step};
use super::report::VerifyReport;
use crate::format::compression_info::CHUNK_CRC_LENGTH;
use crate::{Component, Error, Result};

/// Between two reports of progress.
const REPORT_EVERY: u64 = 4 << 20;

pub(super) struct StoredData<'a> {
    reader: SequentialReader,
    digest: halcyon_codec::Crc32,
    report: &'a mut VerifyReport,
    progress: &'a mut dyn FnMut(Progress),
    reported: u64,
}

pub(super) async fn check(
    disk: &Disk,
    files: &Files,
    (mode, every_chunk): (AccessMode, bool),
    report: &mut VerifyReport,
    progress: &mut dyn FnMut(Progress),
) {
    let path = files.listed.descriptor.component_path(Component::Data);
    let opened = disk.open_sequential(&path, mode, Purpose::Scan, StreamOptions::default()).await;
    let reader = match opened {
        Ok(reader) => reader,
        Err(error) => return report.problem(Component::Data, None, error.to_string()),
    };
    let digest = halcyon_codec::Crc32::new();
    let mut data = StoredData { reader, digest, report, progress, reported: 0 };
    let checked = data.chunks(files, every_chunk).await;
    let StoredData { reader, digest, report, .. } = data;
    report.checked.bytes = reader.position();
    if let Err(error) = checked {
        return report.failed(Component::Data, &error);
    }
    let computed = digest.finalize();
    if let Some(stored) = files.digest
        && stored.0 != computed
    {
        let what = format!("says {}, Data.db has {computed}: one of them has changed", stored.0);
        report.problem(Component::Digest, 0, what);
    }
}

impl StoredData<'_> {
    async fn chunks(&mut self, files: &Files, every_chunk: bool) -> Result<()> {
        if let Some(info) = files.compression.as_ref().filter(|_| every_chunk) {
            self.skip_to(info.offsets.get(0).unwrap_or(0)).await?;
            for i in 0..info.chunk_count() {
                let Some(range) = info.chunk_range(i) else { break };
                let payload = range.end.saturating_sub(range.start + CHUNK_CRC_LENGTH);
                let computed = self.run(payload).await?;
                let stored = self.stored_crc().await?;
                self.compare(i, range.start, stored, computed);
            }
        } else if let Some(crcs) = files.checksums.as_ref().filter(|_| every_chunk) {
            for (i, stored) in crcs.crcs.iter().enumerate() {
                let at = self.reader.position();
                let left = self.reader.len() - at;
                if left == 0 {
                    break;
                }
                let computed = self.run(left.min(u64::from(crcs.chunk_size))).await?;
                self.compare(i, at, *stored, computed);
            }
        }
        self.skip_to(self.reader.len()).await
    }

    fn compare(&mut self, chunk: usize, at: u64, stored: u32, computed: u32) {
        self.report.checked.chunks += 1;
        if stored != computed {
            let what = format!("chunk {chunk}: checksum is {computed:08x}, stored is {stored:08x}");
            self.report.problem(Component::Data, at, what);
        }
    }

    async fn skip_to(&mut self, offset: u64) -> Result<()> {
        let left = offset.min(self.reader.len()).saturating_sub(self.reader.position());
        self.run(left).await.map(|_| ())
    }

    async fn stored_crc(&mut self) -> Result<u32> {
        let stored = self.reader.fill(CHUNK_CRC_LENGTH as usize).await?.first_chunk().copied();
        self.run(CHUNK_CRC_LENGTH).await?;
        Ok(u32::from_be_bytes(stored.unwrap_or_default()))
    }

    /// Reads the next `length` bytes, in pieces; returns their CRC32.
    async fn run(&mut self, length: u64) -> Result<u32> {
        let mut crc = halcyon_codec::Crc32::new();
        let mut left = length;
        while left > 0 {
            let bytes = self.reader.fill(1).await?;
            let piece = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            let bytes = bytes.get(..piece).unwrap_or_default();
            if bytes.is_empty() {
                return Err(Error::Corrupt {
                    path: self.reader.path().to_path_buf(),
                    component: Component::Data,
                    offset: self.reader.position(),
                    what: format!("the file ends, {left} bytes are missing"),
                });
            }
            crc.update(bytes);
            self.digest.update(bytes);
            self.reader.consume(piece);
            left -= piece as u64;
            self.tell();
        }
        Ok(crc.finalize())
    }

    fn tell(&mut self) {
        let done = self.reader.position();
        if done - self.reported >= REPORT_EVERY || done == self.reader.len() {
            self.reported = done;
            (self.progress)(Progress { step: Step::Checksums, done, total: self.reader.len() });
        }
    }
}
