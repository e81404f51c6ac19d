//! Floating-point numbers as Java writes them, up to JDK 18: `Double.toString` and `Float.toString`.
//!
//! Their digits are not always the fewest that read back as the same number; Cassandra runs on these JDKs, and its
//! dumps must compare equal byte for byte.  How the digits come:
//!
//! 1. A whole number below 2⁶³ gives its integer digits, of which those beyond its precision are rounded away.
//! 2. Else the value is the fraction B/S × 10^decimal exponent, M being half its distance to the neighbours, all exact.
//!    Digits are quotients of B/S.  They stop when the rest is below M (`low`) or within M of the next digit (`high`).
//! 3. The last digit is rounded by which of the two holds; on both, by which is nearer, ties to even.
//!
//! The JDK computes step 2 in 32 bits, 64 bits or without bound, as the operands need, with two visible differences:
//! the tests for `high` differ when equal, and in the narrow forms M may overflow, which ends the digits.

use num_bigint::BigUint;

/// `Double.toString`.
pub fn double_to_string(value: f64) -> String {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let exponent = (bits >> 52 & 0x7ff) as i32;
    if exponent == 0x7ff {
        return special(value.is_nan(), value.is_sign_negative());
    }
    let (exponent, fraction, precision) = if exponent == 0 {
        let zeros = fraction.leading_zeros() as i32;
        if fraction == 0 {
            return zero(value.is_sign_negative());
        }
        (12 - zeros, fraction << (zeros - 11), 64 - zeros)
    } else {
        (exponent, fraction | 1 << 52, 53)
    };
    digits(exponent - 1023, fraction, precision).show(value.is_sign_negative())
}

/// `Float.toString`.
pub fn float_to_string(value: f32) -> String {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 23) - 1);
    let exponent = (bits >> 23 & 0xff) as i32;
    if exponent == 0xff {
        return special(value.is_nan(), value.is_sign_negative());
    }
    let (exponent, fraction, precision) = if exponent == 0 {
        let zeros = fraction.leading_zeros() as i32;
        if fraction == 0 {
            return zero(value.is_sign_negative());
        }
        (9 - zeros, fraction << (zeros - 8), 32 - zeros)
    } else {
        (exponent, fraction | 1 << 23, 24)
    };
    digits(exponent - 127, u64::from(fraction) << 29, precision).show(value.is_sign_negative())
}

/// `Double.parseDouble`: spaces around, a suffix of the type, `NaN` and `Infinity` by these names only. Hexadecimal
/// numbers, which Java reads too, are refused.
pub fn parse_double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c| c <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, "NaN" | "Infinity") {
        return text.parse().ok();
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text).parse().ok()
}

fn special(nan: bool, negative: bool) -> String {
    match (nan, negative) {
        (true, _) => "NaN",
        (_, false) => "Infinity",
        (_, true) => "-Infinity",
    }
    .to_owned()
}

fn zero(negative: bool) -> String {
    if negative { "-0.0" } else { "0.0" }.to_owned()
}

/// 0.d₁d₂… × 10^exponent, in ASCII.
struct Digits {
    digits: Vec<u8>,
    exponent: i32,
}

impl Digits {
    fn show(&self, negative: bool) -> String {
        let sign = if negative { "-" } else { "" };
        let digits: String = self.digits.iter().map(|digit| char::from(*digit)).collect();
        let or_zero =
            |fraction: &str| if fraction.is_empty() { "0".into() } else { fraction.to_owned() };
        match self.exponent {
            1..8 => {
                let whole = self.exponent as usize;
                let padded = format!("{digits:0<whole$}");
                let (whole, fraction) = padded.split_at(whole);
                format!("{sign}{whole}.{}", or_zero(fraction))
            }
            -2..=0 => {
                let zeros = "0".repeat(self.exponent.unsigned_abs() as usize);
                format!("{sign}0.{zeros}{digits}")
            }
            _ => {
                let (first, rest) = digits.split_at(1);
                format!("{sign}{first}.{}E{}", or_zero(rest), self.exponent - 1)
            }
        }
    }

    /// Adds one in the last place.
    fn round_up(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit != b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        self.exponent += 1;
        if let Some(first) = self.digits.first_mut() {
            *first = b'1';
        }
    }
}

