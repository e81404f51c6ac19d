//! The thread that reads, checks and decompresses what a merge reads next.
//!
//! ```text
//!   reader thread                                            merge thread
//!   input 1: ChunkSource ──(blocks of whole chunks)──▶ ReadAhead ─▶ scanner ─┐
//!   input 2: ChunkSource ──(blocks of whole chunks)──▶ ReadAhead ─▶ scanner ─┼─▶ merge
//!        ▲──────────(empty blocks come back, many at a time)──────┘
//! ```
//! 1. [`AHEAD`] blocks of each input are full, or being filled. So what is in memory is bounded, and a merge that is paced paces the
//!    reader.
//! 2. Empty blocks come back when those of half of the inputs are together, or before the merge waits: a message for each block would
//!    wake the reader thousands of times a second.
//! 3. A row that a block cuts is continued in the next one: its beginning is copied into the room in front of that.
//! 4. An error comes with the block that it is in place of. The thread ends with its last `ReadAhead`.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_util::future::{join, join_all};
use futures_util::{FutureExt, StreamExt};
use halcyon_io::{Disk, Thread, panic_point, thread_priority};
use halcyon_model::DecodeError;

use super::scanner::SSTableScanner;
use super::window::DataWindow;
use crate::{CHECKS, Component, Error, Result, SSTable, ScanOptions};

/// Full blocks of an input, beside the one that the merge reads: one is read while the other is filled.
const AHEAD: usize = 2;
/// Bytes of all blocks of a merge, as far as the smallest blocks allow it.
const BUDGET: usize = 8 << 20;
/// Below, the threads do little but wake each other; above, blocks leave the caches before the merge has read them.
const BLOCK_MIN: usize = 16 << 10;
const BLOCK_MAX: usize = 256 << 10;
/// Room for the part of a row in front of a block.
const HEADROOM: usize = 4 << 10;

/// Data behind [`HEADROOM`] bytes. Kept at its length when it is used again.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    end: usize,
}

type Full = Result<Block>;
/// Empty blocks, with the numbers of their inputs.
type Empties = Vec<(usize, Block)>;

/// The scanners of a merge's inputs, all of whose data one thread reads ahead.
pub fn scan_ahead<'a>(
    disk: &Disk,
    inputs: impl IntoIterator<Item = &'a Arc<SSTable>>,
    options: &ScanOptions,
) -> Result<Vec<SSTableScanner<ReadAhead>>> {
    let inputs: Vec<Arc<SSTable>> = inputs.into_iter().cloned().collect();
    let (senders, lanes): (Vec<_>, Vec<_>) = inputs.iter().map(|_| unbounded()).unzip();
    let (give_back, empties) = unbounded();
    let read = {
        let (disk, inputs, options) = (disk.clone(), inputs.clone(), options.clone());
        move || read_all(disk, inputs, options, senders, empties)
    };
    let thread = disk.runtime().spawn_thread("sstable-reader", thread_priority(), read);
    let returns = Rc::new(Returns {
        together: inputs.len() / 2,
        blocks: RefCell::default(),
        reader: Some((give_back, thread)),
    });
    let scanner = |(number, (input, lane)): (usize, (&Arc<SSTable>, _))| {
        let layout = options.layout.clone().unwrap_or_else(|| input.layout().clone());
        let data = ReadAhead {
            path: input.descriptor().component_path(Component::Data),
            number,
            lane,
            block: Block::default(),
            start: 0,
            position: 0,
            data_length: input.data_length(),
            returns: returns.clone(),
        };
        Ok(input.scanner_of(data, Arc::new(input.decoder(&layout)?), layout, u64::MAX))
    };
    inputs.iter().zip(lanes).enumerate().map(scanner).collect()
}

/// The data of one input, as a merge reads it.
pub struct ReadAhead {
    path: PathBuf,
    number: usize,
    /// Dropped before `returns`, which waits for the thread.
    lane: UnboundedReceiver<Full>,
    block: Block,
    start: usize,
    /// Position in the data of the block's byte at `start`.
    position: u64,
    data_length: u64,
    returns: Rc<Returns>,
}

/// Blocks on their way back, and the thread that fills them.
struct Returns {
    together: usize,
    blocks: RefCell<Empties>,
    /// `None` while it is dropped.
    reader: Option<(UnboundedSender<Empties>, Thread<()>)>,
}

impl Returns {
    fn give_back(&self, number: usize, block: Block) {
        let mut blocks = self.blocks.borrow_mut();
        blocks.push((number, block));
        if blocks.len() > self.together {
            self.send(&mut blocks);
        }
    }

    fn send(&self, blocks: &mut Empties) {
        if let Some((sender, _)) = &self.reader
            && !blocks.is_empty()
        {
            // A thread that has ended wants none.
            let _ = sender.unbounded_send(std::mem::take(blocks));
        }
    }
}

