//! Counter contexts: the value of a counter cell is one shard per node that has counted, and the counter is their sum.
//!
//! ```text
//! i16 h                 number of header elements; negative: local shards are to be cleared when read
//! |h| × i16             i: shard i is local      i − 32768: shard i is global     not listed: remote
//! n × (16 id, i64 clock, i64 count)              ascending by id, unsigned
//! ```
//!
//! Modern writes make global shards, for which merging is "higher clock wins".  Local and remote shards come from
//! before 2.1: local ones are deltas, which add up; remote ones are another node's count.

use std::cmp::Ordering;

use crate::bytes::{Cursor, DecodeError, DecodeResult, Put};

const SHARD: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardKind {
    Global,
    Local,
    Remote,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    pub id: [u8; 16],
    pub clock: i64,
    pub count: i64,
    pub kind: ShardKind,
}

/// A decoded context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterContext {
    pub shards: Vec<Shard>,
    /// Local shards are to be cleared when the cell is read (the header count is negative).
    pub clears_local: bool,
}

impl CounterContext {
    pub fn decode(context: &[u8]) -> DecodeResult<CounterContext> {
        let mut cursor = Cursor::new(context);
        let declared = cursor.i16()?;
        let mut header = Vec::new();
        for _ in 0..declared.unsigned_abs() {
            header.push(cursor.i16()?);
        }
        if !cursor.remaining().is_multiple_of(SHARD) {
            return Err(cursor.error(format!(
                "counter shards of {SHARD} bytes expected, found {} bytes",
                cursor.remaining()
            )));
        }
        let mut header = header.into_iter().peekable();
        let mut shards = Vec::with_capacity(cursor.remaining() / SHARD);
        while cursor.remaining() > 0 {
            // Cassandra compares 16-bit elements with int indexes: beyond 32767 shards every one is remote.
            let index = i16::try_from(shards.len()).ok();
            let kind = match (header.peek(), index) {
                (Some(element), Some(i)) if *element == i => ShardKind::Local,
                (Some(element), Some(i)) if *element == i | i16::MIN => ShardKind::Global,
                _ => ShardKind::Remote,
            };
            if kind != ShardKind::Remote {
                header.next();
            }
            let id = cursor.array()?;
            shards.push(Shard { id, clock: cursor.i64()?, count: cursor.i64()?, kind });
        }
        Ok(CounterContext { shards, clears_local: declared < 0 })
    }

    pub fn encode(&self) -> Vec<u8> {
        let listed = self.shards.iter().filter(|s| s.kind != ShardKind::Remote).count();
        let mut out = Vec::with_capacity(2 + 2 * listed + SHARD * self.shards.len());
        let declared = listed as u16 as i16;
        out.put_u16(if self.clears_local { declared.wrapping_neg() } else { declared } as u16);
        for (i, shard) in self.shards.iter().enumerate() {
            match shard.kind {
                ShardKind::Global => out.put_u16(i as u16 | 0x8000),
                ShardKind::Local => out.put_u16(i as u16),
                ShardKind::Remote => {}
            }
        }
        for shard in &self.shards {
            out.put(&shard.id);
            out.put_i64(shard.clock);
            out.put_i64(shard.count);
        }
        out
    }

    /// The counter's value.
    pub fn total(&self) -> i64 {
        self.shards.iter().fold(0, |sum, shard| sum.wrapping_add(shard.count))
    }

    /// Whether shards from before 2.1 (local or remote) remain.
    pub fn has_legacy_shards(&self) -> bool {
        self.shards.iter().any(|shard| shard.kind != ShardKind::Global)
    }
}

/// The counter's value, without decoding the shards one by one. Counts wrap as in Java.
pub fn total(context: &[u8]) -> DecodeResult<i64> {
    let mut cursor = Cursor::new(context);
    let declared = cursor.i16()?;
    cursor.take(2 * usize::from(declared.unsigned_abs()))?;
    let mut sum = 0i64;
    while cursor.remaining() > 0 {
        cursor.take(SHARD - 8)?;
        sum = sum.wrapping_add(cursor.i64()?);
    }
    Ok(sum)
}

/// A context of one global shard, as a write makes it.
pub fn global(id: [u8; 16], clock: i64, count: i64) -> Vec<u8> {
    let shards = vec![Shard { id, clock, count, kind: ShardKind::Global }];
    CounterContext { shards, clears_local: false }.encode()
}

/// Which context a merge gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// One side holds everything that the other does: it is kept byte for byte (with its header).
    Left,
    Right,
    New(Vec<u8>),
}

