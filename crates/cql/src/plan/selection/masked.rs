//! A selection as clients see it that may not see what is masked: each masked column is an argument of its mask.

use halcyon_model::CqlType;
use halcyon_model::value::from_string;
use halcyon_schema::catalog::{Catalog, Table};
use halcyon_schema::mask::ColumnMask;
use halcyon_syntax::{Error, Result};

use super::terms::Usage;
use super::{Selection, SelectionTerm, Selector};
use crate::plan::execution::{Given, Work};
use crate::plan::functions::Function;
use crate::plan::mask::mask_function;
use crate::plan::term::Term;

/// The mask of a fetched column.
struct Masking {
    function: Function,
    /// Indexes of its further arguments.
    terms: Vec<usize>,
}

impl Selection {
    /// The same, masked. Times of cells are not values: they stay.
    pub fn masked(&self, table: &Table, catalog: &Catalog, work: &Work<'_>) -> Result<Selection> {
        let mut masked = self.clone();
        let mut maskings = Vec::with_capacity(self.fetch.len());
        for fetch in &self.fetch {
            let column = table.column(fetch.column);
            let mask = column.and_then(|column| table.masks.get(&column.name));
            maskings.push(match column.zip(mask) {
                Some((column, mask)) => {
                    let keyspace = &table.schema.keyspace;
                    let function = mask_function(catalog, keyspace, &column.cql_type, mask, work)?;
                    let terms = masked.add_terms(mask)?;
                    Some(Masking { function, terms })
                }
                None => None,
            });
        }
        for selector in &mut masked.selectors {
            selector.mask(&maskings);
        }
        for selector in masked.aggregates.iter_mut().flat_map(|call| &mut call.arguments) {
            selector.mask(&maskings);
        }
        Ok(masked)
    }

    fn add_terms(&mut self, mask: &ColumnMask) -> Result<Vec<usize>> {
        let mut indexes = Vec::with_capacity(mask.arguments.len());
        for (cql_type, text) in &mask.arguments {
            indexes.push(self.terms.len());
            self.terms.push(SelectionTerm { term: constant(cql_type, text)?, usage: Usage::Value });
        }
        Ok(indexes)
    }
}

fn constant(cql_type: &CqlType, text: &Option<String>) -> Result<Term> {
    let damaged = |e| Error::InvalidRequest(format!("the arguments of a mask cannot be read: {e}"));
    let given = match text {
        Some(text) => Given::Value(from_string(cql_type, text).map_err(damaged)?),
        None => Given::Null,
    };
    Ok(Term::given(given, false))
}

impl Selector {
    fn mask(&mut self, maskings: &[Option<Masking>]) {
        match self {
            Selector::Column(fetch) => {
                if let Some(Some(masking)) = maskings.get(*fetch) {
                    let terms = masking.terms.iter().map(|index| Selector::Term(*index));
                    let arguments = [Selector::Column(*fetch)].into_iter().chain(terms).collect();
                    *self = Selector::Call { function: masking.function.clone(), arguments };
                }
            }
            Selector::Element { of, .. }
            | Selector::Slice { of, .. }
            | Selector::Field { of, .. } => of.mask(maskings),
            Selector::Call { arguments: items, .. }
            | Selector::Collection { items, .. }
            | Selector::Tuple(items) => items.iter_mut().for_each(|item| item.mask(maskings)),
            Selector::Time { .. } | Selector::Term(_) | Selector::Aggregate(_) => {}
        }
    }
}
