//! How many distinct partition keys: a HyperLogLog++ sketch with the bytes of stream-lib's `HyperLogLogPlus(13, 25)`.
//!
//! ```text
//! i32 −2 │ 0d 19 │ 01 │ varint n │ n × varint (code − code before)        sparse: up to 6144 codes
//! i32 −2 │ 0d 19 │ 00 │ varint 5464 │ 1366 × i32                          normal: 8192 registers of 5 bits, 6 a word
//! ```
//!
//! 1. A key is hashed by MurmurHash2 (64 bits).  The first 13 bits choose a register; the register keeps the largest
//!    "zeros before the first one, plus one" of the remaining bits.
//! 2. While keys are few, a *code* per key is kept instead: its first 25 bits, and the zeros too if these do not
//!    imply them (odd codes).  Codes wait in `pending` and are merged into the sorted `codes` when there are more
//!    than 1536.  The merge walks two lists that are sorted by their 25 bits but compares codes as signed numbers,
//!    which leaves lists not quite sorted; files depend on it, so it is kept.
//! 3. More than 6144 codes become registers.
//!
//! Varints are LEB128 of 32 bits. A register value above 31 would spill into its neighbour, as it does in stream-lib.

use halcyon_model::bytes::Put;
use halcyon_model::{Cursor, DecodeResult};

