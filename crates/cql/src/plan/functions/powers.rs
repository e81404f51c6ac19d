//! Exponentials and logarithms of decimals, to as many digits as Cassandra gives: 32, or those of the argument if it has more.
//!
//! 1. All is counted with whole numbers: `f` digits stand behind the point, enough that those which are given out are right.
//! 2. `exp(x) = 10^k · exp(x − k·ln 10)`, where the rest is below ln 10, by its series.
//! 3. `ln(m · 10^e) = 2·artanh((m − 1) / (m + 1)) + e·ln 10`, where m is from 1 to 10.

use num_bigint::{BigInt, Sign};

use crate::plan::value::number::{Decimal, digits, divide_half_up, power_of_ten};

const DIGITS: u32 = 32;
/// Digits that are counted beyond those which are given out.
const GUARD: u32 = 48;
/// More are not given, however many the argument has.
const MAX_DIGITS: u32 = 1_000;
/// Exponents of results that a decimal can have.
const MAX_EXPONENT: i64 = i32::MAX as i64 - 100;

type Result<T> = std::result::Result<T, &'static str>;

/// How many digits a result has.
fn precision(x: &Decimal) -> u32 {
    u32::try_from(digits(&x.unscaled)).unwrap_or(MAX_DIGITS).clamp(DIGITS, MAX_DIGITS)
}

/// The number, rounded to a number of digits.
fn rounded(unscaled: BigInt, scale: i64, to: u32) -> Decimal {
    let (mut unscaled, mut scale) = (unscaled, scale);
    // Rounding up may make one digit more.
    while let Ok(surplus @ 1..) = u32::try_from(digits(&unscaled) - i64::from(to)) {
        unscaled = divide_half_up(&unscaled, &power_of_ten(surplus));
        scale -= i64::from(surplus);
    }
    Decimal { unscaled, scale: i32::try_from(scale).unwrap_or(i32::MAX) }
}

/// `x · 10^f`, cut.
fn fixed(x: &Decimal, f: u32) -> BigInt {
    let shift = i64::from(f) - i64::from(x.scale);
    let power = power_of_ten(u32::try_from(shift.unsigned_abs()).unwrap_or(u32::MAX));
    if shift >= 0 { &x.unscaled * power } else { &x.unscaled / power }
}

/// Twice the area hyperbolic tangent of `number / by`.
fn twice_artanh(number: &BigInt, by: &BigInt, f: u32) -> BigInt {
    let one = power_of_ten(f);
    let ratio: BigInt = number * &one / by;
    let square: BigInt = &ratio * &ratio / &one;
    let (mut power, mut sum, mut n) = (ratio, BigInt::ZERO, 1_u32);
    while power.sign() != Sign::NoSign {
        sum += &power / n;
        power = power * &square / &one;
        n += 2;
    }
    sum * 2
}

fn ln_ten(f: u32) -> BigInt {
    twice_artanh(&BigInt::from(9), &BigInt::from(11), f)
}

fn ln(x: &Decimal, to: u32) -> Result<Decimal> {
    if x.unscaled.sign() != Sign::Plus {
        return Err("Natural log of number zero or less");
    }
    let whole = digits(&x.unscaled) - 1;
    let exponent = whole - i64::from(x.scale);
    let mantissa =
        Decimal { unscaled: x.unscaled.clone(), scale: i32::try_from(whole).unwrap_or(0) };
    let f = to + GUARD;
    let (one, mantissa) = (power_of_ten(f), fixed(&mantissa, f));
    let of_mantissa = twice_artanh(&(&mantissa - &one), &(&mantissa + &one), f);
    let sum: BigInt = of_mantissa + ln_ten(f) * exponent;
    if sum.sign() == Sign::NoSign {
        return Ok(Decimal::zero());
    }
    Ok(rounded(sum, i64::from(f), to))
}

pub(super) fn log(x: &Decimal) -> Result<Decimal> {
    ln(x, precision(x))
}

/// The quotient of two natural logarithms: one that comes out even has no zeros at its end.
pub(super) fn log10(x: &Decimal) -> Result<Decimal> {
    let to = precision(x);
    let logarithm = ln(x, to + 2).map_err(|_| "Log10 of number zero or less")?;
    let ten = ln(&Decimal::of(BigInt::from(10)), to + 2)?;
    let preferred = i64::from(logarithm.scale) - i64::from(ten.scale);
    let f = to + GUARD;
    let number: BigInt = &logarithm.unscaled * power_of_ten(f);
    let quotient: BigInt = &number / &ten.unscaled;
    let scale = preferred + i64::from(f);
    if (&quotient * &ten.unscaled) != number {
        return Ok(rounded(quotient, scale, to));
    }
    let (mut unscaled, mut scale, ten) = (quotient, scale, BigInt::from(10));
    while scale > preferred && (&unscaled % &ten).sign() == Sign::NoSign {
        unscaled /= &ten;
        scale -= 1;
    }
    Ok(rounded(unscaled, scale, to))
}

pub(super) fn exp(x: &Decimal) -> Result<Decimal> {
    if x.is_zero() {
        return Ok(Decimal::of(BigInt::from(1)));
    }
    if digits(&x.unscaled) - i64::from(x.scale) > 11 {
        return Err("Overflow");
    }
    let to = precision(x);
    let f = to + GUARD;
    let (one, ten) = (power_of_ten(f), ln_ten(f));
    let x = fixed(x, f);
    let mut k: BigInt = &x / &ten;
    let mut rest: BigInt = x - &k * &ten;
    if rest.sign() == Sign::Minus {
        k -= 1;
        rest += &ten;
    }
    let exponent = i64::try_from(&k).ok().filter(|k| k.abs() < MAX_EXPONENT).ok_or("Overflow")?;
    let (mut term, mut sum, mut n) = (one.clone(), BigInt::ZERO, 1_u32);
    while term.sign() != Sign::NoSign {
        sum += &term;
        term = term * &rest / &one / n;
        n += 1;
    }
    Ok(rounded(sum, i64::from(f) - exponent, to))
}
