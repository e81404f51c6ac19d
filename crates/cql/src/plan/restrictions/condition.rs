//! What is asked of a column's value: keys and slices cannot select it. A null never satisfies.

use halcyon_model::analysis::{Analyzer, Matching, Sasi, TextAnalysis};
use halcyon_model::{CqlType, Cursor};

use crate::plan::execution::Work;
use crate::plan::value::composed::are_equal_objects;
use halcyon_schema::catalog::ColumnRef;
use halcyon_syntax::Result;

/// Units of work for a byte that is analysed, and for a term that is compared.
pub(super) const ANALYSED: u64 = 20;
const COMPARED: u64 = 10;

/// A condition on a column's value (of a collection, on its frozen form).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// These very bytes.
    Same(Vec<u8>),
    In(Vec<Vec<u8>>),
    /// Bounds with whether they are included.
    Between {
        start: Option<(Vec<u8>, bool)>,
        end: Option<(Vec<u8>, bool)>,
    },
    Contains(Vec<u8>),
    ContainsKey(Vec<u8>),
    Entry(Vec<u8>, Vec<u8>),
    /// By the terms of a SASI index: all of these have to be among the value's.
    Terms(Sasi, Matching, Vec<Vec<u8>>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundFilter {
    pub column: ColumnRef,
    pub cql_type: CqlType,
    pub test: Test,
    /// By which texts are compared.
    pub analysis: Option<TextAnalysis>,
}

impl BoundFilter {
    /// Whether a value satisfies; it must be one of the column's type.
    pub fn accepts(&self, value: Option<&[u8]>, work: &Work<'_>) -> Result<bool> {
        let Some(value) = value else { return Ok(false) };
        if let Test::Terms(sasi, how, asked) = &self.test {
            return self.has_terms(value, (sasi, *how, asked), work);
        }
        if self.analysis.is_some() {
            let compared = if let Test::In(values) = &self.test { values.len() } else { 1 };
            work.spend_on(value.len(), ANALYSED.saturating_mul(compared as u64))?;
        }
        Ok(self.is_accepted(value))
    }

    fn is_accepted(&self, value: &[u8]) -> bool {
        match &self.test {
            Test::Same(wanted) => value == wanted,
            Test::In(values) if self.analysis.is_some() => {
                values.iter().any(|other| self.is_same(value, other))
            }
            Test::In(values) => {
                values.iter().any(|other| self.cql_type.compare(value, other).is_eq())
            }
            Test::Between { start, end } => {
                let above = start.as_ref().is_none_or(|(start, inclusive)| {
                    let order = self.cql_type.compare(value, start);
                    order.is_gt() || (*inclusive && order.is_eq())
                });
                let below = end.as_ref().is_none_or(|(end, inclusive)| {
                    let order = self.cql_type.compare(value, end);
                    order.is_lt() || (*inclusive && order.is_eq())
                });
                above && below
            }
            Test::Contains(wanted) => {
                self.any_element(value, |_, element| self.is_element(element, wanted))
            }
            Test::ContainsKey(wanted) => self.any_element(value, |key, _| self.is_key(key, wanted)),
            Test::Entry(key, wanted) => self.any_element(value, |other, element| {
                self.is_key(other, key) && self.is_element(element, wanted)
            }),
            Test::Terms(..) => false,
        }
    }

    /// Whether all that is asked for is among the terms of a value.
    fn has_terms(
        &self,
        value: &[u8],
        (sasi, how, asked): (&Sasi, Matching, &[Vec<u8>]),
        work: &Work<'_>,
    ) -> Result<bool> {
        if sasi.analyzer != Analyzer::Whole {
            work.spend_on(value.len(), ANALYSED)?;
        }
        let mut missing: Vec<&Vec<u8>> = asked.iter().collect();
        let mut spent = Ok(());
        sasi.each_term(value, |term| {
            spent = work.spend_on(missing.len(), COMPARED + term.len() as u64 / COMPARED);
            if spent.is_ok() {
                missing.retain(|asked| !how.accepts(&self.cql_type, term, asked));
            }
            spent.is_ok() && !missing.is_empty()
        });
        spent.map(|()| missing.is_empty() && !asked.is_empty())
    }

    /// Whether no value satisfies: what is asked for has no words.
    pub fn is_never(&self) -> bool {
        matches!(&self.test, Test::Terms(_, _, asked) if asked.is_empty())
    }

    fn is_same(&self, value: &[u8], wanted: &[u8]) -> bool {
        match self.analysis {
            None => value == wanted,
            Some(analysis) => analysis.apply(value) == analysis.apply(wanted),
        }
    }

    fn is_key(&self, key: &[u8], wanted: &[u8]) -> bool {
        match self.cql_type.thawed() {
            CqlType::Map(of, _) if self.analysis.is_none() => of.compare(key, wanted).is_eq(),
            _ => self.is_same(key, wanted),
        }
    }

    /// Cells are compared by their type, the elements of a frozen collection as objects.
    fn is_element(&self, element: &[u8], wanted: &[u8]) -> bool {
        match self.cql_type.thawed() {
            CqlType::List(of) | CqlType::Set(of) | CqlType::Map(_, of)
                if self.analysis.is_none() =>
            {
                match self.cql_type.is_multi_cell() {
                    true => of.compare(element, wanted).is_eq(),
                    false => are_equal_objects(of, element, wanted),
                }
            }
            _ => self.is_same(element, wanted),
        }
    }

    /// Whether an element (of a map, with its key) satisfies the condition.
    fn any_element(&self, collection: &[u8], asked: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        debug_assert!(is_collection(&self.cql_type));
        let is_map = matches!(self.cql_type.thawed(), CqlType::Map(..));
        let mut cursor = Cursor::new(collection);
        let Ok(count) = cursor.i32() else { return false };
        for _ in 0..count {
            let key = if is_map { cursor.ibytes().ok() } else { Some(&[] as &[u8]) };
            let (Some(key), Ok(element)) = (key, cursor.ibytes()) else { return false };
            if asked(key, element) {
                return true;
            }
        }
        false
    }
}

/// Whether a filter on this type can be a comparison of values.
fn is_collection(cql_type: &CqlType) -> bool {
    matches!(cql_type.thawed(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
}
