//! A read as Cassandra's warnings spell it (`ReadCommand.toCQLString`).

use halcyon_cql::plan::restrictions::{BoundFilter, BoundKeys, Test, TokenBounds};
use halcyon_cql::plan::select::{BoundSelect, NO_LIMIT};
use halcyon_model::token::split_key;
use halcyon_model::value::to_cql_literal;
use halcyon_schema::catalog::Table;
use halcyon_stream::PartitionKey;

/// The read of a key, if the statement names keys, or of its range.
pub fn command(select: &BoundSelect, key: &[u8]) -> String {
    let schema = &select.plan.table.schema;
    let mut text = format!("SELECT * FROM {}.{}", schema.keyspace, schema.name);
    let mut tests = of_keys(select, key);
    tests.extend(select.filters.iter().flat_map(|(_, filter)| of_filter(filter, select)));
    if !tests.is_empty() {
        text.push_str(&format!(" WHERE {}", tests.join(" AND ")));
    }
    if select.plan.reversed
        && let Some(column) = schema.clustering.first()
    {
        text.push_str(&format!(" ORDER BY {} DESC", column.name));
    }
    if select.plan.is_aggregate() {
        text.push(' ');
    } else if select.limits.rows != NO_LIMIT {
        text.push_str(&format!(" LIMIT {}", select.limits.rows));
    }
    text.push_str(" ALLOW FILTERING");
    text
}

fn of_keys(select: &BoundSelect, key: &[u8]) -> Vec<String> {
    let schema = &select.plan.table.schema;
    match &select.keys {
        Some(BoundKeys::Partitions(_)) => {
            let parts = split_key(key, schema.partition_key.len());
            let columns = schema.partition_key.iter().zip(parts.into_iter().flatten());
            let equal = columns.map(|(column, part)| {
                format!("{} = {}", column.name, to_cql_literal(&column.cql_type, part))
            });
            equal.collect()
        }
        Some(BoundKeys::Range(TokenBounds { start, end })) => {
            let names = schema.partition_key.iter().map(|column| column.name.as_str());
            let token = format!("token({})", names.collect::<Vec<_>>().join(", "));
            let sides = [(start, ">"), (end, "<")];
            let bounds = sides.iter().filter_map(|(bound, sign)| Some((bound.as_ref()?, sign)));
            let bounds = bounds.map(|((at, included), sign)| {
                format!("{token} {sign}{} {at}", if *included { "=" } else { "" })
            });
            bounds.collect()
        }
        None => Vec::new(),
    }
}

fn of_filter(filter: &BoundFilter, select: &BoundSelect) -> Vec<String> {
    let table: &Table = &select.plan.table;
    let Some(column) = table.column(filter.column) else { return Vec::new() };
    let (name, cql_type) = (&column.name, &column.cql_type);
    let literal = |bytes: &Vec<u8>| to_cql_literal(cql_type, bytes);
    match &filter.test {
        Test::Same(value) => vec![format!("{name} = {}", literal(value))],
        Test::Between { start, end } => {
            let sides = [(start, ">"), (end, "<")];
            let bounds = sides.iter().filter_map(|(bound, sign)| Some((bound.as_ref()?, sign)));
            let bounds = bounds.map(|((value, included), sign)| {
                format!("{name} {sign}{} {}", if *included { "=" } else { "" }, literal(value))
            });
            bounds.collect()
        }
        Test::In(values) => {
            let values: Vec<String> = values.iter().map(literal).collect();
            vec![match &values[..] {
                [one] => format!("{name} = {one}"),
                all => format!("{name} IN ({})", all.join(", ")),
            }]
        }
        // Of these, the values are of another type than the column.
        Test::Contains(_) => vec![format!("{name} CONTAINS ?")],
        Test::ContainsKey(_) => vec![format!("{name} CONTAINS KEY ?")],
        Test::Entry(..) => vec![format!("{name}[?] = ?")],
        Test::Terms(..) => vec![format!("{name} LIKE ?")],
    }
}

/// The tokens of a read as messages of one command end with them.
pub fn tokens(select: &BoundSelect, key: &[u8]) -> String {
    match &select.keys {
        Some(BoundKeys::Range(bounds)) => {
            let [start, end] = ends(bounds);
            format!("token range: ({start}, {end}]")
        }
        _ => format!("token={}", PartitionKey::of(key).token),
    }
}

/// The tokens of all that a statement reads.
pub(crate) fn all_tokens(select: &BoundSelect) -> String {
    match &select.keys {
        None => "tokens: []".to_owned(),
        Some(BoundKeys::Partitions(keys)) => {
            let tokens: Vec<String> = keys.iter().map(|key| key.token.to_string()).collect();
            match &tokens[..] {
                [one] => format!("token: {one}"),
                all => format!("tokens: [{}]", all.join(", ")),
            }
        }
        Some(BoundKeys::Range(bounds)) => {
            let [start, end] = ends(bounds);
            // Cassandra shows only the whole ring as open at its end.
            let closing = if (start, end) == (i64::MIN, i64::MIN) { ')' } else { ']' };
            format!("token range: ({start}, {end}{closing}")
        }
    }
}

fn ends(bounds: &TokenBounds) -> [i64; 2] {
    [bounds.start, bounds.end].map(|bound| bound.map_or(i64::MIN, |(token, _)| token))
}