const P: u32 = 13;
const SP: u32 = 25;
const REGISTERS: usize = 1 << P;
const PER_WORD: usize = 6;
const WORDS: usize = REGISTERS.div_ceil(PER_WORD);
const MAX_PENDING: usize = 1536;
const MAX_CODES: usize = 6144;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cardinality {
    state: Representation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Representation {
    Sparse { codes: Vec<i32>, pending: Vec<i32> },
    Normal(Box<[u32; WORDS]>),
}

/// Cassandra's `MurmurHash.hash2_64`: the last bytes are sign-extended.
pub fn murmur2_hash(key: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = M.wrapping_mul(key.len() as u64);
    let mut words = key.chunks_exact(8);
    for word in &mut words {
        let bytes = word.first_chunk::<8>().copied().unwrap_or_default();
        let mut k = u64::from_le_bytes(bytes).wrapping_mul(M);
        k ^= k >> 47;
        hash = (hash ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    let tail = words.remainder();
    for (i, byte) in tail.iter().enumerate() {
        hash ^= (i64::from(*byte as i8) as u64) << (8 * i);
    }
    if !tail.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(M);
    hash ^ hash >> 47
}

fn run_length(hash: u64) -> u32 {
    (hash << P | 1 << (P - 1)).leading_zeros() + 1
}

fn code_of(hash: u64) -> i32 {
    let index = (hash >> (64 - SP)) as u32;
    let implies_zeros = index & ((1 << (SP - P)) - 1) != 0;
    let code =
        if implies_zeros { index << 1 } else { (index << 6 | run_length(hash) ^ 63) << 1 | 1 };
    code as i32
}

/// The 25 bits of a code.
fn sparse_index(code: i32) -> u32 {
    let code = code as u32;
    if code & 1 == 1 { code >> 7 } else { code >> 1 }
}

fn register_of(code: i32) -> (usize, u32) {
    let value = if code & 1 == 1 {
        (code as u32 >> 1 & 63) ^ 63
    } else {
        ((code as u32) << (P + 31 - SP)).leading_zeros() + 1
    };
    ((sparse_index(code) >> (SP - P)) as usize, value)
}

fn raise(words: &mut [u32; WORDS], (register, value): (usize, u32)) {
    let shift = 5 * (register % PER_WORD);
    if let Some(word) = words.get_mut(register / PER_WORD) {
        let mask = 0x1f << shift;
        if *word & mask < value << shift {
            *word = *word & !mask | value << shift;
        }
    }
}

impl Default for Cardinality {
    fn default() -> Self {
        Cardinality { state: Representation::Sparse { codes: Vec::new(), pending: Vec::new() } }
    }
}

impl Cardinality {
    pub fn add_key(&mut self, key: &[u8]) {
        self.add_hash(murmur2_hash(key));
    }

    pub fn add_hash(&mut self, hash: u64) {
        match &mut self.state {
            Representation::Normal(words) => {
                raise(words, ((hash >> (64 - P)) as usize, run_length(hash)));
            }
            Representation::Sparse { pending, .. } => {
                pending.push(code_of(hash));
                if pending.len() > MAX_PENDING {
                    self.settle();
                }
            }
        }
    }

    /// Merges the pending codes.
    fn settle(&mut self) {
        if let Representation::Sparse { codes, pending } = &mut self.state
            && !pending.is_empty()
        {
            pending.sort_unstable_by_key(|code| (sparse_index(*code), *code));
            pending.dedup_by_key(|code| sparse_index(*code));
            *codes = merge_codes(codes, pending);
            pending.clear();
            self.limit();
        }
    }

    /// Too many codes become registers.
    fn limit(&mut self) {
        if let Representation::Sparse { codes, .. } = &self.state
            && codes.len() > MAX_CODES
        {
            self.state = Representation::Normal(Box::new(registers(codes)));
        }
    }

    /// Adds all keys of another sketch.
    pub fn merge(&mut self, other: &Cardinality) {
        let other = other.settled();
        self.settle();
        match (&mut self.state, other.state) {
            (
                Representation::Sparse { codes, .. },
                Representation::Sparse { codes: others, .. },
            ) => {
                *codes = merge_codes(codes, &others);
                self.limit();
            }
            (Representation::Normal(words), Representation::Sparse { codes, .. }) => {
                codes.iter().for_each(|code| raise(words, register_of(*code)));
            }
            (Representation::Sparse { codes, .. }, Representation::Normal(mut words)) => {
                codes.iter().for_each(|code| raise(&mut words, register_of(*code)));
                self.state = Representation::Normal(words);
            }
            (Representation::Normal(words), Representation::Normal(others)) => {
                for (register, value) in values(&others).enumerate() {
                    raise(words, (register, value));
                }
            }
        }
    }

    fn settled(&self) -> Cardinality {
        let mut copy = self.clone();
        copy.settle();
        copy
    }

    /// Estimated number of distinct keys.
    pub fn estimate(&self) -> u64 {
        if let Representation::Normal(words) = &self.state {
            return estimate_of_registers(words).round() as u64;
        }
        match self.settled().state {
            Representation::Sparse { codes, .. } => {
                let slots = f64::from(1u32 << SP);
                (slots * (slots / (slots - codes.len() as f64)).ln()).round() as u64
            }
            Representation::Normal(words) => estimate_of_registers(&words).round() as u64,
        }
    }

    pub fn decode(cursor: &mut Cursor<'_>) -> DecodeResult<Cardinality> {
        let version = cursor.i32()?;
        let (p, sp) = (varint(cursor)?, varint(cursor)?);
        if (version, p, sp) != (-2, P, SP) {
            return Err(cursor.error(format!(
                "sketch of version 2, precisions {P} and {SP} expected, found {version}, {p}, {sp}"
            )));
        }
        let mode = varint(cursor)?;
        let n = varint(cursor)?;
        cursor.note(|| format!("HyperLogLog++ sketch, mode {mode}, length {n}"));
        let state = match mode {
            0 => decode_registers(cursor, n)?,
            1 => decode_codes(cursor, n)?,
            _ => return Err(cursor.error(format!("sketch mode 0 or 1 expected, found {mode}"))),
        };
        Ok(Cardinality { state })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_i32(-2);
        put_varint(P, out);
        put_varint(SP, out);
        match self.settled().state {
            Representation::Normal(words) => {
                put_varint(0, out);
                put_varint(4 * WORDS as u32, out);
                words.iter().for_each(|word| out.put_u32(*word));
            }
            Representation::Sparse { codes, .. } => {
                put_varint(1, out);
                put_varint(codes.len() as u32, out);
                let mut last = 0i32;
                for code in codes {
                    put_varint(code.wrapping_sub(last) as u32, out);
                    last = code;
                }
            }
        }
    }
}

fn registers(codes: &[i32]) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    codes.iter().for_each(|code| raise(&mut words, register_of(*code)));
    words
}

fn values(words: &[u32; WORDS]) -> impl Iterator<Item = u32> + '_ {
    let in_word = |word: &u32| {
        let word = *word;
        (0..PER_WORD).map(move |i| word >> (5 * i) & 0x1f)
    };
    words.iter().flat_map(in_word).take(REGISTERS)
}

/// stream-lib's merge: equal indexes meet in the smaller code, else the smaller *signed code* goes first.
fn merge_codes(left: &[i32], right: &[i32]) -> Vec<i32> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.iter().copied().peekable(), right.iter().copied().peekable());
    loop {
        let next = match (left.peek().copied(), right.peek().copied()) {
            (None, None) => return merged,
            (Some(l), Some(r)) if sparse_index(l) == sparse_index(r) => {
                left.next();
                right.next();
                Some(l.min(r))
            }
            (Some(l), Some(r)) if l < r => left.next(),
            (Some(_), None) => left.next(),
            (_, Some(_)) => right.next(),
        };
        merged.extend(next);
    }
}

