//! Numbers of every CQL type, as Java counts with them.

use num_bigint::{BigInt, Sign};

use halcyon_model::CqlType;
use halcyon_model::value::integer;

/// `BigDecimal`: `unscaled × 10^−scale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub unscaled: BigInt,
    pub scale: i32,
}

/// Bytes of the largest number that is counted with, or whose digits are shown.
pub(crate) const MAX_NUMBER: usize = 16 << 10;

/// Digits beyond which scales are not brought to each other: more would be a number that no one has written, but that
/// a hostile client could ask for.
const MAX_SHIFT: u32 = 20_000;

pub(crate) fn power_of_ten(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent.min(MAX_SHIFT))
}

impl Decimal {
    pub(crate) fn zero() -> Decimal {
        Decimal { unscaled: BigInt::ZERO, scale: 0 }
    }

    pub(crate) fn of(integer: BigInt) -> Decimal {
        Decimal { unscaled: integer, scale: 0 }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.unscaled.sign() == Sign::NoSign
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Decimal> {
        let scale = i32::from_be_bytes(*bytes.first_chunk::<4>()?);
        Some(Decimal { unscaled: BigInt::from_signed_bytes_be(bytes.get(4..)?), scale })
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.scale.to_be_bytes().to_vec();
        out.extend(self.unscaled.to_signed_bytes_be());
        out
    }

    /// The same number with a scale that is not smaller.
    pub(crate) fn unscaled_at(&self, scale: i32) -> BigInt {
        &self.unscaled * power_of_ten(scale.abs_diff(self.scale))
    }

    pub(crate) fn add(&self, other: &Decimal) -> Decimal {
        let scale = self.scale.max(other.scale);
        Decimal { unscaled: self.unscaled_at(scale) + other.unscaled_at(scale), scale }
    }

    pub(crate) fn subtract(&self, other: &Decimal) -> Decimal {
        self.add(&Decimal { unscaled: -&other.unscaled, scale: other.scale })
    }

    pub(crate) fn multiply(&self, other: &Decimal) -> Decimal {
        Decimal {
            unscaled: &self.unscaled * &other.unscaled,
            scale: self.scale.saturating_add(other.scale),
        }
    }

    pub(crate) fn to_f64(&self) -> f64 {
        self.text().parse().unwrap_or(f64::NAN)
    }

    /// In a form that every reader of numbers understands.
    pub(crate) fn text(&self) -> String {
        format!("{}e{}", self.unscaled, -i64::from(self.scale))
    }

    /// Towards zero.
    pub(crate) fn to_integer(&self) -> BigInt {
        if self.scale <= 0 {
            &self.unscaled * power_of_ten(self.scale.unsigned_abs())
        } else if self.scale.unsigned_abs() > MAX_SHIFT {
            BigInt::ZERO
        } else {
            &self.unscaled / power_of_ten(self.scale.unsigned_abs())
        }
    }
}

/// The nearest integer, of two equally near the even one. Nothing by zero.
pub(crate) fn divide_half_even(number: &BigInt, by: &BigInt) -> BigInt {
    if by.sign() == Sign::NoSign {
        return BigInt::ZERO;
    }
    let quotient: BigInt = number / by;
    let rest: BigInt = number % by;
    let twice = BigInt::from(rest.magnitude().clone()) * 2;
    let whole = BigInt::from(by.magnitude().clone());
    let is_odd = quotient.bit(0);
    if twice > whole || (twice == whole && is_odd) {
        let negative = (number.sign() == Sign::Minus) != (by.sign() == Sign::Minus);
        return if negative { quotient - 1 } else { quotient + 1 };
    }
    quotient
}

pub(crate) fn to_integer(cql_type: &CqlType, value: &[u8]) -> BigInt {
    match cql_type.base() {
        CqlType::Decimal => {
            Decimal::parse(value).map_or(BigInt::ZERO, |decimal| decimal.to_integer())
        }
        CqlType::Float | CqlType::Double => of_float_truncated(to_f64(cql_type, value)),
        integer => BigInt::from_signed_bytes_be(integer.read_of(value)),
    }
}

fn of_float_truncated(value: f64) -> BigInt {
    float_decimal(value).map_or(BigInt::ZERO, |decimal| decimal.to_integer())
}

/// A decimal divided by a count, as a double.
pub(crate) fn quotient(decimal: &Decimal, count: i64) -> f64 {
    // More digits than a double has.
    const DIGITS: u32 = 20;
    let unscaled = &decimal.unscaled * power_of_ten(DIGITS) / BigInt::from(count.max(1));
    Decimal { unscaled, scale: decimal.scale.saturating_add(DIGITS as i32) }.to_f64()
}

/// `new BigDecimal(Double.toString(value))`; `None` if the value is not finite.
pub(crate) fn float_decimal(value: f64) -> Option<Decimal> {
    if !value.is_finite() {
        return None;
    }
    parse_decimal(&halcyon_model::value::double_to_string(value))
}

/// As `new BigDecimal(text)` reads it.
pub(crate) fn parse_decimal(text: &str) -> Option<Decimal> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let unscaled = integer(&format!("{whole}{fraction}"))?;
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    Some(Decimal { unscaled, scale })
}