/// Bits of 5ⁿ.
const BITS_OF_5_POW: [i32; 27] = [
    0, 3, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28, 31, 33, 35, 38, 40, 42, 45, 47, 49, 52, 54, 56,
    59, 61,
];

/// Bits of 5ⁿ, or a bound on them.
fn bits_of_5_pow(n: i32) -> i32 {
    usize::try_from(n).ok().and_then(|n| BITS_OF_5_POW.get(n).copied()).unwrap_or(n * 3)
}

/// Digits of `fraction` × 2^(exponent − 52), whose top bit is bit 52 and of whose bits `precision` count.
fn digits(exponent: i32, fraction: u64, precision: i32) -> Digits {
    let tail_zeros = fraction.trailing_zeros() as i32;
    let fraction_bits = 53 - tail_zeros;
    let tiny_bits = (fraction_bits - exponent - 1).max(0);
    if (-21..=62).contains(&exponent) && tiny_bits == 0 {
        return whole_number(exponent, fraction, precision);
    }
    let mut decimal_exponent = estimate_exponent(exponent, fraction);
    let b5 = (-decimal_exponent).max(0);
    let mut b2 = b5 + tiny_bits + exponent;
    let s5 = decimal_exponent.max(0);
    let mut s2 = s5 + tiny_bits;
    let mut m2 = b2 - precision;
    let fraction = fraction >> tail_zeros;
    b2 -= fraction_bits - 1;
    let common = b2.min(s2);
    b2 -= common;
    s2 -= common;
    m2 -= common;
    if fraction_bits == 1 {
        // The neighbour below a power of two is half as far away.
        m2 -= 1;
    }
    if m2 < 0 {
        b2 -= m2;
        s2 -= m2;
        m2 = 0;
    }
    let scale = Scale { b2, b5, s2, s5, m2 };
    let b_bits = fraction_bits + b2 + bits_of_5_pow(b5);
    let ten_s_bits = s2 + 1 + bits_of_5_pow(s5 + 1);
    let steps = if b_bits < 32 && ten_s_bits < 32 {
        scale.narrow_steps(fraction, |v| i64::from(v as i32), decimal_exponent)
    } else if b_bits < 64 && ten_s_bits < 64 {
        scale.narrow_steps(fraction, |v| v, decimal_exponent)
    } else {
        scale.wide_steps(fraction, decimal_exponent)
    };
    if steps.leading_zero {
        decimal_exponent -= 1;
    }
    let odd = steps.digits.last().is_some_and(|digit| digit & 1 == 1);
    let mut digits = Digits { digits: steps.digits, exponent: decimal_exponent + 1 };
    let up = match (steps.high, steps.low) {
        (true, true) => steps.twice_rest_to_unit.is_gt() || steps.twice_rest_to_unit.is_eq() && odd,
        (high, _) => high,
    };
    if up {
        digits.round_up();
    }
    digits
}

/// Step 1: an integer, of which digits beyond the precision are rounded away.
fn whole_number(exponent: i32, fraction: u64, precision: i32) -> Digits {
    let excess_bits = exponent - precision - 1;
    // Decimal digits that fit in the excess bits: floor(log10(2^n)).
    let insignificant =
        if exponent > precision && excess_bits > 1 { excess_bits * 30103 / 100_000 } else { 0 };
    let mut whole =
        if exponent >= 52 { fraction << (exponent - 52) } else { fraction >> (52 - exponent) };
    if insignificant > 0 {
        let unit = 10u64.saturating_pow(insignificant.unsigned_abs());
        let rest = whole % unit;
        whole = whole / unit + u64::from(rest >= unit / 2);
    }
    let text = whole.to_string();
    let exponent = text.len() as i32 + insignificant;
    let mut digits = text.trim_end_matches('0').as_bytes().to_vec();
    if digits.is_empty() {
        digits.push(b'0');
    }
    Digits { digits, exponent }
}

/// floor(log10(value)), or one more or less.
#[expect(clippy::approx_constant, reason = "the JDK's constants, digit for digit")]
fn estimate_exponent(exponent: i32, fraction: u64) -> i32 {
    let mantissa = f64::from_bits(1023 << 52 | fraction & ((1 << 52) - 1));
    let estimate =
        (mantissa - 1.5) * 0.289529654 + 0.176091259 + f64::from(exponent) * 0.301029995663981;
    estimate.floor() as i32
}

