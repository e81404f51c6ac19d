//! What may be storage-attached: `StorageAttachedIndex.validateOptions`.

use halcyon_model::CqlType;
use halcyon_model::options::{Entries, hash_order, literal};

use super::context::invalid;
use crate::catalog::Table;
use crate::index::{CLASS_NAME, Index, IndexKind, IndexPart, TARGET};
use halcyon_syntax::{Error, Result};

const ANALYSIS: [&str; 3] = ["case_sensitive", "normalize", "ascii"];
const NODE_CONNECTIONS: &str = "maximum_node_connections";
const BEAM_WIDTH: &str = "construction_beam_width";
const SIMILARITY: &str = "similarity_function";
const OPTIMIZE_FOR: &str = "optimize_for";

const VECTOR_WARNING: &str = "SAI ANN indexes on vector columns are experimental and are not recommended for production use.\n\
They don't yet support SELECT queries with:\n \
* Consistency level higher than ONE/LOCAL_ONE.\n \
* Paging.\n \
* No LIMIT clauses.\n \
* PER PARTITION LIMIT clauses.\n \
* GROUP BY clauses.\n \
* Aggregation functions.\n \
* Filters on columns without a SAI index.";

pub(super) fn check(index: &Index, table: &Table) -> Result<()> {
    let is_same = |other: &&Index| {
        other.kind == IndexKind::Sai && other.column == index.column && other.part == index.part
    };
    if table.indexes.iter().any(|other| is_same(&other)) {
        let what = "Cannot create more than one storage-attached index on the same column";
        return Err(invalid(format!("{what}: {}", index.column)));
    }
    check_names(&index.options)?;
    let target = index.options.get(TARGET).map_or("", String::as_str);
    if target.contains(',') {
        let what = "A storage-attached index cannot be created over multiple columns";
        return Err(invalid(format!("{what}: {target}")));
    }
    let Some((at, column)) =
        table.indexed_column(index).and_then(|at| Some((at, table.column(at)?)))
    else {
        return Err(invalid(format!("Failed to retrieve target column for: {target}")));
    };
    let analysis = index.options.iter().filter(|(name, _)| ANALYSIS.contains(&name.as_str()));
    let analysis: Entries = analysis.map(|(name, value)| (name.clone(), value.clone())).collect();
    if at.kind.is_key() && !analysis.is_empty() {
        let pair =
            |(name, value): (&String, &String)| format!("{}: {}", literal(name), literal(value));
        let pairs: Vec<String> = analysis.iter().map(pair).collect();
        return Err(invalid(format!(
            "Analysis options are not supported on primary key columns, but found {{{}}}",
            pairs.join(", ")
        )));
    }
    let term_type = index.term_type(&column.cql_type);
    check_analysis(&term_type, &analysis)?;
    check_vector_options(&term_type, &index.options)?;
    check_type(index, &term_type)
}

/// Once for each index on vectors, each time when a table is validated.
pub(super) fn warnings(table: &Table) -> impl Iterator<Item = String> {
    let is_vector = |index: &&Index| {
        index.kind == IndexKind::Sai
            && table.term_type(index).is_some_and(|term| matches!(term, CqlType::Vector(..)))
    };
    table.indexes.iter().filter(is_vector).map(|_| VECTOR_WARNING.to_owned())
}

