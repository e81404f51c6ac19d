//! Native aggregates: their state and their result. Sums wrap and averages round as Cassandra's do.

use num_bigint::BigInt;

use halcyon_model::CqlType;

use super::Function;
use super::aggregate::Aggregate;
use super::math::average_step;
use crate::plan::value::number::{self, Decimal};

#[derive(Debug, Clone)]
pub struct NativeAccumulator {
    aggregate: Aggregate,
    /// How many it has: none or one.
    arguments: usize,
    /// The type of the values.
    cql_type: CqlType,
    returns: CqlType,
    count: i64,
    best: Option<Vec<u8>>,
    exact: BigInt,
    decimal: Decimal,
    float: FloatSum,
}

/// A compensated sum, and a plain one that keeps infinities.
#[derive(Debug, Clone, Copy, Default)]
struct FloatSum {
    sum: f64,
    compensation: f64,
    simple: f64,
    /// Whether a value was infinite, or none at all.
    has_special: bool,
}

impl FloatSum {
    fn add(&mut self, value: f64) {
        self.simple += value;
        self.has_special |= !value.is_finite();
        let corrected = value - self.compensation;
        let rounded = self.sum + corrected;
        self.compensation = (rounded - self.sum) - corrected;
        self.sum = rounded;
    }

    fn total(&self) -> f64 {
        let total = self.sum + self.compensation;
        if total.is_nan() && self.simple.is_infinite() { self.simple } else { total }
    }
}

impl NativeAccumulator {
    pub(super) fn new(aggregate: Aggregate, function: &Function) -> NativeAccumulator {
        NativeAccumulator {
            aggregate,
            arguments: function.arguments.len(),
            cql_type: function.arguments.first().map_or(CqlType::Blob, |t| t.base().clone()),
            returns: function.returns.clone(),
            count: 0,
            best: None,
            exact: BigInt::ZERO,
            decimal: Decimal::zero(),
            float: FloatSum::default(),
        }
    }

    pub(super) fn add_row<'v>(&mut self, arguments: &mut impl Iterator<Item = Option<&'v [u8]>>) {
        self.add(arguments.take(self.arguments).last().flatten());
    }

    /// Takes in the argument of one row.
    pub(super) fn add(&mut self, value: Option<&[u8]>) {
        if self.aggregate == Aggregate::CountRows {
            self.count += 1;
            return;
        }
        let Some(value) = value else { return };
        match self.aggregate {
            Aggregate::Min | Aggregate::Max => {
                let wanted = if self.aggregate == Aggregate::Min {
                    std::cmp::Ordering::Less
                } else {
                    std::cmp::Ordering::Greater
                };
                let better = |best: &Vec<u8>| self.cql_type.compare(value, best) == wanted;
                if self.best.as_ref().is_none_or(better) {
                    self.best = Some(value.to_vec());
                }
            }
            Aggregate::Sum | Aggregate::Avg if value.is_empty() => return,
            Aggregate::Sum | Aggregate::Avg => self.add_number(value),
            Aggregate::Count | Aggregate::CountRows => {}
        }
        self.count += 1;
    }

    fn add_number(&mut self, value: &[u8]) {
        match &self.cql_type {
            CqlType::Float | CqlType::Double => {
                self.float.add(number::to_f64(&self.cql_type, value));
                if self.aggregate == Aggregate::Avg {
                    let exact = number::to_decimal(&self.cql_type, value);
                    self.decimal = self.decimal.add(&exact.unwrap_or_else(Decimal::zero));
                }
            }
            CqlType::Decimal => {
                let value = number::to_decimal(&self.cql_type, value).unwrap_or_else(Decimal::zero);
                self.decimal = if self.aggregate == Aggregate::Avg {
                    average_step(&self.decimal, &value, self.count + 1)
                } else {
                    self.decimal.add(&value)
                };
            }
            _ => self.exact += number::to_integer(&self.cql_type, value),
        }
    }

    /// Bytes of what it keeps of values that may be large.
    pub(super) fn memory(&self) -> usize {
        let best = self.best.as_ref().map_or(0, Vec::len);
        best + self.exact.bits() as usize / 8
    }

    /// `None` is null.
    pub(super) fn result(&self) -> Option<Vec<u8>> {
        match self.aggregate {
            Aggregate::CountRows | Aggregate::Count => Some(self.count.to_be_bytes().to_vec()),
            Aggregate::Min | Aggregate::Max => self.best.clone(),
            Aggregate::Sum => Some(match &self.cql_type {
                CqlType::Float | CqlType::Double => {
                    number::of_f64(&self.returns, self.float.total())
                }
                CqlType::Decimal => self.decimal.to_bytes(),
                _ => number::of_integer(&self.returns, &self.exact),
            }),
            Aggregate::Avg => Some(self.average()),
        }
    }

    fn average(&self) -> Vec<u8> {
        match &self.cql_type {
            CqlType::Float | CqlType::Double => {
                let total = self.float.total();
                let average = if self.count == 0 {
                    0.0
                } else if total.is_finite() || self.float.has_special {
                    total / self.count as f64
                } else {
                    // The sum is too great for a double, not the average.
                    number::quotient(&self.decimal, self.count)
                };
                number::of_f64(&self.returns, average)
            }
            CqlType::Decimal => self.decimal.to_bytes(),
            _ if self.count == 0 => number::of_integer(&self.returns, &BigInt::ZERO),
            _ => number::of_integer(&self.returns, &(&self.exact / BigInt::from(self.count))),
        }
    }
}
