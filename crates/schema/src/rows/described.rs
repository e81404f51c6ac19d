//! Keyspaces, tables and types as rows: what cells they have, and in which table of `system_schema`.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::options::{MapOption, SubOptions, defaults};
use halcyon_model::schema::{ColumnDef, ColumnKind, TableSchema};
use halcyon_model::token::murmur3_hash;
use halcyon_model::types::UserType;

use crate::catalog::{Catalog, Keyspace, Table, TableKind};
use crate::function::{Signature, UserAggregate, UserFunction};
use crate::mask::ColumnMask;
use crate::system::is_local;

/// Cells by column.
pub(super) type Cells = BTreeMap<&'static str, Vec<u8>>;

/// Rows by table of `system_schema` and clustering.
pub(super) type Described = BTreeMap<(&'static str, Vec<Vec<u8>>), Cells>;

type Row = ((&'static str, Vec<Vec<u8>>), Cells);

fn text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn push_framed(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn texts<'a>(all: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let all: Vec<&[u8]> = all.into_iter().collect();
    let mut out = i32::try_from(all.len()).unwrap_or(i32::MAX).to_be_bytes().to_vec();
    all.iter().for_each(|text| push_framed(&mut out, text));
    out
}

fn map(entries: &BTreeMap<String, String>) -> Vec<u8> {
    let mut out = i32::try_from(entries.len()).unwrap_or(i32::MAX).to_be_bytes().to_vec();
    for (key, value) in entries {
        push_framed(&mut out, key.as_bytes());
        push_framed(&mut out, value.as_bytes());
    }
    out
}

fn entries<T: SubOptions + Clone>(option: &Option<MapOption<T>>) -> Vec<u8> {
    map(option.clone().unwrap_or_default().entries())
}

/// All rows of a keyspace but `system_schema.keyspaces`' own clustering: that row's clustering is empty. Without the rows of tables, types
/// and functions that it shares with another catalog's keyspace: they are the same there.
pub(super) fn keyspace(keyspace: &Keyspace, other: Option<&Keyspace>) -> Described {
    let mut rows = Described::new();
    let durable = vec![u8::from(keyspace.durable_writes)];
    let cells = [("durable_writes", durable), ("replication", map(&keyspace.replication))];
    rows.insert(("keyspaces", Vec::new()), cells.into());
    for user_type in unshared(&keyspace.types, other.map(|other| &other.types)) {
        push_type(&mut rows, user_type);
    }
    let functions = other.map(|other| &other.functions);
    for function in unshared(&keyspace.functions.scalars, functions.map(|f| &f.scalars)) {
        push_function(&mut rows, function);
    }
    for aggregate in unshared(&keyspace.functions.aggregates, functions.map(|f| &f.aggregates)) {
        push_aggregate(&mut rows, aggregate);
    }
    for table in unshared(&keyspace.tables, other.map(|other| &other.tables)) {
        if table.kind != TableKind::Virtual {
            push_table(&mut rows, table);
        }
    }
    rows
}

/// What one map has, and another has not as the same object. Of two that differ in little, hardly a key is compared.
fn unshared<'a, K: Ord, V>(
    of: &'a BTreeMap<K, Arc<V>>,
    other: Option<&'a BTreeMap<K, Arc<V>>>,
) -> impl Iterator<Item = &'a Arc<V>> {
    let mut others = other.into_iter().flatten().peekable();
    of.iter().filter_map(move |(key, value)| {
        let is_it = |other: &(&K, &Arc<V>)| Arc::ptr_eq(other.1, value);
        while others.peek().is_some_and(|other| !is_it(other) && other.0 < key) {
            others.next();
        }
        others.next_if(is_it).is_none().then_some(value)
    })
}

fn push_type(rows: &mut Described, user_type: &UserType) {
    let types: Vec<String> = user_type.fields.iter().map(|(_, t)| t.cql_name()).collect();
    let cells = [
        ("field_names", texts(user_type.fields.iter().map(|(name, _)| name.as_slice()))),
        ("field_types", texts(types.iter().map(String::as_bytes))),
    ];
    rows.insert(("types", vec![user_type.name.clone()]), cells.into());
}

/// The clustering of a function's row.
fn overload((name, arguments): Signature) -> Vec<Vec<u8>> {
    vec![text(&name), texts(arguments.iter().map(String::as_bytes))]
}

fn push_function(rows: &mut Described, function: &UserFunction) {
    let names = function.arguments.iter().map(|(name, _)| name.as_bytes());
    let cells = [
        ("argument_names", texts(names)),
        ("body", text(&function.body)),
        ("called_on_null_input", vec![u8::from(function.called_on_null)]),
        ("language", text(&function.language)),
        ("return_type", text(&function.returns.cql_name())),
    ];
    rows.insert(("functions", overload(function.signature())), cells.into());
}

fn push_aggregate(rows: &mut Described, aggregate: &UserAggregate) {
    let mut cells: Cells = [
        ("return_type", text(&aggregate.returns.cql_name())),
        ("state_func", text(&aggregate.state_function)),
        ("state_type", text(&aggregate.state.cql_name())),
    ]
    .into();
    let optional = [("final_func", &aggregate.final_function), ("initcond", &aggregate.initial)];
    for (name, value) in optional {
        cells.extend(value.as_ref().map(|value| (name, text(value))));
    }
    rows.insert(("aggregates", overload(aggregate.signature())), cells);
}

fn push_table(rows: &mut Described, table: &Table) {
    let schema = &table.schema;
    let name = text(&schema.name);
    let kept_in = if table.view.is_some() { "views" } else { "tables" };
    rows.insert((kept_in, vec![name.clone()]), table_cells(table));
    let kinds = [
        (ColumnKind::PartitionKey, "partition_key"),
        (ColumnKind::Clustering, "clustering"),
        (ColumnKind::Static, "static"),
        (ColumnKind::Regular, "regular"),
    ];
    for (kind, kind_name) in kinds {
        for (index, column) in table.columns(kind).iter().enumerate() {
            let is_key = kind.is_key();
            let position = if is_key { i32::try_from(index).unwrap_or(i32::MAX) } else { -1 };
            let cells = column_cells(column, kind, kind_name, position);
            rows.insert(("columns", vec![name.clone(), text(&column.name)]), cells);
        }
    }
    for (column, mask) in &table.masks {
        rows.insert(("column_masks", vec![name.clone(), text(column)]), mask_cells(mask));
    }
    push_dropped(rows, schema);
    for index in &table.indexes {
        let cells = [("kind", text(index.kind_name())), ("options", map(&index.options))];
        rows.insert(("indexes", vec![name.clone(), text(&index.name)]), cells.into());
    }
}

fn column_cells(column: &ColumnDef, kind: ColumnKind, kind_name: &str, position: i32) -> Cells {
    let order = match (kind, &column.cql_type) {
        (ColumnKind::Clustering, CqlType::Reversed(_)) => "desc",
        (ColumnKind::Clustering, _) => "asc",
        _ => "none",
    };
    [
        ("clustering_order", text(order)),
        ("column_name_bytes", text(&column.name)),
        ("kind", text(kind_name)),
        ("position", position.to_be_bytes().to_vec()),
        ("type", text(&column.cql_type.base().cql_name())),
    ]
    .into()
}

/// A null argument is an empty text, which `function_argument_nulls` distinguishes.
fn mask_cells(mask: &ColumnMask) -> Cells {
    let types: Vec<String> = mask.arguments.iter().map(|(of, _)| of.base().cql_name()).collect();
    let values = mask.arguments.iter().map(|(_, text)| text.as_deref().unwrap_or_default());
    let nulls = mask.arguments.iter().map(|(_, value)| match value {
        None => &[1][..],
        Some(_) => &[0][..],
    });
    [
        ("function_keyspace", text(&mask.keyspace)),
        ("function_name", text(&mask.function)),
        ("function_argument_types", texts(types.iter().map(String::as_bytes))),
        ("function_argument_values", texts(values.map(str::as_bytes))),
        ("function_argument_nulls", texts(nulls)),
    ]
    .into()
}

fn push_dropped(rows: &mut Described, schema: &TableSchema) {
    for column in &schema.dropped {
        let kind = if column.kind == ColumnKind::Static { "static" } else { "regular" };
        let cells = [
            ("dropped_time", (column.dropped_time / 1000).to_be_bytes().to_vec()),
            ("kind", text(kind)),
            ("type", text(&column.cql_type.base().cql_name())),
        ];
        let clustering = vec![text(&schema.name), text(&column.name)];
        rows.insert(("dropped_columns", clustering), cells.into());
    }
}

fn table_cells(table: &Table) -> Cells {
    let options = &table.schema.options;
    let double = |value: f64| value.to_be_bytes().to_vec();
    let int = |value: i32| value.to_be_bytes().to_vec();
    let policy =
        |policy: &Option<String>| text(policy.as_deref().unwrap_or(defaults::SPECULATIVE_RETRY));
    let none = BTreeMap::new();
    let min_index_interval = options.min_index_interval.unwrap_or(defaults::MIN_INDEX_INTERVAL);
    let max_index_interval = options.max_index_interval.unwrap_or(defaults::MAX_INDEX_INTERVAL);
    let compact = options.compact_storage;
    let flags = [
        (!compact || table.schema.clustering.len() > 1, b"compound".as_slice()),
        (table.is_counter(), b"counter"),
        (table.schema.is_dense(), b"dense"),
    ];
    let flags: Vec<&[u8]> = flags.iter().filter(|(has, _)| *has).map(|(_, flag)| *flag).collect();
    let mut cells: Cells = [
        ("id", table.id.to_vec()),
        ("additional_write_policy", policy(&options.additional_write_policy)),
        ("bloom_filter_fp_chance", double(options.bloom_filter_fp_chance())),
        ("caching", entries(&options.caching)),
        ("comment", text(&options.comment)),
        ("compaction", entries(&options.compaction)),
        ("compression", entries(&options.compression)),
        ("crc_check_chance", double(options.crc_check_chance())),
        ("dclocal_read_repair_chance", double(0.0)),
        ("default_time_to_live", int(options.default_time_to_live)),
        ("extensions", map(&none)),
        ("gc_grace_seconds", int(options.gc_grace_seconds.unwrap_or(defaults::GC_GRACE_SECONDS))),
        ("max_index_interval", int(max_index_interval)),
        ("memtable_flush_period_in_ms", int(options.memtable_flush_period_in_ms)),
        ("min_index_interval", int(min_index_interval)),
        ("read_repair", text(options.read_repair.as_deref().unwrap_or("BLOCKING"))),
        ("read_repair_chance", double(0.0)),
        ("speculative_retry", policy(&options.speculative_retry)),
    ]
    .into();
    match &table.view {
        None => drop(cells.insert("flags", texts(flags))),
        Some(view) => cells.extend([
            ("base_table_id", view.base_id.to_vec()),
            ("base_table_name", text(&view.base)),
            ("include_all_columns", vec![u8::from(view.includes_all)]),
            ("where_clause", text(&view.where_clause)),
        ]),
    }
    // Older nodes of a cluster do not know these: they are written only where they say something. `cdc` is written
    // only by nodes that capture changes, which this one does not.
    if let Some(memtable) = options.memtable.as_deref().filter(|name| *name != "default") {
        cells.insert("memtable", text(memtable));
    }
    let flags = [
        ("allow_auto_snapshot", options.allow_auto_snapshot),
        ("incremental_backups", options.incremental_backups),
    ];
    for (name, flag) in flags {
        if flag == Some(false) {
            cells.insert(name, vec![0]);
        }
    }
    cells
}

/// Gives a catalog its version, which follows from the version of the one that it was made of: a name-based UUID of everything that
/// clients can see of the schema, the hashes of its rows, one XOR the other. So a change costs what it changes and not what there is.
pub(crate) fn set_version(before: &Catalog, after: &mut Catalog) {
    let [mut version, mut of_types] =
        [before.version, before.types_version].map(u128::from_be_bytes);
    for (name, before, after) in changed_keyspaces(before, after) {
        if is_local(name) {
            continue;
        }
        let removed = before.map(|of| keyspace(of, after));
        let added = after.map(|of| keyspace(of, before));
        for row in removed.into_iter().chain(added).flatten() {
            let hash = row_hash(name, &row);
            // This takes a row that was there before away again.
            version ^= hash;
            if matches!(row.0.0, "types" | "functions" | "aggregates") {
                of_types ^= hash;
            }
        }
    }
    let mut uuid = version.to_be_bytes();
    uuid[6] = (uuid[6] & 0x0f) | 0x30;
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
    (after.version, after.types_version) = (uuid, of_types.to_be_bytes());
}

fn row_hash(keyspace: &str, ((table, clustering), cells): &Row) -> u128 {
    let mut bytes = Vec::new();
    push_framed(&mut bytes, keyspace.as_bytes());
    push_framed(&mut bytes, table.as_bytes());
    clustering.iter().for_each(|value| push_framed(&mut bytes, value));
    for (column, value) in cells {
        push_framed(&mut bytes, column.as_bytes());
        push_framed(&mut bytes, value);
    }
    let (high, low) = murmur3_hash(&bytes);
    u128::from(high.cast_unsigned()) << 64 | u128::from(low.cast_unsigned())
}

/// By name, the keyspaces with storage that two catalogs do not share, and what they are in each.
pub(super) fn changed_keyspaces<'a>(
    before: &'a Catalog,
    after: &'a Catalog,
) -> impl Iterator<Item = (&'a str, Option<&'a Keyspace>, Option<&'a Keyspace>)> {
    let gone = before.keyspaces.keys().filter(|name| !after.keyspaces.contains_key(*name));
    gone.chain(after.keyspaces.keys()).filter_map(|name| {
        let (before, after) = (before.keyspaces.get(name), after.keyspaces.get(name));
        let is_same = before.zip(after).is_some_and(|(before, after)| Arc::ptr_eq(before, after));
        let is_virtual = after.or(before).is_some_and(|keyspace| keyspace.is_virtual);
        let found = (name.as_str(), before.map(Arc::as_ref), after.map(Arc::as_ref));
        (!is_same && !is_virtual).then_some(found)
    })
}