/// Merges two contexts (`CounterContext.merge`). Local shards make it other than idempotent, even of equal contexts.
pub fn merge(left: &[u8], right: &[u8]) -> Result<Merged, DecodeError> {
    let (l, r) = (CounterContext::decode(left)?.shards, CounterContext::decode(right)?.shards);
    let (mut left_is_superset, mut right_is_superset) = (true, true);
    let mut shards = Vec::with_capacity(l.len().max(r.len()));
    let (mut l, mut r) = (l.into_iter().peekable(), r.into_iter().peekable());
    loop {
        let side = match (l.peek(), r.peek()) {
            (Some(a), Some(b)) => a.id.cmp(&b.id),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        match side {
            Ordering::Less => {
                right_is_superset = false;
                shards.extend(l.next());
            }
            Ordering::Greater => {
                left_is_superset = false;
                shards.extend(r.next());
            }
            Ordering::Equal => {
                let (Some(a), Some(b)) = (l.next(), r.next()) else { break };
                let choice = choose(&a, &b);
                left_is_superset &= matches!(choice, Choice::Left | Choice::Same);
                right_is_superset &= matches!(choice, Choice::Right | Choice::Same);
                shards.push(match choice {
                    Choice::Left => a,
                    Choice::Right | Choice::Same => b,
                    Choice::Sum => Shard {
                        clock: a.clock.wrapping_add(b.clock),
                        count: a.count.wrapping_add(b.count),
                        ..a
                    },
                });
            }
        }
    }
    Ok(if left_is_superset {
        Merged::Left
    } else if right_is_superset {
        Merged::Right
    } else {
        Merged::New(CounterContext { shards, clears_local: false }.encode())
    })
}

enum Choice {
    Left,
    Right,
    Same,
    /// Two local shards are deltas.
    Sum,
}

/// Which of two shards of one node survives: global, then local, then remote; among equals the higher clock, then the
/// higher count. Negative clocks of remote shards are special: they were reset, and the lower one is later.
fn choose(a: &Shard, b: &Shard) -> Choice {
    use ShardKind::{Global, Local, Remote};
    let higher = |order: Ordering| match order {
        Ordering::Greater => Choice::Left,
        Ordering::Less => Choice::Right,
        Ordering::Equal => Choice::Same,
    };
    match (a.kind, b.kind) {
        (Global, Global) => higher((a.clock, a.count).cmp(&(b.clock, b.count))),
        (Local, Local) => Choice::Sum,
        (Remote, Remote) if a.clock == b.clock => higher(a.count.cmp(&b.count)),
        (Remote, Remote) => {
            let left = if a.clock < 0 {
                b.clock > 0 || a.clock < b.clock
            } else {
                b.clock > 0 && a.clock > b.clock
            };
            if left { Choice::Left } else { Choice::Right }
        }
        (Global, _) | (Local, Remote) => Choice::Left,
        (_, Global) | (Remote, Local) => Choice::Right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len() / 2)
            .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex"))
            .collect()
    }

    fn context(shards: &[(u8, i64, i64, ShardKind)]) -> Vec<u8> {
        let shards = shards.iter().map(|&(id, clock, count, kind)| Shard {
            id: [id; 16],
            clock,
            count,
            kind,
        });
        CounterContext { shards: shards.collect(), clears_local: false }.encode()
    }

    /// Bytes from Cassandra.
    #[test]
    fn a_higher_clock_wins_and_other_nodes_are_kept() {
        let old = hex("000180000000000000000000c0000000000000010000000000000005000000000000000a");
        assert_eq!(total(&old), Ok(10));
        let id: [u8; 16] = old[4..20].try_into().expect("16 bytes");
        let new = global(id, 6, 3);
        assert_eq!(merge(&old, &new), Ok(Merged::Right));
        assert_eq!(merge(&new, &old), Ok(Merged::Left));
        let mut other = id;
        other[15] += 1;
        let Ok(Merged::New(both)) = merge(&new, &global(other, 1, 4)) else { panic!("a union") };
        assert_eq!(both[..6], [0, 2, 0x80, 0, 0x80, 1]);
        assert_eq!(total(&both), Ok(7));
        assert_eq!(CounterContext::decode(&both).map(|c| c.encode()), Ok(both));
    }

    #[test]
    fn kinds_of_shards_merge_as_before_2_1() {
        use ShardKind::{Global, Local, Remote};
        let one = |clock, count, kind| context(&[(1, clock, count, kind)]);
        let cases = [
            (one(5, 1, Local), one(6, 2, Local), Merged::New(one(11, 3, Local))),
            (one(5, 1, Local), one(5, 1, Local), Merged::New(one(10, 2, Local))),
            (one(5, 1, Global), one(5, 1, Global), Merged::Left),
            (one(1, 1, Global), one(6, 2, Local), Merged::Left),
            (one(9, 1, Remote), one(6, 2, Local), Merged::Right),
            (one(6, 3, Remote), one(6, 2, Remote), Merged::Left),
            (one(-6, 3, Remote), one(6, 2, Remote), Merged::Left),
            (one(-5, 3, Remote), one(-6, 2, Remote), Merged::Right),
        ];
        for (a, b, merged) in cases {
            assert_eq!(merge(&a, &b), Ok(merged));
        }
    }

    #[test]
    fn damaged_contexts_are_errors() {
        let sound = global([7; 16], 1, 1);
        for len in 0..sound.len() {
            let cut = &sound[..len];
            assert_eq!(CounterContext::decode(cut).is_err(), total(cut).is_err());
            assert_eq!(total(cut).is_ok(), len == 4);
        }
        assert!(total(&[0x80, 0]).is_err());
    }
}
