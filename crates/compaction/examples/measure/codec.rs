//! The codec's bound: every chunk checked and decompressed, and its data compressed and summed again, from memory to memory
//! on one core, by the libraries that the SSTable reader and writer use.

use std::time::Duration;

use halcyon_codec::{Compressor, Decompressor, Method, ZstdLevel, crc32};
use halcyon_io::{Disk, clock};
use halcyon_sstable::Component;
use halcyon_sstable::format::compression_info::CompressionInfo;

use crate::{Result, Words, open_all};

const MAX_DATA: u64 = 8 << 30;

struct Codec {
    compressor: Compressor,
    decompressor: Decompressor,
    /// Bytes in front of a chunk's block.
    prefix: usize,
}

impl Codec {
    fn of(info: &CompressionInfo) -> Result<Codec> {
        let (method, prefix) = match info.compressor.as_str() {
            "LZ4Compressor" => (Method::Lz4, 4),
            "ZstdCompressor" => (Method::Zstd { level: ZstdLevel::DEFAULT, checksum: true }, 0),
            other => return Err(format!("{other} is not measured").into()),
        };
        let compressor = Compressor::new(method)?;
        Ok(Codec { compressor, decompressor: Decompressor::new(method.algorithm())?, prefix })
    }

    fn decompress(&mut self, payload: &[u8], to: &mut [u8]) -> Result<()> {
        let block = payload.get(self.prefix..).ok_or("short chunk")?;
        Ok(self.decompressor.decompress(block, to)?)
    }
}

/// Time by step.
#[derive(Default)]
struct Spent {
    data: u64,
    checking: Duration,
    decompressing: Duration,
    compressing: Duration,
    summing: Duration,
}

pub(crate) async fn run(disk: &Disk, words: &Words) -> Result<String> {
    let enough = words.number("bytes", u64::MAX)?;
    let mut spent = Spent::default();
    for sstable in open_all(disk, &words.directory).await? {
        if spent.data >= enough {
            break;
        }
        let info = sstable.compression().ok_or("an uncompressed SSTable has no codec")?;
        let path = sstable.descriptor().component_path(Component::Data);
        let stored = disk.read(&path, MAX_DATA).await?;
        spent.file(info, &stored)?;
    }
    let rate = |time: Duration| spent.data as f64 / time.as_secs_f64().max(1e-9) / 1_048_576.0;
    Ok(format!(
        r#"{{"data_bytes":{},"check":{:.1},"decompress":{:.1},"compress":{:.1},"sum":{:.1},"read_side":{:.1},"write_side":{:.1}}}"#,
        spent.data,
        rate(spent.checking),
        rate(spent.decompressing),
        rate(spent.compressing),
        rate(spent.summing),
        rate(spent.checking + spent.decompressing),
        rate(spent.compressing + spent.summing),
    ))
}

impl Spent {
    /// In groups of chunks that stay in a core's cache, so that looking at the clock costs nothing and no step
    /// pays for memory that in a compaction it would not.
    fn file(&mut self, info: &CompressionInfo, stored: &[u8]) -> Result<()> {
        const GROUP_BYTES: usize = 128 << 10;
        let chunk_length = info.chunk_length as usize;
        let group = (GROUP_BYTES / chunk_length).max(1);
        let mut codec = Codec::of(info)?;
        let mut data = vec![0; group * chunk_length];
        let mut packed = vec![0; group * chunk_length * 2];
        let mut ends = Vec::with_capacity(group);
        for first in (0..info.chunk_count()).step_by(group) {
            let chunks = first..(first + group).min(info.chunk_count());
            let payloads: Vec<(&[u8], usize)> = chunks
                .clone()
                .map(|i| {
                    let chunk = info.chunk(i).ok_or("no such chunk")?;
                    let at = chunk.offset as usize;
                    let payload = stored.get(at..at + chunk.payload_length as usize);
                    Ok((payload.ok_or("a short file")?, chunk.data_length as usize))
                })
                .collect::<std::result::Result<_, &str>>()?;
            let began = clock::now();
            for (payload, _) in &payloads {
                std::hint::black_box(crc32(payload));
            }
            let checked = clock::now();
            let mut lengths = 0;
            for ((payload, length), to) in payloads.iter().zip(data.chunks_mut(chunk_length)) {
                codec.decompress(payload, to.get_mut(..*length).ok_or("a long chunk")?)?;
                lengths += length;
            }
            let decompressed = clock::now();
            ends.clear();
            let packed_chunks = packed.chunks_mut(chunk_length * 2);
            let valid = data.get(..lengths).unwrap_or_default();
            for (chunk, to) in valid.chunks(chunk_length).zip(packed_chunks) {
                ends.push(codec.compressor.compress(chunk, to)?);
            }
            let compressed = clock::now();
            for (length, chunk) in ends.iter().zip(packed.chunks(chunk_length * 2)) {
                std::hint::black_box(crc32(chunk.get(..*length).unwrap_or_default()));
            }
            let summed = clock::now();
            self.data += lengths as u64;
            self.checking += checked - began;
            self.decompressing += decompressed - checked;
            self.compressing += compressed - decompressed;
            self.summing += summed - compressed;
        }
        Ok(())
    }
}
