//! Numbers of any size, and floats with Java's bits.

use std::str::FromStr;

use halcyon_model::CqlType;
use num_bigint::BigInt;

/// Two's complement, as few bytes as possible.
pub(crate) fn varint(text: &str) -> Option<Vec<u8>> {
    integer(text).map(|value| value.to_signed_bytes_be())
}

fn integer(text: &str) -> Option<BigInt> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// `i32` scale and unscaled value: `-1.50e3` is −150 at scale −1.
pub(crate) fn decimal(text: &str) -> Option<Vec<u8>> {
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
pub(crate) fn float<F: FromStr>(text: &str) -> Option<F> {
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
pub(crate) fn java_float(value: f32) -> f32 {
    if value.is_nan() { f32::from_bits(0x7fc0_0000) } else { value }
}

pub(crate) fn java_double(value: f64) -> f64 {
    if value.is_nan() { f64::from_bits(0x7ff8_0000_0000_0000) } else { value }
}

/// Whether a double shows the same digits as the text.
pub(crate) fn is_exact_double(text: &str) -> bool {
    let Ok(value) = text.parse::<f64>() else { return false };
    if !value.is_finite() {
        return true;
    }
    match (decimal(text), decimal(&format!("{value:e}"))) {
        (Some(exact), Some(shown)) => CqlType::Decimal.compare(&exact, &shown).is_eq(),
        _ => false,
    }
}
