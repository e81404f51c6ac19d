//! Operators and mathematical functions, in the types and with the overflows of Java.

use num_bigint::{BigInt, Sign};

use halcyon_model::CqlType;

use super::calendar::{Duration, add_to_days, add_to_millis};
use super::time::{date, days};
use super::{Function, powers};
use crate::plan::value::number::{
    Decimal, digits, divide_half_even, divide_half_up, float_decimal, of_f64, of_integer,
    power_of_ten, to_decimal, to_f64, to_integer, to_long,
};
use halcyon_syntax::ast::ArithmeticOperator;
use halcyon_syntax::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Math {
    Operator(ArithmeticOperator),
    Negate,
    Abs,
    Exp,
    Log,
    Log10,
    Round,
}

pub(super) fn is_number(cql_type: &CqlType) -> bool {
    width(cql_type).is_some()
}

/// Bytes of a number's values; zero: any number.
fn width(cql_type: &CqlType) -> Option<u8> {
    Some(match cql_type {
        CqlType::TinyInt => 1,
        CqlType::SmallInt => 2,
        CqlType::Int | CqlType::Float => 4,
        CqlType::BigInt | CqlType::Counter | CqlType::Double => 8,
        CqlType::Varint | CqlType::Decimal => 0,
        _ => return None,
    })
}

/// The type of an operation on numbers of two types.
pub(super) fn result_type(left: &CqlType, right: &CqlType) -> Option<CqlType> {
    let (a, b) = (width(left)?, width(right)?);
    let is_float = |t: &CqlType| matches!(t, CqlType::Float | CqlType::Double | CqlType::Decimal);
    let any = a == 0 || b == 0;
    Some(if is_float(left) || is_float(right) {
        match a.max(b) {
            _ if any => CqlType::Decimal,
            8 => CqlType::Double,
            _ => CqlType::Float,
        }
    } else {
        match a.max(b) {
            _ if any => CqlType::Varint,
            8 => CqlType::BigInt,
            4 => CqlType::Int,
            2 => CqlType::SmallInt,
            _ => CqlType::TinyInt,
        }
    })
}

impl Math {
    pub(super) fn is_power(self) -> bool {
        matches!(self, Math::Exp | Math::Log | Math::Log10)
    }

    pub(super) fn call(
        self,
        function: &Function,
        arguments: &[Option<&[u8]>],
    ) -> Result<Option<Vec<u8>>> {
        let Some(types) = function.arguments.first() else { return Ok(None) };
        let Some(Some(value)) = arguments.first() else { return Ok(None) };
        let Math::Operator(operator) = self else {
            if value.is_empty() {
                return Ok(None);
            }
            return self.of_one(types, value).map(Some);
        };
        let (Some(right_type), Some(Some(right))) = (function.arguments.get(1), arguments.get(1))
        else {
            return Ok(None);
        };
        let result = operate(operator, (types, value), (right_type, right), &function.returns);
        result.map_err(|why| Error::FunctionFailure {
            function: function.full_name(),
            arguments: function.arguments.iter().map(CqlType::cql_name).collect(),
            message: format!(
                "the operation '{} {operator} {}' failed: {why}",
                types.cql_name(),
                right_type.cql_name()
            ),
        })
    }

