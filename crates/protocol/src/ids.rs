//! The MD5 digests by which client and server name a prepared statement and the columns of its result.

use md5::{Digest, Md5};

use crate::Column;

/// Of the text, after the keyspace in force if the statement's meaning depends on it.
pub fn statement_id(text: &str, keyspace: Option<&str>) -> [u8; 16] {
    let mut digest = Md5::new();
    digest.update(keyspace.unwrap_or_default());
    digest.update(text);
    digest.finalize().into()
}

/// `ResultSet.computeResultMetadataId`; a statement without a result set has that of no columns.
/// Types count as the schema spells them, `Reversed` and `Frozen` included.
pub fn result_metadata_id<'a>(columns: impl IntoIterator<Item = Column<'a>>) -> [u8; 16] {
    let mut digest = Md5::new();
    for column in columns {
        digest.update(column.name);
        digest.update([0]);
        digest.update(column.cql_type.to_string());
        digest.update([0, 0]);
    }
    digest.finalize().into()
}
