//! Values as CQL terms, also where Cassandra could not parse its own literals.

use halcyon_model::CqlType;
use halcyon_model::value::to_cql_literal;

/// The term of a value. An empty value of a type without an empty literal is a cast of an empty blob.
pub(super) fn literal(cql_type: &CqlType, value: &[u8]) -> String {
    let thawed = cql_type.thawed();
    let has_empty = matches!(thawed, CqlType::Text | CqlType::Ascii | CqlType::Blob);
    if value.is_empty() && !has_empty {
        return match thawed.native_name() {
            Some(name) => format!("blobAs{}(0x)", capitalised(name)),
            None => "null".to_owned(),
        };
    }
    match to_cql_literal(cql_type, value) {
        // Cassandra prints a zero duration as an empty text, which it cannot parse.
        nothing if nothing.is_empty() => "0s".to_owned(),
        term => term,
    }
}

fn capitalised(name: &str) -> String {
    let (first, rest) = name.split_at(1.min(name.len()));
    first.to_ascii_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_can_be_said() {
        assert_eq!(literal(&CqlType::Int, &[0, 0, 0, 7]), "7");
        assert_eq!(literal(&CqlType::Int, &[]), "blobAsInt(0x)");
        assert_eq!(literal(&CqlType::Reversed(Box::new(CqlType::Uuid)), &[]), "blobAsUuid(0x)");
        assert_eq!(literal(&CqlType::Text, &[]), "''");
        assert_eq!(literal(&CqlType::Blob, &[]), "0x");
        assert_eq!(literal(&CqlType::Duration, &[0, 0, 0]), "0s");
    }
}
