//! What SASI may index: `SASIIndex.validateOptions`.

use halcyon_model::analysis::{Sasi, SasiRefusal};
use halcyon_model::schema::ColumnKind;

use crate::catalog::Table;
use crate::index::{Index, TARGET};
use halcyon_syntax::{Error, Result};

pub(super) const USAGE_WARNING: &str =
    "SASI indexes are experimental and are not recommended for production use.";

pub(super) fn check(index: &Index, table: &Table) -> Result<()> {
    let refused = |what: String| Err(Error::Configuration(what));
    let Some((at, column)) =
        table.indexed_column(index).and_then(|at| Some((at, table.column(at)?)))
    else {
        let target = index.options.get(TARGET).map_or("", String::as_str);
        return refused(format!("failed to retrieve target column for: {target}"));
    };
    if column.cql_type.is_multi_cell() {
        return refused("complex columns are not yet supported by SASI".to_owned());
    }
    if at.kind == ColumnKind::PartitionKey {
        return refused("partition key columns are not yet supported by SASI".to_owned());
    }
    match Sasi::of_options(&index.options, &column.cql_type) {
        Ok(_) => Ok(()),
        Err(SasiRefusal::Invalid(what)) => refused(what),
        Err(SasiRefusal::Unusable(what)) => Err(Error::InvalidRequest(what)),
        Err(SasiRefusal::NotSupported(what)) => Err(Error::NotSupportedYet(what)),
    }
}
