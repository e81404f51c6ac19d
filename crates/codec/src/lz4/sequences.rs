//! Writes sequences: literals and a match each.

/// Where the two lengths of a token end and more bytes follow.
const IN_TOKEN: usize = 15;
pub(super) const MIN_MATCH: usize = 4;
/// Bytes of most sequences, and of what is written past their end: token, 16 literals, offset, one more byte, room.
const ROOM: usize = 32;
/// Literals that are copied at once, whatever their number.
const AT_ONCE: usize = 16;

/// A block on its way.
pub(super) struct Sequences<'a> {
    pub(super) input: &'a [u8],
    output: &'a mut [u8],
    /// Bytes of the block; more than `output` has if it was too small.
    len: usize,
    /// Of the input: where literals begin that are not written yet.
    pub(super) from: usize,
}

impl<'a> Sequences<'a> {
    pub(super) fn new(input: &'a [u8], output: &'a mut [u8]) -> Sequences<'a> {
        Sequences { input, output, len: 0, from: 0 }
    }

    /// A match from `at` to `end` without literals in front.
    #[inline(always)]
    pub(super) fn repeat(&mut self, at: usize, end: usize, offset: usize) {
        let long = end.wrapping_sub(at + MIN_MATCH);
        self.from = end;
        let room = self.output.get_mut(self.len..self.len + 8);
        let room = room.and_then(|room| room.first_chunk_mut::<8>());
        if let Some(room) = room
            && long < IN_TOKEN + 255
        {
            let more = (long.wrapping_sub(IN_TOKEN) as u8 as u64) << 24;
            *room = (long.min(IN_TOKEN) as u64 | (offset as u64) << 8 | more).to_le_bytes();
            self.len += 3 + usize::from(long >= IN_TOKEN);
        } else {
            self.any(at..at, long, offset);
        }
    }

    /// All literals up to `at`, and a match from there to `end`.
    #[inline(always)]
    pub(super) fn push(&mut self, at: usize, end: usize, offset: usize) {
        let from = std::mem::replace(&mut self.from, end);
        let (literals, long) = (at.wrapping_sub(from), end.wrapping_sub(at + MIN_MATCH));
        let room = self.output.get_mut(self.len..self.len + ROOM);
        let room = room.and_then(|room| room.first_chunk_mut::<ROOM>());
        let copied = self.input.get(from..from + AT_ONCE);
        let copied = copied.and_then(|copied| copied.first_chunk::<AT_ONCE>());
        if literals < IN_TOKEN
            && long < IN_TOKEN + 255
            && let (Some(room), Some(copied)) = (room, copied)
        {
            let [token, rest @ ..] = room;
            *token = (literals << 4) as u8 | long.min(IN_TOKEN) as u8;
            rest.first_chunk_mut().into_iter().for_each(|to| *to = *copied);
            let more = (long.wrapping_sub(IN_TOKEN) as u8 as u32) << 16;
            let behind = rest.get_mut(literals..literals + 4);
            behind
                .into_iter()
                .for_each(|to| to.copy_from_slice(&(offset as u32 | more).to_le_bytes()));
            self.len += 3 + literals + usize::from(long >= IN_TOKEN);
        } else {
            self.any(from..at, long, offset);
        }
    }

    /// A sequence of any lengths.
    #[inline(never)]
    fn any(&mut self, literals: std::ops::Range<usize>, long: usize, offset: usize) {
        self.literals(literals, long.min(IN_TOKEN));
        self.put(&(offset as u16).to_le_bytes());
        if long >= IN_TOKEN {
            self.more(long - IN_TOKEN);
        }
    }

    fn literals(&mut self, range: std::ops::Range<usize>, matched: usize) {
        let literals = self.input.get(range).unwrap_or_default();
        self.put(&[(literals.len().min(IN_TOKEN) << 4) as u8 | matched as u8]);
        if literals.len() >= IN_TOKEN {
            self.more(literals.len() - IN_TOKEN);
        }
        self.put(literals);
    }

    /// What a length has beyond its part of the token.
    fn more(&mut self, len: usize) {
        for _ in 0..len / 255 {
            self.put(&[255]);
        }
        self.put(&[(len % 255) as u8]);
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(to) = self.output.get_mut(self.len..end) {
            to.copy_from_slice(bytes);
        }
        self.len = end;
    }

    /// Ends with the literals that are left. `None`: `output` is too small.
    pub(super) fn finish(mut self) -> Option<usize> {
        self.literals(self.from..self.input.len(), 0);
        (self.len <= self.output.len()).then_some(self.len)
    }
}