fn check_names(options: &Entries) -> Result<()> {
    const KNOWN: [&str; 6] =
        [TARGET, CLASS_NAME, NODE_CONNECTIONS, BEAM_WIDTH, SIMILARITY, OPTIMIZE_FOR];
    let is_known = |name: &&str| KNOWN.contains(name) || ANALYSIS.contains(name);
    let mut unknown: Vec<&str> =
        options.keys().map(String::as_str).filter(|name| !is_known(name)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    // Of a HashMap that grows with its entries, not of a copy: three entries fit four slots.
    let count = unknown.len();
    hash_order(&mut unknown, if count.is_multiple_of(3) { count - 1 } else { count });
    Err(Error::Configuration(format!(
        "Properties specified [{}] are not understood by StorageAttachedIndex",
        unknown.join(", ")
    )))
}

fn check_analysis(term: &CqlType, options: &Entries) -> Result<()> {
    if options.is_empty() {
        return Ok(());
    }
    if !matches!(term, CqlType::Ascii | CqlType::Text) {
        return Err(invalid(format!("CQL type {} cannot be analyzed.", term.cql_name())));
    }
    let mut names: Vec<&str> = options.keys().map(String::as_str).collect();
    hash_order(&mut names, 11);
    for name in names {
        let value = options.get(name).map_or("", String::as_str);
        if value.is_empty() {
            return Err(invalid(format!("Empty value for boolean option '{name}'")));
        }
        if !["true", "false"].iter().any(|known| value.eq_ignore_ascii_case(known)) {
            return Err(invalid(format!("Illegal value for boolean option '{name}': {value}")));
        }
    }
    Ok(())
}

fn check_vector_options(term: &CqlType, options: &Entries) -> Result<()> {
    let names = [NODE_CONNECTIONS, BEAM_WIDTH, SIMILARITY, OPTIMIZE_FOR];
    if !names.iter().any(|name| options.contains_key(*name)) {
        return Ok(());
    }
    if !matches!(term, CqlType::Vector(..)) {
        return Err(invalid(format!("CQL type {} cannot have vector options", term.cql_name())));
    }
    for (name, what) in
        [(NODE_CONNECTIONS, "Maximum node connections"), (BEAM_WIDTH, "Construction beam width")]
    {
        if options.contains_key(name) {
            return Err(invalid(format!(
                "{what} cannot be set without enabling SAI_VECTOR_ALLOW_CUSTOM_PARAMETERS"
            )));
        }
    }
    let upper = |name: &str| options.get(name).map(|value| value.to_uppercase());
    let functions = ["EUCLIDEAN", "DOT_PRODUCT", "COSINE"];
    if let Some(function) = upper(SIMILARITY).filter(|name| !functions.contains(&name.as_str())) {
        return Err(invalid(format!(
            "Similarity function {function} was not recognized for index null. Valid values are: {}",
            functions.join(", ")
        )));
    }
    let goals = ["LATENCY", "RECALL"];
    match upper(OPTIMIZE_FOR).filter(|name| !goals.contains(&name.as_str())) {
        None => Ok(()),
        Some(goal) => Err(invalid(format!(
            "optimize_for '{goal}' was not recognized for index null. Valid values are: {}",
            goals.join(", ")
        ))),
    }
}

/// Which values an index can order.
fn check_type(index: &Index, term: &CqlType) -> Result<()> {
    let entry = match term {
        CqlType::Composite(parts) if index.part == IndexPart::Entries => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    if let Some(unsupported) = entry.iter().find(|term| !is_supported(term)) {
        return Err(invalid(format!("Unsupported type: {}", unsupported.cql_name())));
    }
    let CqlType::Vector(element, dimension) = term else { return Ok(()) };
    if **element != CqlType::Float {
        let what = "SAI ANN indexes are only allowed on vector columns with float elements";
        return Err(Error::invalid_request(what));
    }
    let function = index.options.get(SIMILARITY).map_or("COSINE", String::as_str);
    if *dimension == 1 && function.eq_ignore_ascii_case("COSINE") {
        let what = "Cosine similarity is not supported for single-dimension vectors";
        return Err(Error::invalid_request(what));
    }
    Ok(())
}

fn is_supported(term: &CqlType) -> bool {
    match term {
        CqlType::Ascii
        | CqlType::BigInt
        | CqlType::Date
        | CqlType::Double
        | CqlType::Float
        | CqlType::Int
        | CqlType::SmallInt
        | CqlType::Text
        | CqlType::Time
        | CqlType::Timestamp
        | CqlType::TimeUuid
        | CqlType::TinyInt
        | CqlType::Uuid
        | CqlType::Inet
        | CqlType::Varint
        | CqlType::Decimal
        | CqlType::Boolean => true,
        // What is frozen is compared as bytes.
        other => !other.is_multi_cell() && !other.children().is_empty(),
    }
}
