//! A term outside of a statement on a table: the first state of an aggregate.

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_model::uuid;

use super::{Preparation, Term};
use crate::plan::execution::{Execution, Work};
use crate::plan::metadata::Variables;
use halcyon_schema::catalog::Catalog;
use halcyon_syntax::ast::RawTerm;
use halcyon_syntax::{Error, Result};

/// The value of a term without bind markers (`Terms.asBytes`); `None`: null.
pub fn constant(
    catalog: &Catalog,
    keyspace: &str,
    term: &RawTerm,
    to: &CqlType,
    work: &Work<'_>,
) -> Result<Option<Vec<u8>>> {
    let mut variables = Variables::default();
    let receiver = ColumnSpec {
        keyspace: keyspace.to_owned(),
        table: "--dummy--".to_owned(),
        name: "(dummy)".to_owned(),
        cql_type: to.clone().freeze(),
    };
    let preparation = &mut Preparation::new(catalog, keyspace, &mut variables, work);
    let prepared = Term::prepare(term, &receiver, preparation)?;
    if !variables.specs.is_empty() {
        return Err(Error::invalid_request("Invalid use of a bind marker in a constant"));
    }
    let uuids = uuid::Generator::seeded(0);
    let execution = Execution::of_constants(&uuids, work);
    Ok(prepared.bind(&execution)?.bytes().map(<[u8]>::to_vec))
}