    fn of_one(self, cql_type: &CqlType, value: &[u8]) -> Result<Vec<u8>> {
        match cql_type {
            CqlType::Float | CqlType::Double => {
                let value = to_f64(cql_type, value);
                Ok(of_f64(cql_type, self.of_float(cql_type, value)))
            }
            CqlType::Decimal => {
                let decimal = Decimal::parse(value).unwrap_or_else(Decimal::zero);
                Ok(match self {
                    Math::Negate => {
                        Decimal { unscaled: -decimal.unscaled, scale: decimal.scale }.to_bytes()
                    }
                    Math::Abs => {
                        let unscaled = BigInt::from(decimal.unscaled.magnitude().clone());
                        Decimal { unscaled, scale: decimal.scale }.to_bytes()
                    }
                    Math::Round => round(&decimal).to_bytes(),
                    _ => self.power(&decimal)?.to_bytes(),
                })
            }
            _ => {
                let number = to_integer(cql_type, value);
                let result = match self {
                    Math::Negate => -number,
                    Math::Abs => BigInt::from(number.magnitude().clone()),
                    Math::Round => number,
                    _ if *cql_type.base() == CqlType::Varint => {
                        self.power(&Decimal::of(number))?.to_integer()
                    }
                    _ => {
                        let result = self.of_float(&CqlType::Double, to_f64(cql_type, value));
                        return Ok(narrow(cql_type, result));
                    }
                };
                Ok(of_integer(cql_type, &result))
            }
        }
    }

    fn power(self, decimal: &Decimal) -> Result<Decimal> {
        let result = match self {
            Math::Exp => powers::exp(decimal),
            Math::Log => powers::log(decimal),
            _ => powers::log10(decimal),
        };
        result.map_err(Error::invalid_request)
    }

    fn of_float(self, cql_type: &CqlType, value: f64) -> f64 {
        match self {
            Math::Negate => -value,
            Math::Abs => value.abs(),
            Math::Exp => value.exp(),
            Math::Log => value.ln(),
            // The processor's own NaN, whose sign is set.
            Math::Log10 if value < 0.0 => f64::from_bits(0xfff8_0000_0000_0000),
            Math::Log10 => value.log10(),
            Math::Round => {
                let floor = value.floor();
                let rounded = if value - floor >= 0.5 { floor + 1.0 } else { floor };
                match cql_type {
                    CqlType::Float => f64::from(rounded as i32),
                    _ => rounded as i64 as f64,
                }
            }
            Math::Operator(_) => value,
        }
    }
}

/// Java's narrowing of a double: to `int` or `long` with saturation, then the low bits.
fn narrow(cql_type: &CqlType, value: f64) -> Vec<u8> {
    match cql_type {
        CqlType::BigInt | CqlType::Counter => (value as i64).to_be_bytes().to_vec(),
        CqlType::Varint => {
            of_integer(cql_type, &to_integer(&CqlType::Double, &value.to_be_bytes()))
        }
        _ => of_integer(cql_type, &BigInt::from(value as i32)),
    }
}

/// To a whole number, halves away from zero.
fn round(decimal: &Decimal) -> Decimal {
    if decimal.scale <= 0 {
        return Decimal::of(decimal.to_integer());
    }
    let unit = power_of_ten(decimal.scale.unsigned_abs());
    Decimal::of(divide_half_up(&decimal.unscaled, &unit))
}

type Operand<'a> = (&'a CqlType, &'a [u8]);

fn operate(
    operator: ArithmeticOperator,
    (left_type, left): Operand<'_>,
    (right_type, right): Operand<'_>,
    returns: &CqlType,
) -> std::result::Result<Option<Vec<u8>>, String> {
    if *right_type == CqlType::Duration {
        return with_duration(operator, left_type, left, right);
    }
    if matches!(returns, CqlType::Text | CqlType::Ascii) {
        return Ok(Some([left, right].concat()));
    }
    if left.is_empty() || right.is_empty() {
        return Ok(None);
    }
    match returns {
        CqlType::Float => {
            let (a, b) = (to_f64(left_type, left) as f32, to_f64(right_type, right) as f32);
            Ok(Some(float(operator, f64::from(a), f64::from(b), true)))
        }
        CqlType::Double => {
            let (a, b) = (to_f64(left_type, left), to_f64(right_type, right));
            Ok(Some(float(operator, a, b, false)))
        }
        CqlType::Decimal => {
            let (a, b) = (operand(left_type, left)?, operand(right_type, right)?);
            decimal(operator, &a, &b).map(|result| Some(result.to_bytes()))
        }
        _ => {
            let (a, b) = (to_integer(left_type, left), to_integer(right_type, right));
            let result = integer(operator, a, b).ok_or_else(|| {
                let big = *returns == CqlType::Varint;
                if big { "BigInteger divide by zero" } else { "/ by zero" }.to_owned()
            })?;
            Ok(Some(of_integer(returns, &result)))
        }
    }
}