pub(crate) fn to_f64(cql_type: &CqlType, value: &[u8]) -> f64 {
    match cql_type.base() {
        CqlType::Float => {
            value.first_chunk().map_or(0.0, |bytes| f64::from(f32::from_be_bytes(*bytes)))
        }
        CqlType::Double => value.first_chunk().map_or(0.0, |bytes| f64::from_be_bytes(*bytes)),
        CqlType::Decimal => Decimal::parse(value).map_or(0.0, |decimal| decimal.to_f64()),
        CqlType::Varint => to_integer(cql_type, value).to_string().parse().unwrap_or(f64::NAN),
        integer => to_long(integer.read_of(value)) as f64,
    }
}

pub(crate) fn to_decimal(cql_type: &CqlType, value: &[u8]) -> Option<Decimal> {
    match cql_type.base() {
        CqlType::Decimal => Decimal::parse(value),
        CqlType::Float => {
            let text = halcyon_model::value::float_to_string(to_f64(cql_type, value) as f32);
            parse_decimal(&text)
        }
        CqlType::Double => float_decimal(to_f64(cql_type, value)),
        _ => Some(Decimal::of(to_integer(cql_type, value))),
    }
}

/// Any two's complement integer of up to eight bytes.
pub(crate) fn to_long(value: &[u8]) -> i64 {
    let negative = value.first().is_some_and(|byte| byte & 0x80 != 0);
    value
        .iter()
        .take(8)
        .fold(if negative { -1 } else { 0 }, |all, byte| all << 8 | i64::from(*byte))
}

/// The low bits, as Java's narrowing conversions take them.
pub(crate) fn of_integer(cql_type: &CqlType, value: &BigInt) -> Vec<u8> {
    let bytes = value.to_signed_bytes_be();
    let width = match cql_type.base() {
        CqlType::TinyInt => 1,
        CqlType::SmallInt => 2,
        CqlType::Int => 4,
        CqlType::BigInt | CqlType::Counter => 8,
        _ => return bytes,
    };
    let fill = if value.sign() == Sign::Minus { 0xff } else { 0 };
    let mut out = vec![fill; width];
    let kept = bytes.len().min(width);
    let low = bytes.get(bytes.len() - kept..).unwrap_or_default();
    if let Some(tail) = out.get_mut(width - kept..) {
        tail.copy_from_slice(low);
    }
    out
}

pub(crate) fn of_f64(cql_type: &CqlType, value: f64) -> Vec<u8> {
    match cql_type.base() {
        CqlType::Float => (value as f32).to_be_bytes().to_vec(),
        _ => value.to_be_bytes().to_vec(),
    }
}

pub(crate) fn divide_half_up(number: &BigInt, by: &BigInt) -> BigInt {
    let quotient: BigInt = number / by;
    let rest: BigInt = number % by;
    let twice = BigInt::from(rest.magnitude().clone()) * 2;
    if twice < BigInt::from(by.magnitude().clone()) {
        return quotient;
    }
    let negative = (number.sign() == Sign::Minus) != (by.sign() == Sign::Minus);
    if negative { quotient - 1 } else { quotient + 1 }
}

pub(crate) fn digits(value: &BigInt) -> i64 {
    i64::try_from(value.magnitude().to_string().len()).unwrap_or(i64::MAX)
}
