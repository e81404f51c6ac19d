//! The ids of prepared statements and of their result metadata: MD5 digests, the same as Cassandra's.

use halcyon_model::request::ColumnSpec;
use md5::{Digest, Md5};

/// The digest of the text; preceded by the session's keyspace if the statement depends on it.
pub fn statement_id(text: &str, keyspace: Option<&str>) -> [u8; 16] {
    let mut digest = Md5::new();
    digest.update(keyspace.unwrap_or_default());
    digest.update(text);
    digest.finalize().into()
}

/// `ResultSet.computeResultMetadataId`; a statement without a result set has the id of zero columns.
/// Types enter in the schema's spelling, with `Reversed` and `Frozen`.
pub fn result_metadata_id<'a>(columns: impl IntoIterator<Item = &'a ColumnSpec>) -> [u8; 16] {
    let mut digest = Md5::new();
    for column in columns {
        digest.update(&column.name);
        digest.update([0]);
        digest.update(column.cql_type.to_string());
        digest.update([0, 0]);
    }
    digest.finalize().into()
}