/// B = fraction × 5^b5 × 2^b2, S = 5^s5 × 2^s2, M = 5^b5 × 2^m2.
struct Scale {
    b2: i32,
    b5: i32,
    s2: i32,
    s5: i32,
    m2: i32,
}

/// The result of the digit loop.
struct Steps {
    digits: Vec<u8>,
    leading_zero: bool,
    low: bool,
    high: bool,
    twice_rest_to_unit: std::cmp::Ordering,
}

/// Java shows at least two digits in exponential form, so there the loop does not stop at the first.
fn needs_second_digit(decimal_exponent: i32) -> bool {
    !(-3..8).contains(&decimal_exponent)
}

fn ascii(digit: u64) -> u8 {
    b'0' + (digit % 10) as u8
}

impl Scale {
    /// `wrap` cuts a result to the width of the JDK's integers.
    fn narrow_steps(&self, fraction: u64, wrap: impl Fn(i64) -> i64, mut exponent: i32) -> Steps {
        let scaled = |value: u64, pow5: i32, pow2: i32| {
            let pow5 = 5u64.wrapping_pow(pow5.unsigned_abs());
            wrap((value.wrapping_mul(pow5) << (pow2 & 63)) as i64)
        };
        let mut b = scaled(fraction, self.b5, self.b2);
        let s = scaled(1, self.s5, self.s2).max(1);
        let mut m = scaled(1, self.b5, self.m2);
        let tens = wrap(s.wrapping_mul(10));
        let mut digits = Vec::new();
        let step = |b: &mut i64, m: &mut i64| {
            let quotient = *b / s;
            *b = wrap((*b % s).wrapping_mul(10));
            *m = wrap(m.wrapping_mul(10));
            quotient.unsigned_abs()
        };
        let quotient = step(&mut b, &mut m);
        let mut low = b < m;
        let mut high = wrap(b.wrapping_add(m)) > tens;
        let leading_zero = quotient == 0 && !high;
        if leading_zero {
            exponent -= 1;
        } else {
            digits.push(ascii(quotient));
        }
        if needs_second_digit(exponent) {
            (low, high) = (false, false);
        }
        while !low && !high {
            let quotient = step(&mut b, &mut m);
            if m > 0 {
                low = b < m;
                high = wrap(b.wrapping_add(m)) > tens;
            } else {
                (low, high) = (true, true);
            }
            digits.push(ascii(quotient));
        }
        let twice_rest_to_unit = wrap(wrap(b << 1).wrapping_sub(tens)).cmp(&0);
        Steps { digits, leading_zero, low, high, twice_rest_to_unit }
    }

    fn wide_steps(&self, fraction: u64, mut exponent: i32) -> Steps {
        let scaled = |value: u64, pow5: i32, pow2: i32| {
            (BigUint::from(value) * BigUint::from(5u8).pow(pow5.unsigned_abs()))
                << pow2.unsigned_abs()
        };
        let mut b = scaled(fraction, self.b5, self.b2);
        let s = scaled(1, self.s5, self.s2);
        let mut m = scaled(1, self.b5, self.m2);
        let tens = &s * 10u8;
        let mut digits = Vec::new();
        let step = |b: &mut BigUint, m: &mut BigUint| {
            let quotient = &*b / &s;
            *b = (&*b % &s) * 10u8;
            *m *= 10u8;
            quotient.iter_u64_digits().next().unwrap_or(0)
        };
        let quotient = step(&mut b, &mut m);
        let mut low = b < m;
        let mut high = &b + &m >= tens;
        let leading_zero = quotient == 0 && !high;
        if leading_zero {
            exponent -= 1;
        } else {
            digits.push(ascii(quotient));
        }
        if needs_second_digit(exponent) {
            (low, high) = (false, false);
        }
        while !low && !high {
            let quotient = step(&mut b, &mut m);
            low = b < m;
            high = &b + &m >= tens;
            digits.push(ascii(quotient));
        }
        let twice_rest_to_unit = (b << 1u8).cmp(&tens);
        Steps { digits, leading_zero, low, high, twice_rest_to_unit }
    }
}
