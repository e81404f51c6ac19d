//! RESULT messages with columns: rows, and the answer to PREPARE.

use halcyon_model::request::ColumnSpec;

use crate::{Version, options, write};

const GLOBAL_TABLES_SPEC: i32 = 0x0001;
const HAS_MORE_PAGES: i32 = 0x0002;
const NO_METADATA: i32 = 0x0004;
const METADATA_CHANGED: i32 = 0x0008;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowsMetadata<'a> {
    pub columns: &'a [ColumnSpec],
    /// `None` on the last page.
    pub paging_state: Option<&'a [u8]>,
    /// The client has the columns cached: they are not sent. Never together with `changed`.
    pub skip: bool,
    /// v5: the new metadata id, if the client's cached columns are out of date.
    pub changed: Option<[u8; 16]>,
}

/// One page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows<'a> {
    pub metadata: RowsMetadata<'a>,
    pub count: u32,
    /// The values by row, then column, each a [bytes].
    pub content: &'a [u8],
}

/// The bind markers of a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PreparedMetadata<'a> {
    pub columns: &'a [ColumnSpec],
    /// The marker of each partition key column; empty unless all have one. Sent since v4, if all markers belong to one table.
    pub partition_key: &'a [u16],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared<'a> {
    pub id: &'a [u8],
    /// Sent since v5.
    pub result_metadata_id: [u8; 16],
    pub variables: PreparedMetadata<'a>,
    /// Empty without a result set.
    pub columns: &'a [ColumnSpec],
}

fn same_table(columns: &[ColumnSpec]) -> bool {
    columns.first().is_some_and(|first| {
        columns.iter().all(|c| c.keyspace == first.keyspace && c.table == first.table)
    })
}

fn put_columns(out: &mut Vec<u8>, columns: &[ColumnSpec], global: bool, version: Version) {
    if let (true, Some(first)) = (global, columns.first()) {
        write::string(out, &first.keyspace);
        write::string(out, &first.table);
    }
    for column in columns {
        if !global {
            write::string(out, &column.keyspace);
            write::string(out, &column.table);
        }
        write::string(out, &column.name);
        options::encode(out, &column.cql_type, version);
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    write::int(out, i32::try_from(count).unwrap_or(i32::MAX));
}

pub(crate) fn encode_metadata(out: &mut Vec<u8>, metadata: &RowsMetadata<'_>, version: Version) {
    let global = same_table(metadata.columns);
    let changed = metadata.changed.filter(|_| version >= Version::V5);
    let skip = metadata.skip && changed.is_none();
    let flag = |set: bool, flag: i32| if set { flag } else { 0 };
    let flags = flag(global, GLOBAL_TABLES_SPEC)
        | flag(metadata.paging_state.is_some(), HAS_MORE_PAGES)
        | flag(skip, NO_METADATA)
        | flag(changed.is_some(), METADATA_CHANGED);
    write::int(out, flags);
    put_count(out, metadata.columns.len());
    if let Some(state) = metadata.paging_state {
        write::bytes(out, Some(state));
    }
    if let Some(id) = changed {
        write::short_bytes(out, &id);
    }
    if !skip {
        put_columns(out, metadata.columns, global, version);
    }
}

pub(crate) fn encode_rows(out: &mut Vec<u8>, rows: &Rows<'_>, version: Version) {
    encode_metadata(out, &rows.metadata, version);
    out.extend(rows.count.to_be_bytes());
    out.extend_from_slice(rows.content);
}

pub(crate) fn encode_prepared(out: &mut Vec<u8>, prepared: &Prepared<'_>, version: Version) {
    write::short_bytes(out, prepared.id);
    if version >= Version::V5 {
        write::short_bytes(out, &prepared.result_metadata_id);
    }
    let PreparedMetadata { columns, partition_key } = prepared.variables;
    let global = same_table(columns);
    write::int(out, if global { GLOBAL_TABLES_SPEC } else { 0 });
    put_count(out, columns.len());
    if version >= Version::V4 {
        let markers = if global { partition_key } else { &[] };
        put_count(out, markers.len());
        for marker in markers {
            write::short(out, *marker);
        }
    }
    put_columns(out, columns, global, version);
    let columns = prepared.columns;
    let result = RowsMetadata { columns, skip: columns.is_empty(), ..RowsMetadata::default() };
    encode_metadata(out, &result, version);
}
