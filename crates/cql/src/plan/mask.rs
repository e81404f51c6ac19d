//! The mask of a column: its function is found as that of a call whose first argument is the column.

use halcyon_model::CqlType;
use halcyon_model::value::to_string;

use super::execution::Work;
use super::functions::{self, Argument, Body, Match, Scalar, Scope, type_matches};
use super::term::{Inference, RawArgument, constant};
use halcyon_schema::catalog::Catalog;
use halcyon_schema::mask::{ColumnMask, MaskedColumn};
use halcyon_syntax::ast::{MaskText, QualifiedName};
use halcyon_syntax::lexer::Location;
use halcyon_syntax::{Error, Result};

/// The value of a column, of which only the type is known.
struct OfType<'a>(&'a CqlType);

impl Argument for OfType<'_> {
    fn matches(&self, receiver: &CqlType) -> Result<Match> {
        Ok(type_matches(self.0, receiver))
    }

    fn exact_type(&self) -> Result<Option<CqlType>> {
        Ok(Some(self.0.clone()))
    }

    /// Cassandra shows the class.
    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// What `MASKED WITH` means for a column (`ColumnMask.Raw.prepare`).
pub fn column_mask(
    catalog: &Catalog,
    column: MaskedColumn<'_>,
    mask: &MaskText,
    work: &Work<'_>,
) -> Result<ColumnMask> {
    let MaskedColumn { keyspace, table, name, cql_type } = column;
    let refused = |message: String| Err(Error::InvalidRequest(message));
    let inference = Inference::new(catalog, keyspace, work);
    let value = OfType(cql_type);
    let given = mask.arguments.iter().map(|raw| RawArgument { raw, inference: &inference });
    let given: Vec<RawArgument<'_, '_>> = given.collect();
    let given = given.iter().map(|argument| argument as &dyn Argument);
    let arguments: Vec<&dyn Argument> =
        [&value as &dyn Argument].into_iter().chain(given).collect();
    let scope = Scope { catalog, keyspace, table: None, work };
    let Some(function) = functions::resolve(&mask.function, &arguments, &scope, Some(cql_type))?
    else {
        return refused(format!(
            "Unable to find masking function for {name}, no declared function matches the signature {mask}"
        ));
    };
    if function.is_aggregate() {
        return refused(format!(
            "Aggregate function {mask} cannot be used for masking table columns"
        ));
    }
    if !matches!(function.body, Body::Scalar(Scalar::Mask(_)) | Body::User(_)) {
        return refused(format!(
            "Not-masking function {mask} cannot be used for masking table columns"
        ));
    }
    if function.is_user_defined() && function.keyspace != keyspace {
        return refused(format!(
            "Masking function {mask} doesn't belong to the same keyspace as the table {keyspace}.{table}"
        ));
    }
    let (returns, expected) = (function.returns.cql_name(), cql_type.cql_name());
    if returns != expected {
        return refused(format!(
            "Masking function {mask} return type is {returns}. This is different to the type of the masked column {name} of type \
             {expected}. Masking functions can only be attached to table columns if they return the same data type as the masked \
             column."
        ));
    }
    let types = function.arguments.iter().skip(1);
    let value = |(raw, of): (_, &CqlType)| {
        let value = constant(catalog, keyspace, raw, of, work)?;
        Ok((of.clone(), value.map(|value| to_string(of, &value))))
    };
    Ok(ColumnMask {
        keyspace: function.keyspace,
        function: function.name,
        arguments: mask.arguments.iter().zip(types).map(value).collect::<Result<_>>()?,
    })
}

/// The function of a column's mask, as a statement calls it.
pub(super) fn mask_function(
    catalog: &Catalog,
    keyspace: &str,
    cql_type: &CqlType,
    mask: &ColumnMask,
    work: &Work<'_>,
) -> Result<functions::Function> {
    let location = Location { line: 1, column: 0 };
    let name = QualifiedName {
        location,
        keyspace: Some(mask.keyspace.clone()),
        name: mask.function.clone(),
    };
    let types = [cql_type].into_iter().chain(mask.arguments.iter().map(|(of, _)| of));
    let arguments: Vec<OfType<'_>> = types.map(OfType).collect();
    let arguments: Vec<&dyn Argument> = arguments.iter().map(|of| of as &dyn Argument).collect();
    let scope = Scope { catalog, keyspace, table: None, work };
    let function = functions::resolve(&name, &arguments, &scope, Some(cql_type))?;
    // Without its function nothing may be shown.
    function
        .ok_or_else(|| Error::InvalidRequest(format!("the masking function {mask} does not exist")))
}
