//! Tokens, decorated keys and the partitioners that order partitions.
//!
//! Partitions are ordered by token, then by key.  Murmur3 hashes the key; other partitioners appear in
//! index and system tables and order keys in their own way, so code that sorts or checks keys asks the
//! `Partitioner` to compare.  `DecoratedKey`'s own `Ord` is right where the token is a number (Murmur3, Random,
//! `ReversedLongLocal`) or where keys have no token and compare as bytes.

use std::cmp::Ordering;

use crate::types::{CqlType, TypeError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub i64);

impl Token {
    /// The least token; only the empty key has it.
    pub const MIN: Token = Token(i64::MIN);
}

/// A partition key with its token. Order: token (signed), then key bytes (unsigned).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecoratedKey {
    pub token: Token,
    pub key: Vec<u8>,
}

/// How partitions of an SSTable are ordered; the VALIDATION component names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partitioner {
    Murmur3,
    /// Legacy index tables: keys in the order of the indexed column's type.
    Local(CqlType),
    ByteOrdered,
    /// Keys in the order of their UTF-8 text.
    OrderPreserving,
    /// 6.0's cluster metadata log: 8-byte keys, greatest first.
    ReversedLongLocal,
    /// MD5 tokens. Parsed only for messages; its keys cannot be decorated (see `supported`).
    Random,
}

const DHT: &str = "org.apache.cassandra.dht.";

impl Partitioner {
    /// Parses the class name that the VALIDATION component stores. `LocalPartitioner` has no argument there: it
    /// becomes `Local(Blob)` until `with_key_type` sets the type.
    pub fn parse(class: &str) -> Result<Partitioner, TypeError> {
        Ok(match class.strip_prefix(DHT).unwrap_or(class) {
            "Murmur3Partitioner" => Partitioner::Murmur3,
            "LocalPartitioner" => Partitioner::Local(CqlType::Blob),
            "ByteOrderedPartitioner" => Partitioner::ByteOrdered,
            "OrderPreservingPartitioner" => Partitioner::OrderPreserving,
            "ReversedLongLocalPartitioner" => Partitioner::ReversedLongLocal,
            "RandomPartitioner" => Partitioner::Random,
            _ => return Err(TypeError::Unknown(class.to_owned())),
        })
    }

    /// Sets the key type of a local partitioner; others ignore it.
    #[must_use]
    pub fn with_key_type(self, key_type: &CqlType) -> Partitioner {
        match self {
            Partitioner::Local(_) => Partitioner::Local(key_type.clone()),
            other => other,
        }
    }

    /// The class name, as the VALIDATION component stores it.
    pub fn class_name(&self) -> String {
        let name = match self {
            Partitioner::Murmur3 => "Murmur3Partitioner",
            Partitioner::Local(_) => "LocalPartitioner",
            Partitioner::ByteOrdered => "ByteOrderedPartitioner",
            Partitioner::OrderPreserving => "OrderPreservingPartitioner",
            Partitioner::ReversedLongLocal => "ReversedLongLocalPartitioner",
            Partitioner::Random => "RandomPartitioner",
        };
        format!("{DHT}{name}")
    }

    /// Whether keys can be decorated and compared in this partitioner's order.
    pub fn supported(&self) -> bool {
        !matches!(self, Partitioner::Random)
    }

    #[inline]
    pub fn decorate(&self, key: &[u8]) -> DecoratedKey {
        DecoratedKey { token: self.token(key), key: key.to_vec() }
    }

    /// The token where it is a 64-bit number, else zero for every key.
    #[inline]
    pub fn token(&self, key: &[u8]) -> Token {
        match self {
            Partitioner::Murmur3 => murmur3_token(key),
            // Signed tokens in falling order: the complement rises.
            Partitioner::ReversedLongLocal => {
                Token(key.try_into().map_or(i64::MIN, |bytes| !i64::from_be_bytes(bytes)))
            }
            _ => Token(0),
        }
    }

    /// Order of two partition keys.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Partitioner::Local(key_type) => key_type.compare(a, b).then_with(|| a.cmp(b)),
            numbered => numbered.token(a).cmp(&numbered.token(b)).then_with(|| a.cmp(b)),
        }
    }
}

/// Token of Murmur3Partitioner.
#[inline]
pub fn murmur3_token(key: &[u8]) -> Token {
    if key.is_empty() {
        return Token::MIN;
    }
    token_of_hash(murmur3_hash(key).0)
}

/// Token of a hash that is also needed for something else (Bloom filter, BTI hash byte). Not for the empty key.
#[inline]
pub fn token_of_hash(h1: i64) -> Token {
    Token(if h1 == i64::MIN { i64::MAX } else { h1 })
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

#[inline]
fn mix1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline]
fn mix2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline]
fn finish(mut h: u64) -> u64 {
    h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

/// MurmurHash3 x64 128 with seed 0 in Cassandra's variant: the bytes of an incomplete last block are sign-extended
/// before they are combined.
#[inline]
pub fn murmur3_hash(key: &[u8]) -> (i64, i64) {
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let both = u128::from_le_bytes(*block);
        h1 ^= mix1(both as u64);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix2((both >> 64) as u64);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let half = |bytes: &[u8]| {
        bytes.iter().enumerate().fold(0u64, |k, (i, byte)| k ^ (*byte as i8 as u64) << (8 * i))
    };
    let (low, high) = tail.split_at(tail.len().min(8));
    // An empty half contributes nothing: mixing zero gives zero.
    h2 ^= mix2(half(high));
    h1 ^= mix1(half(low));

    h1 ^= key.len() as u64;
    h2 ^= key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1 as i64, h2 as i64)
}