impl Drop for Returns {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.reader.take() {
            drop(sender);
            thread.end();
        }
    }
}

impl ReadAhead {
    async fn next_block(&mut self) -> Result<Block> {
        let ready = self.lane.next().now_or_never();
        let next = match ready {
            Some(next) => next,
            None => {
                self.returns.send(&mut self.returns.blocks.borrow_mut());
                self.lane.next().await
            }
        };
        next.unwrap_or_else(|| Err(Error::Invalid("the thread that reads ahead panicked".into())))
    }

    /// Puts the unread bytes in front of a block.
    fn join(&mut self, mut next: Block) {
        let left = self.block.end - self.start;
        let rest = self.block.bytes.get(self.start..self.block.end).unwrap_or_default();
        if left <= HEADROOM
            && let Some(room) = next.bytes.get_mut(HEADROOM - left..HEADROOM)
        {
            room.copy_from_slice(rest);
            std::mem::swap(&mut self.block, &mut next);
            self.start = HEADROOM - left;
        } else {
            // A row that is larger than a block grows in the block that it began in.
            self.block.bytes.truncate(self.block.end);
            self.block.bytes.drain(..self.start);
            let more = next.bytes.get(HEADROOM..next.end).unwrap_or_default();
            self.block.bytes.extend_from_slice(more);
            (self.start, self.block.end) = (0, self.block.bytes.len());
        }
        self.returns.give_back(self.number, next);
    }
}

impl DataWindow for ReadAhead {
    fn data_length(&self) -> u64 {
        self.data_length
    }

    #[inline]
    fn position(&self) -> u64 {
        self.position
    }

    #[inline]
    fn available(&self) -> &[u8] {
        self.block.bytes.get(self.start..self.block.end).unwrap_or_default()
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        if CHECKS {
            assert!(n <= self.block.end - self.start, "{n} bytes consumed, fewer available");
        }
        self.start += n;
        self.position += n as u64;
    }

    async fn fill(&mut self, at_least: usize) -> Result<()> {
        let wanted = (at_least as u64).min(self.remaining()) as usize;
        while self.block.end - self.start < wanted {
            let next = self.next_block().await?;
            self.join(next);
        }
        Ok(())
    }

    fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        let error = DecodeError { offset, what: what.into() };
        Error::corrupt(&self.path, Component::Data, error)
    }
}

/// Reads all inputs, each as soon as it has an empty block.
async fn read_all(
    disk: Disk,
    inputs: Vec<Arc<SSTable>>,
    options: ScanOptions,
    lanes: Vec<UnboundedSender<Full>>,
    mut empties: UnboundedReceiver<Empties>,
) {
    panic_point("the thread that reads ahead");
    let block_length = BUDGET / inputs.len().max(1) / (AHEAD + 1);
    let block_length = block_length.clamp(BLOCK_MIN, BLOCK_MAX);
    let (mut idle, mut reads) = (Vec::new(), Vec::new());
    for (input, lane) in inputs.into_iter().zip(lanes) {
        let (sender, blocks) = unbounded();
        for _ in 0..AHEAD {
            let _ = sender.unbounded_send(Block::default());
        }
        idle.push(sender);
        let (disk, options) = (&disk, &options);
        reads.push(async move {
            if let Err(e) = read(disk, input, options, block_length, (blocks, &lane)).await {
                let _ = lane.unbounded_send(Err(e));
            }
        });
    }
    let distribute = async move {
        while let Some(blocks) = empties.next().await {
            for (number, block) in blocks {
                if let Some(idle) = idle.get(number) {
                    // An input that is read to its end needs none.
                    let _ = idle.unbounded_send(block);
                }
            }
        }
    };
    join(distribute, join_all(reads)).await;
}

/// Fills blocks with the data of an input, up to its end.
async fn read(
    disk: &Disk,
    input: Arc<SSTable>,
    options: &ScanOptions,
    block_length: usize,
    (mut empties, lane): (UnboundedReceiver<Block>, &UnboundedSender<Full>),
) -> Result<()> {
    let mut source = input.chunk_source(disk, options).await?;
    let capacity = HEADROOM + block_length.max(source.chunk_length());
    while !source.is_at_end()
        && let Some(mut block) = empties.next().await
    {
        if block.bytes.capacity() > 2 * capacity {
            // It has held a row that was larger.
            block = Block::default();
        }
        block.bytes.resize(capacity, 0);
        block.end = HEADROOM;
        while !source.is_at_end() && block.end + source.chunk_length() <= capacity {
            block.end = source.read_chunk(&mut block.bytes, block.end).await?;
        }
        if lane.unbounded_send(Ok(block)).is_err() {
            break;
        }
    }
    Ok(())
}
