//! Everything that is text: transaction logs, type names, schemas.

use halcyon_compaction::txn_log::{Log, is_log_name};
use halcyon_model::CqlType;
use halcyon_schema::Schema;

pub fn txn_log(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    is_log_name(&text);
    if let Ok(log) = Log::parse(&text) {
        let again: String = log.records.iter().map(|record| record.to_line()).collect();
        assert_eq!(Log::parse(&again).map(|log| log.records), Ok(log.records));
    }
    // Two replicas, wherever the text is parted.
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (one, two) = text.split_at(middle);
    let _ = Log::merge(&[one, two]);
    let whole = Log::merge(&[&text, &text]);
    assert_eq!(whole.is_ok(), Log::parse(&text).is_ok());
}

pub fn cql_type(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(parsed) = CqlType::parse(&text) {
        parsed.cql_name();
        parsed.fixed_len();
    }
}

pub fn schema(bytes: &[u8]) {
    let _ = Schema::parse(&String::from_utf8_lossy(bytes), "ks");
}
