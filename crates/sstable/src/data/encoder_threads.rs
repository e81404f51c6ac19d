//! The threads that encode and write a Data.db while rows are merged.
//!
//! ```text
//!   merge thread                              writer thread
//!   rows → batch ──(bounded channel)──▶  encode what is raw → digest → SequentialWriter
//!        │ ◀──(empty batches come back)──          ▲ in order
//!        └── where it is behind ──▶ helpers: encode ┘
//! ```
//! 1. The writer thread alone keeps up with the merge where compression is cheap, or no other core is idle.
//! 2. Where batches wait for it, each goes to a helper that has nothing to do, which is started when it is first wanted. So a strong
//!    compressor (zstd) takes the idle cores: helpers run at the priority of the merge.
//! 3. What is on its way is bounded: [`IN_FLIGHT`] batches, however many threads encode them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use futures_channel::mpsc::{Receiver, Sender, channel};
use futures_channel::oneshot;
use futures_util::{FutureExt, SinkExt, StreamExt};
use halcyon_codec::Effort;
use halcyon_io::{Runtime, Thread, panic_point, thread_priority};
use halcyon_model::options::Compression;

use super::chunk_encode::{ChunkEncoder, Encoded};
use super::chunk_write::{ChunkWriter, DataSummary, DataTarget};
use crate::{Error, Result};

/// Batches between the threads: enough to bridge a slow write on one side, a slow read on the other.
const IN_FLIGHT: usize = 16;
/// The writer thread is behind when this many wait.
const BEHIND: usize = 4;
/// More would wait for the merge.
const HELPERS_MAX: usize = 4;

pub(super) struct EncoderThreads {
    pieces: Sender<Piece>,
    empties: Receiver<Spent>,
    writer: Thread<Result<DataSummary>>,
    progress: Arc<Progress>,
    runtime: Runtime,
    compression: Option<Compression>,
    effort: Effort,
    helpers: Vec<Helper>,
    helpers_max: usize,
    spent: Vec<Encoded>,
}

/// A batch, in the order of the file.
enum Piece {
    Raw(Vec<u8>),
    Encoded(oneshot::Receiver<Result<Spent>>),
}

/// A batch, and what a helper has made of it. Both are used again.
struct Spent {
    batch: Vec<u8>,
    encoded: Option<Encoded>,
}

#[derive(Default)]
struct Progress {
    /// Bytes of Data.db.
    written: AtomicU64,
    /// Batches that are not.
    waiting: AtomicUsize,
}

struct Helper {
    jobs: Sender<Job>,
    is_busy: Arc<AtomicBool>,
}

struct Job {
    batch: Vec<u8>,
    into: Encoded,
    done: oneshot::Sender<Result<Spent>>,
}

impl EncoderThreads {
    /// With a helper for each core that is left beside the merge and the writer.
    pub(super) fn start(target: DataTarget) -> EncoderThreads {
        let cores = target.disk.runtime().core_count();
        EncoderThreads::with_helpers(target, cores.saturating_sub(2).min(HELPERS_MAX))
    }

    pub(super) fn with_helpers(target: DataTarget, helpers_max: usize) -> EncoderThreads {
        let (pieces, work) = channel(IN_FLIGHT);
        let (give_back, empties) = channel(IN_FLIGHT + 2);
        let progress = Arc::<Progress>::default();
        let (runtime, compression) = (target.disk.runtime().clone(), target.compression.clone());
        let effort = target.effort;
        let reported = progress.clone();
        let write = move || write_all(target, work, give_back, reported);
        let writer = runtime.spawn_thread("sstable-encoder", thread_priority(), write);
        let (helpers, spent) = (Vec::new(), Vec::new());
        EncoderThreads {
            pieces,
            empties,
            writer,
            progress,
            runtime,
            compression,
            effort,
            helpers,
            helpers_max,
            spent,
        }
    }