/// The estimate of "HyperLogLog in Practice" (Heule, Nunkesser, Hall, 2013), to the digit: the sizes of filters that
/// compaction writes follow from it.
fn estimate_of_registers(words: &[u32; WORDS]) -> f64 {
    const LINEAR_COUNTING_BELOW: f64 = 6500.0;
    let m = REGISTERS as f64;
    let mut registers_by_value = [0u32; 32];
    for value in values(words) {
        if let Some(count) = registers_by_value.get_mut(value as usize) {
            *count += 1;
        }
    }
    // Exact in any order: the sum has at most 45 binary digits.
    let of_value = |(value, count): (i32, &u32)| f64::from(*count) * 0.5f64.powi(value);
    let sum: f64 = (0..).zip(&registers_by_value).map(of_value).sum();
    let [zeros, ..] = registers_by_value.map(f64::from);
    let alpha = 0.7213 / (1.0 + 1.079 / m);
    let raw = alpha * m * m * (1.0 / sum);
    let corrected = if raw <= 5.0 * m { raw - bias(raw) } else { raw };
    let linear = if zeros > 0.0 { m * (m / zeros).ln() } else { corrected };
    if linear < LINEAR_COUNTING_BELOW { linear } else { corrected }
}

/// Mean bias of the six nearest of the paper's measurements.
fn bias(raw: f64) -> f64 {
    const NEIGHBOURS: usize = 6;
    let distance = |measured: &f64| (raw - measured).abs();
    let mut start = RAW_ESTIMATES.partition_point(|measured| *measured < raw);
    let mut end = start;
    while end - start < NEIGHBOURS {
        let before = start.checked_sub(1).and_then(|i| RAW_ESTIMATES.get(i)).map(distance);
        let after = RAW_ESTIMATES.get(end).map(distance);
        match (before, after) {
            (Some(before), Some(after)) if after < before => end += 1,
            (Some(_), _) => start -= 1,
            (None, _) => end += 1,
        }
    }
    let measured = RAW_ESTIMATES.iter().enumerate().take(end).skip(start);
    measured.map(|(i, raw)| raw - keys_of_measurement(i)).sum::<f64>() / NEIGHBOURS as f64
}

/// Measurement `i` of 200 was made with this many keys: from 1, evenly spread up to 5 per register.
fn keys_of_measurement(i: usize) -> f64 {
    (1 + i * (5 * REGISTERS - 1) / 200) as f64
}

fn decode_registers(cursor: &mut Cursor<'_>, length: u32) -> DecodeResult<Representation> {
    if length as usize != 4 * WORDS {
        return Err(
            cursor.error(format!("{} bytes of registers expected, found {length}", 4 * WORDS))
        );
    }
    let mut words = Box::new([0u32; WORDS]);
    for word in words.iter_mut() {
        *word = cursor.u32()?;
    }
    cursor.note(|| format!("{REGISTERS} registers"));
    Ok(Representation::Normal(words))
}

fn decode_codes(cursor: &mut Cursor<'_>, n: u32) -> DecodeResult<Representation> {
    let n = n as usize;
    if n > MAX_CODES || n > cursor.remaining() {
        return Err(cursor.error(format!("{n} sparse codes do not fit")));
    }
    let mut codes = Vec::with_capacity(n);
    let mut last = 0i32;
    for _ in 0..n {
        last = last.wrapping_add(varint(cursor)? as i32);
        codes.push(last);
    }
    cursor.note(|| format!("{n} sparse codes"));
    Ok(Representation::Sparse { codes, pending: Vec::new() })
}

fn varint(cursor: &mut Cursor<'_>) -> DecodeResult<u32> {
    let mut value = 0u64;
    for shift in (0..35).step_by(7) {
        let byte = cursor.u8()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(value).map_err(|_| cursor.error("varint beyond 32 bits"));
        }
    }
    Err(cursor.error("varint beyond 32 bits"))
}