/// Joins the components of a partition key: a single one unchanged, several as `u16` length, bytes, `00` each.
/// `None` if a component (or the whole) exceeds the 65,535 bytes that a key may have.
pub fn join_key(components: &[&[u8]]) -> Option<Vec<u8>> {
    join(components).filter(|key| key.len() <= usize::from(u16::MAX))
}

/// The token of a partition key, also of one that is too long to be written. `None` if a component of several exceeds 65,535 bytes.
pub fn token_of(components: &[&[u8]]) -> Option<Token> {
    join(components).map(|key| murmur3_token(&key))
}

fn join(components: &[&[u8]]) -> Option<Vec<u8>> {
    let [only] = components else {
        let mut key = Vec::with_capacity(components.iter().map(|c| c.len() + 3).sum());
        for component in components {
            key.extend_from_slice(&u16::try_from(component.len()).ok()?.to_be_bytes());
            key.extend_from_slice(component);
            key.push(0);
        }
        return Some(key);
    };
    Some(only.to_vec())
}

/// Splits a partition key into its `count` components. `None` if the bytes are not such a key.
pub fn split_key(key: &[u8], count: usize) -> Option<Vec<&[u8]>> {
    if count == 1 {
        return Some(vec![key]);
    }
    let mut rest = key;
    let mut components = Vec::new();
    while components.len() < count {
        let (len, tail) = rest.split_first_chunk::<2>()?;
        let (component, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        rest = tail.strip_prefix(&[0])?;
        components.push(component);
    }
    rest.is_empty().then_some(components)
}

/// Types of the partition key columns of a key type: those of a composite, or the one type.
pub fn key_component_types(key_type: &CqlType) -> &[CqlType] {
    match key_type {
        CqlType::Composite(types) => types,
        one => std::slice::from_ref(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values given by Cassandra's Murmur3Partitioner and MurmurHash.
    #[test]
    fn murmur3_is_cassandras() {
        let sequence: Vec<u8> = (0..16).collect();
        let falling: Vec<u8> = (0xee..=0xff).rev().collect();
        let golden: &[(&[u8], i64, i64)] = &[
            (&[0], 5048724184180415669, 5864299874987029891),
            (&[0, 0, 0, 1], -4069959284402364209, 8758431505130184934),
            (&[0xff], -4442228696663692417, -6049531771631615289),
            (
                &[0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89],
                -7623170703309721106,
                -1715437519427941125,
            ),
            (&sequence, 4920504430128807728, -6084252774064723899),
            (&falling, 7550107071997514592, -612068095128796091),
            (b"key1", 1573573083296714675, -5370656463727122039),
        ];
        for (key, h1, h2) in golden {
            assert_eq!(murmur3_hash(key), (*h1, *h2), "{key:02x?}");
            assert_eq!(murmur3_token(key), Token(*h1));
        }
        assert_eq!(murmur3_token(&[]), Token(i64::MIN));
        assert_eq!(token_of_hash(i64::MIN), Token(i64::MAX));
    }

    #[test]
    fn keys_split_as_they_were_joined() {
        let components: &[&[u8]] = &[&[0, 0, 0, 1], b"bee"];
        let key = join_key(components).expect("short");
        assert_eq!(key, [0, 4, 0, 0, 0, 1, 0, 0, 3, b'b', b'e', b'e', 0]);
        assert_eq!(split_key(&key, 2).as_deref(), Some(components));
        assert_eq!(split_key(&key, 3), None);
        assert_eq!(split_key(&key[..12], 2), None);
        assert_eq!(split_key(b"x", 1), Some(vec![&b"x"[..]]));
        assert_eq!(join_key(&[&[0; 65536]]), None);
    }

    #[test]
    fn partitioners_order_keys_in_their_own_way() {
        let int = |v: i32| v.to_be_bytes();
        let local = Partitioner::parse("org.apache.cassandra.dht.LocalPartitioner")
            .expect("known")
            .with_key_type(&CqlType::Int);
        assert_eq!(local.compare(&int(-1), &int(1)), Ordering::Less);
        assert_eq!(Partitioner::ByteOrdered.compare(&int(-1), &int(1)), Ordering::Greater);
        let reversed = Partitioner::ReversedLongLocal;
        assert_eq!(reversed.compare(&5i64.to_be_bytes(), &6i64.to_be_bytes()), Ordering::Greater);
        assert_eq!(Partitioner::Murmur3.compare(b"key1", &[0]), Ordering::Less);
        for p in [Partitioner::Murmur3, reversed, Partitioner::Random, Partitioner::ByteOrdered] {
            assert_eq!(Partitioner::parse(&p.class_name()), Ok(p));
        }
        assert!(Partitioner::parse("com.example.Ours").is_err());
    }
}