/// The other operand of a decimal. A number that is neither decimal nor varint is converted through a double: 1 is 1.0.
fn operand(cql_type: &CqlType, value: &[u8]) -> std::result::Result<Decimal, String> {
    let exact = matches!(cql_type.base(), CqlType::Decimal | CqlType::Varint);
    let number =
        if exact { to_decimal(cql_type, value) } else { float_decimal(to_f64(cql_type, value)) };
    number.ok_or_else(|| {
        let what = if to_f64(cql_type, value).is_nan() { "A NaN" } else { "An infinite number" };
        format!("{what} cannot be converted into a decimal")
    })
}

fn integer(operator: ArithmeticOperator, a: BigInt, b: BigInt) -> Option<BigInt> {
    let zero = b.sign() == Sign::NoSign;
    Some(match operator {
        ArithmeticOperator::Add => a + b,
        ArithmeticOperator::Subtract => a - b,
        ArithmeticOperator::Multiply => a * b,
        _ if zero => return None,
        ArithmeticOperator::Divide => a / b,
        ArithmeticOperator::Modulo => a % b,
    })
}

fn float(operator: ArithmeticOperator, a: f64, b: f64, single: bool) -> Vec<u8> {
    let result = match operator {
        ArithmeticOperator::Add => a + b,
        ArithmeticOperator::Subtract => a - b,
        ArithmeticOperator::Multiply => a * b,
        ArithmeticOperator::Divide => a / b,
        ArithmeticOperator::Modulo => a % b,
    };
    // The remainder by zero is the processor's own NaN, whose sign is set.
    let made =
        operator == ArithmeticOperator::Modulo && result.is_nan() && !a.is_nan() && !b.is_nan();
    match (single, made) {
        (true, true) => 0xffc0_0000_u32.to_be_bytes().to_vec(),
        (false, true) => 0xfff8_0000_0000_0000_u64.to_be_bytes().to_vec(),
        (true, false) => of_f64(&CqlType::Float, result),
        (false, false) => of_f64(&CqlType::Double, result),
    }
}

fn decimal(
    operator: ArithmeticOperator,
    a: &Decimal,
    b: &Decimal,
) -> std::result::Result<Decimal, String> {
    match operator {
        ArithmeticOperator::Add => Ok(a.add(b)),
        ArithmeticOperator::Subtract => Ok(a.subtract(b)),
        ArithmeticOperator::Multiply => Ok(a.multiply(b)),
        _ if b.is_zero() && operator == ArithmeticOperator::Divide => {
            Err("BigInteger divide by zero".into())
        }
        _ if b.is_zero() => Err("Division by zero".into()),
        ArithmeticOperator::Divide => Ok(divide(a, b)),
        ArithmeticOperator::Modulo => {
            let scale = a.scale.max(b.scale);
            let (x, y) = (a.unscaled_at(scale), b.unscaled_at(scale));
            let quotient = Decimal::of(&x / &y);
            Ok(shortened(Decimal { unscaled: x % y, scale }, remainder_scale(a, b, quotient)))
        }
    }
}

/// The scale that `BigDecimal.remainder` gives: that of what the whole quotient times the divisor is taken from, where
/// the quotient loses zeros as far as the difference of the scales goes.
fn remainder_scale(a: &Decimal, b: &Decimal, quotient: Decimal) -> i32 {
    let preferred = a.scale.saturating_sub(b.scale);
    let scale =
        if quotient.is_zero() { preferred } else { strip_zeros(quotient).scale.max(preferred) };
    a.scale.max(scale.saturating_add(b.scale))
}