    /// One that has been used before, if there is one.
    pub(super) fn empty_batch(&mut self) -> Option<Vec<u8>> {
        let Spent { batch, encoded } = self.empties.next().now_or_never().flatten()?;
        self.spent.extend(encoded);
        Some(batch)
    }

    /// False if the writer thread has ended early.
    pub(super) async fn hand_on(&mut self, batch: Vec<u8>) -> bool {
        let is_behind = self.progress.waiting.fetch_add(1, Relaxed) >= BEHIND;
        let piece = if is_behind { self.help(batch) } else { Piece::Raw(batch) };
        self.pieces.send(piece).await.is_ok()
    }

    /// Gives a batch to a helper, if one has nothing to do.
    fn help(&mut self, batch: Vec<u8>) -> Piece {
        let Some(compression) = &self.compression else { return Piece::Raw(batch) };
        let idle = self.helpers.iter().position(|helper| !helper.is_busy.load(Relaxed));
        let idle = match idle {
            None if self.helpers.len() < self.helpers_max => {
                self.helpers.push(Helper::start(&self.runtime, compression.clone(), self.effort));
                self.helpers.last_mut()
            }
            None => None,
            Some(at) => self.helpers.get_mut(at),
        };
        let Some(helper) = idle else { return Piece::Raw(batch) };
        let (done, encoded) = oneshot::channel();
        let job = Job { batch, into: self.spent.pop().unwrap_or_default(), done };
        helper.is_busy.store(true, Relaxed);
        match helper.jobs.try_send(job) {
            Ok(()) => Piece::Encoded(encoded),
            Err(e) => Piece::Raw(e.into_inner().batch),
        }
    }

    /// Bytes of Data.db on their way to the disk so far.
    pub(super) fn file_position(&self) -> u64 {
        self.progress.written.load(Relaxed)
    }

    pub(super) async fn finish(self) -> Result<DataSummary> {
        drop((self.pieces, self.helpers));
        let outcome = self.writer.join().await;
        outcome.unwrap_or_else(|| Err(Error::Invalid("the encoder thread panicked".into())))
    }

    /// Does not return before the writer has let go of the file.
    pub(super) fn end(self) {
        drop((self.pieces, self.helpers));
        self.writer.end();
    }
}

async fn write_all(
    target: DataTarget,
    mut work: Receiver<Piece>,
    mut give_back: Sender<Spent>,
    progress: Arc<Progress>,
) -> Result<DataSummary> {
    let mut writer = ChunkWriter::create(target).await?;
    while let Some(piece) = work.next().await {
        panic_point("the thread that writes an SSTable");
        let mut spent = match piece {
            Piece::Raw(batch) => {
                writer.encode(&batch).await?;
                Spent { batch, encoded: None }
            }
            Piece::Encoded(encoded) => {
                let spent = encoded.await.unwrap_or_else(|_| Err(helper_panicked()))?;
                if let Some(encoded) = &spent.encoded {
                    writer.write_encoded(encoded).await?;
                }
                spent
            }
        };
        progress.written.store(writer.position(), Relaxed);
        progress.waiting.fetch_sub(1, Relaxed);
        spent.batch.clear();
        // A full channel only means that the batch is not needed again.
        let _ = give_back.try_send(spent);
    }
    writer.finish().await
}

fn helper_panicked() -> Error {
    Error::Invalid("a thread that compresses panicked".into())
}

impl Helper {
    fn start(runtime: &Runtime, compression: Compression, effort: Effort) -> Helper {
        let (jobs, work) = channel(1);
        let is_busy = Arc::<AtomicBool>::default();
        let seen = is_busy.clone();
        let encoder = move || ChunkEncoder::new(&compression, effort);
        let help = move || encode_all(encoder(), work, seen);
        // It ends with its channel, and has no file.
        runtime.spawn_thread("sstable-compressor", thread_priority(), help).detach();
        Helper { jobs, is_busy }
    }
}

