//! Numbers of any size, and floats with Java's bits.

use std::str::FromStr;

use crate::types::CqlType;
use num_bigint::BigInt;

/// Two's complement, as few bytes as possible.
pub(super) fn varint(text: &str) -> Option<Vec<u8>> {
    integer(text).map(|value| value.to_signed_bytes_be())
}

/// A whole number in digits, with or without a sign.
pub fn integer(text: &str) -> Option<BigInt> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut powers = Vec::new();
    let mut length = DIGITS_AT_ONCE;
    while length < digits.len() {
        let next = powers.last().map_or_else(
            || BigInt::from(10).pow(DIGITS_AT_ONCE as u32),
            |power: &BigInt| power * power,
        );
        powers.push(next);
        length *= 2;
    }
    let number = of_digits(digits, &powers)?;
    Some(if text.starts_with('-') { -number } else { number })
}

/// Digits that the library reads, which takes time in proportion to their square.
const DIGITS_AT_ONCE: usize = 1 << 10;

/// The halves are read, and put together by a multiplication, which takes less than their square. `powers` are ten to the number of digits
/// that may stand in a lower half, the largest last.
fn of_digits(digits: &str, powers: &[BigInt]) -> Option<BigInt> {
    let Some((power, smaller)) = powers.split_last() else { return digits.parse().ok() };
    match digits.len().checked_sub(DIGITS_AT_ONCE << smaller.len()) {
        None | Some(0) => of_digits(digits, smaller),
        Some(at) => {
            let (high, low) = digits.split_at_checked(at)?;
            Some(of_digits(high, smaller)? * power + of_digits(low, smaller)?)
        }
    }
}

/// `i32` scale and unscaled value: `-1.50e3` is −150 at scale −1.
pub(super) fn decimal(text: &str) -> Option<Vec<u8>> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let unscaled = integer(&format!("{whole}{fraction}"))?;
    let scale = i64::try_from(fraction.len()).ok()? - i64::from(exponent);
    let mut out = i32::try_from(scale).ok()?.to_be_bytes().to_vec();
    out.extend(unscaled.to_signed_bytes_be());
    Some(out)
}

/// As Java reads a float or a double: blanks around it count nothing, an `f` or `d` may end it.
pub(super) fn float<F: FromStr>(text: &str) -> Option<F> {
    let text = text.trim_matches(|c| c <= ' ');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(digits, "NaN" | "Infinity") {
        return text.parse().ok();
    }
    let number = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    // Rust knows `inf` too.
    let is_sound = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if is_sound { number.parse().ok() } else { None }
}

/// Java has one NaN.
pub(super) fn java_float(value: f32) -> f32 {
    if value.is_nan() { f32::from_bits(0x7fc0_0000) } else { value }
}

pub(super) fn java_double(value: f64) -> f64 {
    if value.is_nan() { f64::from_bits(0x7ff8_0000_0000_0000) } else { value }
}

/// Whether a double shows the same digits as the text.
pub fn is_exact_double(text: &str) -> bool {
    let Ok(value) = text.parse::<f64>() else { return false };
    if !value.is_finite() {
        return true;
    }
    if significant_digits(text) > DOUBLE_DIGITS {
        return false;
    }
    match (decimal(text), decimal(&format!("{value:e}"))) {
        (Some(exact), Some(shown)) => CqlType::Decimal.compare(&exact, &shown).is_eq(),
        _ => false,
    }
}

/// A double is shown with no more.
const DOUBLE_DIGITS: usize = 17;

/// Digits of a number without its exponent and the zeros at both ends.
fn significant_digits(text: &str) -> usize {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_other = |byte: &u8| matches!(byte, b'1'..=b'9');
    let digits = || mantissa.bytes().filter(u8::is_ascii_digit);
    let leading = digits().take_while(|byte| !is_other(byte)).count();
    let trailing = digits().rev().take_while(|byte| !is_other(byte)).count();
    digits().count().saturating_sub(leading + trailing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that numbers of many digits are read as the library reads them, at the lengths where halves begin.
    #[test]
    fn long_numbers_are_read_in_halves() {
        for length in [1, 1023, 1024, 1025, 2047, 2048, 2049, 3000, 4096, 5000, 9999] {
            let digits: String =
                (0..length).map(|n| char::from(b'0' + (n * 7 % 10) as u8)).collect();
            for text in [digits.clone(), format!("-{digits}"), format!("+{digits}")] {
                assert_eq!(integer(&text), text.parse().ok(), "{length} digits");
            }
        }
        assert_eq!(integer("-"), None);
    }

    /// Proves that a constant is a double only if a double shows the same digits, and that this is seen without counting with all of them.
    #[test]
    fn doubles_have_few_digits() {
        for exact in ["1.5", "0.1", "100000000000000000000000", "1e300", "-0.00025", "0.0"] {
            assert!(is_exact_double(exact), "{exact}");
        }
        for other in ["0.1234567890123456789", "9007199254740993", "1.00000000000000000000001"] {
            assert!(!is_exact_double(other), "{other}");
        }
        assert_eq!(significant_digits("-00120.3400e99"), 5);
    }
}