/// The same number with a scale that is not greater; only zeros are removed.
fn shortened(decimal: Decimal, scale: i32) -> Decimal {
    let scale = scale.min(decimal.scale);
    let zeros = power_of_ten(decimal.scale.abs_diff(scale));
    Decimal { unscaled: decimal.unscaled / zeros, scale }
}

/// 32 significant digits at least, between 32 and 1000 after the point, halves up, without zeros at the end.
fn divide(a: &Decimal, b: &Decimal) -> Decimal {
    let first_digit =
        (digits(&a.unscaled) - i64::from(a.scale)) - (digits(&b.unscaled) - i64::from(b.scale));
    let scale = (32 - first_digit).max(i64::from(a.scale)).max(i64::from(b.scale)).clamp(32, 1000);
    let scale = i32::try_from(scale).unwrap_or(32);
    // a / b at the scale: the unscaled quotient of numbers brought to whole ones.
    let shift = i64::from(scale) - i64::from(a.scale) + i64::from(b.scale);
    let power = power_of_ten(u32::try_from(shift.unsigned_abs()).unwrap_or(u32::MAX));
    let quotient = if shift >= 0 {
        divide_half_up(&(&a.unscaled * power), &b.unscaled)
    } else {
        divide_half_up(&a.unscaled, &(&b.unscaled * power))
    };
    strip_zeros(Decimal { unscaled: quotient, scale })
}

fn strip_zeros(mut decimal: Decimal) -> Decimal {
    if decimal.is_zero() {
        return Decimal::zero();
    }
    let ten = BigInt::from(10);
    while (&decimal.unscaled % &ten).sign() == Sign::NoSign {
        decimal.unscaled /= &ten;
        decimal.scale -= 1;
    }
    decimal
}

fn with_duration(
    operator: ArithmeticOperator,
    left_type: &CqlType,
    left: &[u8],
    right: &[u8],
) -> std::result::Result<Option<Vec<u8>>, String> {
    let Some(duration) = Duration::parse(right).filter(|_| !left.is_empty()) else {
        return Ok(None);
    };
    let precision = match left_type {
        CqlType::Date if duration.nanos != 0 => Some("day"),
        CqlType::Date => None,
        _ => (!duration.has_milli_precision()).then_some("millisecond"),
    };
    if let Some(precision) = precision {
        let shown = duration.text();
        return Err(format!("The duration must have a {precision} precision. Was: {shown}"));
    }
    let duration =
        if operator == ArithmeticOperator::Subtract { duration.negated() } else { duration };
    Ok(Some(match left_type {
        CqlType::Date => date(add_to_days(days(left), duration)),
        _ => add_to_millis(to_long(left), duration).to_be_bytes().to_vec(),
    }))
}

/// `CAST` from one type of number to another.
pub(super) fn convert(from: &CqlType, to: &CqlType, value: &[u8]) -> Option<Vec<u8>> {
    if value.is_empty() {
        return None;
    }
    let is_float = matches!(from, CqlType::Float | CqlType::Double);
    Some(match to {
        CqlType::Float | CqlType::Double => of_f64(to, to_f64(from, value)),
        CqlType::Decimal => to_decimal(from, value)?.to_bytes(),
        // By way of a long, as Cassandra does.
        CqlType::Varint => {
            let long = convert(from, &CqlType::BigInt, value)?;
            BigInt::from(to_long(&long)).to_signed_bytes_be()
        }
        _ if is_float => narrow(to, to_f64(from, value)),
        _ => of_integer(to, &to_integer(from, value)),
    })
}

/// One step of a running average: the difference, divided at its own scale.
pub(super) fn average_step(average: &Decimal, value: &Decimal, count: i64) -> Decimal {
    let difference = value.subtract(average);
    let step = Decimal {
        unscaled: divide_half_even(&difference.unscaled, &BigInt::from(count)),
        scale: difference.scale,
    };
    average.add(&step)
}