async fn encode_all(
    mut encoder: Result<ChunkEncoder>,
    mut work: Receiver<Job>,
    is_busy: Arc<AtomicBool>,
) {
    while let Some(Job { batch, mut into, done }) = work.next().await {
        panic_point("a thread that compresses");
        let encoded = match &mut encoder {
            Ok(encoder) => encoder.encode_batch(&batch, &mut into),
            // The writer thread has the same error.
            Err(e) => Err(Error::Invalid(e.to_string())),
        };
        is_busy.store(false, Relaxed);
        // No receiver waits for it when the file is given up.
        let _ = done.send(encoded.map(|()| Spent { batch, encoded: Some(into) }));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use halcyon_io::{AccessMode, Disk, Fault, FaultRule, Operation, Purpose, WriteOptions};
    use halcyon_model::options::CompressorKind;

    use super::*;

    const BATCHES: usize = 40;
    const CHUNK: usize = 4096;

    fn target(disk: &Disk, kind: CompressorKind) -> DataTarget {
        let (chunk_length, max_compressed_length) = (CHUNK as u32, CHUNK as u32);
        let parameters = Vec::new();
        DataTarget {
            disk: disk.clone(),
            path: "/data".into(),
            mode: AccessMode::Auto,
            purpose: Purpose::CompactionWrite,
            options: WriteOptions::default(),
            compression: Some(Compression {
                kind,
                chunk_length,
                max_compressed_length,
                parameters,
            }),
            effort: Effort::Default,
        }
    }

    /// Batches of chunks, some of which compression does not make smaller; the last chunk of the last one is short.
    fn batches(disk: &Disk) -> Vec<Vec<u8>> {
        let mut random = disk.runtime().random();
        let batch = |number: usize| {
            let length = if number == BATCHES - 1 { 3 * CHUNK + 17 } else { 8 * CHUNK };
            let noise = 1 + number as u64 % 5 * 60;
            (0..length).map(|_| (random.next_u64() % noise) as u8).collect()
        };
        (0..BATCHES).map(batch).collect()
    }

    /// Proves that helpers do not change the file, and that they are wanted only where the writer is behind.
    #[test]
    fn helpers_change_nothing() {
        for kind in [CompressorKind::Lz4, CompressorKind::Zstd { level: 3 }] {
            let written = [0, 1, 3].map(|helpers| {
                let (disk, simulated) = Disk::simulated(7);
                disk.runtime().block_on(async {
                    let mut threads = EncoderThreads::with_helpers(target(&disk, kind), helpers);
                    for batch in batches(&disk) {
                        assert!(threads.hand_on(batch).await);
                        threads.empty_batch();
                    }
                    assert_eq!(threads.helpers.len(), helpers);
                    let summary = threads.finish().await.expect("written");
                    let offsets = summary.compression.expect("compressed").offsets;
                    let offsets: Vec<u64> = offsets.iter().collect();
                    let lengths =
                        [summary.file_length, summary.data_length, summary.payload_length];
                    let bytes = simulated.contents(Path::new("/data")).expect("there");
                    assert_eq!(halcyon_codec::crc32(&bytes), summary.digest);
                    (bytes, offsets, lengths)
                })
            });
            assert!(written[0] == written[1] && written[0] == written[2], "{kind:?}");
        }
    }

    /// Proves that an error of the disk is reported, and that nothing is left behind that waits.
    #[test]
    fn an_error_ends_all() {
        let (disk, simulated) = Disk::simulated(7);
        disk.runtime().block_on(async {
            let target = target(&disk, CompressorKind::Lz4);
            let operation = Some(Operation::Write);
            simulated.fail_on(FaultRule { operation, skip: 3, ..FaultRule::any(Fault::NoSpace) });
            let mut threads = EncoderThreads::with_helpers(target, 2);
            for batch in batches(&disk) {
                if !threads.hand_on(batch).await {
                    break;
                }
            }
            let failed = threads.finish().await.err().expect("it cannot be written");
            assert!(failed.to_string().contains("/data"), "{failed}");
        });
    }
}
