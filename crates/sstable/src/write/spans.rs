//! Chunks of a file that is being written, of the spans that a caller wants to keep.

use std::collections::VecDeque;

/// Bytes that may be wanted later are held no further back than this.
const HELD_MAX: u64 = 128 << 10;

pub(crate) struct CarriedChunk {
    pub(crate) number: u64,
    /// Of a partition in it.
    pub(crate) token: i64,
    pub(crate) bytes: Box<[u8]>,
}

struct Span {
    from: u64,
    until: u64,
    token: i64,
}

pub(super) struct Spans {
    chunk_length: u64,
    /// Wanted, in the order of their ends, and not complete yet.
    wanted: VecDeque<Span>,
    /// The last bytes that were seen, from the start of a chunk on: of an incomplete chunk, or of what may be wanted later.
    held: Vec<u8>,
    held_from: u64,
    kept: Vec<CarriedChunk>,
    is_full: bool,
}

impl Spans {
    pub(super) fn new(chunk_length: u64) -> Spans {
        let (wanted, held, kept) = Default::default();
        Spans { chunk_length, wanted, held, held_from: 0, kept, is_full: false }
    }

    pub(super) fn chunk_length(&self) -> u64 {
        self.chunk_length
    }

    /// Nothing more is kept.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// To be kept, whether seen already or not. No span ends before the one that was wanted last.
    pub(super) fn want(&mut self, from: u64, until: u64, token: i64) {
        if self.is_full || from >= until {
            return;
        }
        match self.wanted.back_mut().filter(|last| last.token == token && from <= last.until) {
            Some(last) => last.until = last.until.max(until),
            None => self.wanted.push_back(Span { from, until, token }),
        }
    }

    /// The next bytes of the file. What is behind `later` may be wanted when they have been seen.
    pub(super) fn see(&mut self, bytes: &[u8], later: Option<u64>, room: impl Fn(usize) -> bool) {
        let begin = self.held_from + self.held.len() as u64;
        let seen = begin + bytes.len() as u64;
        let later = later.filter(|later| seen.saturating_sub(*later) <= HELD_MAX);
        let hold = self.align(later.unwrap_or(seen).min(seen)).max(self.held_from);
        if self.wanted.is_empty() && hold >= begin {
            self.held.clear();
            self.held.extend_from_slice(bytes.get((hold - begin) as usize..).unwrap_or_default());
        } else {
            self.held.extend_from_slice(bytes);
            self.keep(seen / self.chunk_length, room);
            self.held.drain(..(hold - self.held_from) as usize);
        }
        self.held_from = hold;
    }

    /// The last chunk may be shorter than the others.
    pub(super) fn finish(mut self, room: impl Fn(usize) -> bool) -> Vec<CarriedChunk> {
        let end = self.held_from + self.held.len() as u64;
        self.keep(end.div_ceil(self.chunk_length), room);
        self.kept
    }

    fn align(&self, position: u64) -> u64 {
        position - position % self.chunk_length
    }

    /// Keeps what is wanted of the chunks below `past`.
    fn keep(&mut self, past: u64, room: impl Fn(usize) -> bool) {
        let length = self.chunk_length;
        while let Some(Span { from, until, token }) = self.wanted.front_mut() {
            let next = self.kept.last().map_or(0, |last| last.number + 1);
            let first = ((*from).max(self.held_from) / length).max(next);
            for number in first..until.div_ceil(length).min(past) {
                let begin = (number * length - self.held_from) as usize;
                let rest = self.held.get(begin..).unwrap_or_default();
                let bytes = rest.get(..length as usize).unwrap_or(rest);
                if bytes.is_empty() || !room(bytes.len()) {
                    self.is_full = true;
                    self.wanted.clear();
                    return;
                }
                self.kept.push(CarriedChunk { number, token: *token, bytes: bytes.into() });
            }
            if *until > past * length {
                return;
            }
            self.wanted.pop_front();
        }
    }
}