fn put_varint(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// The paper's uncorrected estimates for precision 13.
#[rustfmt::skip]
const RAW_ESTIMATES: [f64; 200] = [
    5908.5052, 6007.2672, 6107.347, 6208.5794, 6311.2622, 6414.5514, 6519.3376, 6625.6952,
    6732.5988, 6841.3552, 6950.5972, 7061.3082, 7173.5646, 7287.109, 7401.8216, 7516.4344,
    7633.3802, 7751.2962, 7870.3784, 7990.292, 8110.79, 8233.4574, 8356.6036, 8482.2712, 8607.7708,
    8735.099, 8863.1858, 8993.4746, 9123.8496, 9255.6794, 9388.5448, 9522.7516, 9657.3106,
    9792.6094, 9930.5642, 10068.794, 10206.7256, 10347.81, 10490.3196, 10632.0778, 10775.9916,
    10920.4662, 11066.124, 11213.073, 11358.0362, 11508.1006, 11659.1716, 11808.7514, 11959.4884,
    12112.1314, 12265.037, 12420.3756, 12578.933, 12734.311, 12890.0006, 13047.2144, 13207.3096,
    13368.5144, 13528.024, 13689.847, 13852.7528, 14018.3168, 14180.5372, 14346.9668, 14513.5074,
    14677.867, 14846.2186, 15017.4186, 15184.9716, 15356.339, 15529.2972, 15697.3578, 15871.8686,
    16042.187, 16216.4094, 16389.4188, 16565.9126, 16742.3272, 16919.0042, 17094.7592, 17273.965,
    17451.8342, 17634.4254, 17810.5984, 17988.9242, 18171.051, 18354.7938, 18539.466, 18721.0408,
    18904.9972, 19081.867, 19271.9118, 19451.8694, 19637.9816, 19821.2922, 20013.1292, 20199.3858,
    20387.8726, 20572.9514, 20770.7764, 20955.1714, 21144.751, 21329.9952, 21520.709, 21712.7016,
    21906.3868, 22096.2626, 22286.0524, 22475.051, 22665.5098, 22862.8492, 23055.5294, 23249.6138,
    23437.848, 23636.273, 23826.093, 24020.3296, 24213.3896, 24411.7392, 24602.9614, 24805.7952,
    24998.1552, 25193.9588, 25389.0166, 25585.8392, 25780.6976, 25981.2728, 26175.977, 26376.5252,
    26570.1964, 26773.387, 26962.9812, 27163.0586, 27368.164, 27565.0534, 27758.7428, 27961.1276,
    28163.2324, 28362.3816, 28565.7668, 28758.644, 28956.9768, 29163.4722, 29354.7026, 29561.1186,
    29767.9948, 29959.9986, 30164.0492, 30366.9818, 30562.5338, 30762.9928, 30976.1592, 31166.274,
    31376.722, 31570.3734, 31770.809, 31974.8934, 32179.5286, 32387.5442, 32582.3504, 32794.076,
    32989.9528, 33191.842, 33392.4684, 33595.659, 33801.8672, 34000.3414, 34200.0922, 34402.6792,
    34610.0638, 34804.0084, 35011.13, 35218.669, 35418.6634, 35619.0792, 35830.6534, 36028.4966,
    36229.7902, 36438.6422, 36630.7764, 36833.3102, 37048.6728, 37247.3916, 37453.5904, 37669.3614,
    37854.5526, 38059.305, 38268.0936, 38470.2516, 38674.7064, 38876.167, 39068.3794, 39281.9144,
    39492.8566, 39684.8628, 39898.4108, 40093.1836, 40297.6858, 40489.7086, 40717.2424,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{check_bytes, hex, survives_corruption};

    fn sketch(keys: std::ops::Range<u32>) -> Cardinality {
        let mut sketch = Cardinality::default();
        keys.for_each(|key| sketch.add_key(&key.to_be_bytes()));
        sketch
    }

    /// Of `n` hashes that are nearly random (splitmix64); MurmurHash2 of consecutive integers is not.
    fn random_sketch(n: u64) -> Cardinality {
        let mut sketch = Cardinality::default();
        for i in 1..=n {
            let mut z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            sketch.add_hash(z ^ z >> 31);
        }
        sketch
    }

    fn bytes(sketch: &Cardinality) -> Vec<u8> {
        let mut out = Vec::new();
        sketch.encode(&mut out);
        out
    }

    /// Vectors of the format notes, computed by stream-lib.
    #[test]
    fn golden() {
        assert_eq!(bytes(&sketch(0..0)), hex("fffffffe0d190100"));
        assert_eq!(bytes(&sketch(0..3)), hex("fffffffe0d190103a28dfb09bcb18e02829dad06"));
    }

    #[test]
    fn round_trips_and_estimates() {
        for n in [0, 1, 100, 1536, 1537, 6000, 6200, 20_000, 90_000, 1_000_000] {
            let sketch = random_sketch(n);
            let bytes = bytes(&sketch);
            assert_eq!(check_bytes(&bytes, Cardinality::decode), sketch.settled());
            let error = (sketch.estimate() as f64 - n as f64).abs();
            assert!(error <= 0.03 * n as f64, "{n}: {}", sketch.estimate());
        }
    }

    #[test]
    fn union() {
        for (a, b) in
            [(0..100, 50..150), (0..5000, 4000..9000), (0..90_000, 0..10), (0..9, 5..90_000)]
        {
            let together = f64::from(a.end.max(b.end));
            let mut union = sketch(a);
            union.merge(&sketch(b));
            let error = (union.estimate() as f64 - together).abs();
            assert!(error <= 0.06 * together, "{together}: {}", union.estimate());
        }
    }

    #[test]
    fn corruption_is_survived() {
        survives_corruption(&bytes(&sketch(0..50)), Cardinality::decode);
        let huge = hex("fffffffe0d1901ffffffff0f");
        assert!(Cardinality::decode(&mut Cursor::new(&huge)).is_err());
    }
}
