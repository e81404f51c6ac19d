//! Rows to tables, types and keyspaces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use halcyon_model::options::{MapOption, TableOptions};
use halcyon_model::schema::{ColumnKind, TableSchema};
use halcyon_model::{CqlType, Cursor};

use super::{SchemaRow, SchemaRows};
use crate::catalog::{Catalog, Keyspace, SetApart, Table, TableKind};
use crate::checks;
use crate::function::{Functions, UserAggregate, UserFunction};
use crate::index::{Index, IndexKind};
use crate::mask::ColumnMask;
use crate::view::View;
use crate::{ColumnDraft, DroppedDraft, FieldTexts, TableDraft, UserTypeCatalog, system};
use halcyon_stream::TableId;
use halcyon_syntax::{Error, Result};

/// Typed access to a row's cells.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a SchemaRow);

impl<'a> Fields<'a> {
    fn bytes(self, column: &str) -> Option<&'a [u8]> {
        self.0.get(column)?.as_deref()
    }

    fn text(self, column: &str) -> Option<String> {
        self.bytes(column).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn int(self, column: &str) -> Option<i32> {
        Some(i32::from_be_bytes(self.bytes(column)?.try_into().ok()?))
    }

    fn double(self, column: &str) -> Option<f64> {
        Some(f64::from_be_bytes(self.bytes(column)?.try_into().ok()?))
    }

    fn boolean(self, column: &str) -> Option<bool> {
        Some(self.bytes(column)? != [0])
    }

    /// A frozen list or set of texts, or a frozen map of them as alternating keys and values.
    fn texts(self, column: &str, per_entry: usize) -> Option<Vec<String>> {
        let mut cursor = Cursor::new(self.bytes(column)?);
        let entries = usize::try_from(cursor.i32().ok()?).ok()?;
        let mut texts = Vec::new();
        for _ in 0..entries.checked_mul(per_entry)? {
            let length = u64::try_from(cursor.i32().ok()?).ok()?;
            let bytes = cursor.take_u64(length).ok()?;
            texts.push(String::from_utf8_lossy(bytes).into_owned());
        }
        Some(texts)
    }

    fn map(self, column: &str) -> Option<BTreeMap<String, String>> {
        let texts = self.texts(column, 2)?;
        let (pairs, _) = texts.as_chunks::<2>();
        Some(pairs.iter().map(|[key, value]| (key.clone(), value.clone())).collect())
    }
}

fn unreadable(table: &str, row: &SchemaRow) -> Error {
    let fields = Fields(row);
    let names =
        ["keyspace_name", "table_name", "view_name", "type_name", "column_name", "index_name"];
    let path: Vec<String> = names.iter().filter_map(|name| fields.text(name)).collect();
    Error::Configuration(format!(
        "the row of {} in system_schema.{table} cannot be understood",
        path.join(".")
    ))
}

/// The rows of one keyspace.
#[derive(Default)]
struct KeyspaceRows<'a> {
    tables: Vec<&'a SchemaRow>,
    views: Vec<&'a SchemaRow>,
    types: Vec<&'a SchemaRow>,
    functions: Vec<&'a SchemaRow>,
    aggregates: Vec<&'a SchemaRow>,
    /// By table.
    triggers: BTreeMap<String, Vec<String>>,
    indexes: BTreeMap<String, Vec<&'a SchemaRow>>,
    /// By table or view.
    columns: BTreeMap<String, Vec<&'a SchemaRow>>,
    dropped: BTreeMap<String, Vec<&'a SchemaRow>>,
    masks: BTreeMap<String, Vec<&'a SchemaRow>>,
}

fn by_keyspace(rows: &SchemaRows) -> BTreeMap<String, KeyspaceRows<'_>> {
    let mut found: BTreeMap<String, KeyspaceRows<'_>> = BTreeMap::new();
    for (table, rows) in rows {
        for row in rows {
            let fields = Fields(row);
            let Some(keyspace) = fields.text("keyspace_name") else { continue };
            let of = found.entry(keyspace).or_default();
            let owner = || fields.text("table_name").unwrap_or_default();
            match table.as_str() {
                "tables" => of.tables.push(row),
                "views" => of.views.push(row),
                "indexes" => of.indexes.entry(owner()).or_default().push(row),
                "triggers" => {
                    let name = fields.text("trigger_name").unwrap_or_default();
                    of.triggers.entry(owner()).or_default().push(name);
                }
                "types" => of.types.push(row),
                "functions" => of.functions.push(row),
                "aggregates" => of.aggregates.push(row),
                "columns" => of.columns.entry(owner()).or_default().push(row),
                "column_masks" => of.masks.entry(owner()).or_default().push(row),
                "dropped_columns" => of.dropped.entry(owner()).or_default().push(row),
                _ => {}
            }
        }
    }
    found
}

impl KeyspaceRows<'_> {
    /// The types whose rows can be read; `fill` sets the others apart.
    fn user_types(&self, keyspace: &str) -> UserTypeCatalog {
        let mut texts: BTreeMap<String, FieldTexts> = BTreeMap::new();
        for row in &self.types {
            let name = Fields(row).text("type_name").unwrap_or_default();
            texts.extend(field_texts(Fields(row)).map(|fields| (name, fields)));
        }
        UserTypeCatalog::resolve(keyspace, &texts)
    }

    fn table(
        &self,
        keyspace: &str,
        row: &SchemaRow,
        types: &UserTypeCatalog,
    ) -> Result<TableSchema> {
        let fields = Fields(row);
        let view = fields.text("view_name");
        let of = if view.is_some() { "views" } else { "tables" };
        let name = view.or_else(|| fields.text("table_name")).ok_or_else(|| unreadable(of, row))?;
        checks::table_name(keyspace, &name)?;
        let mut draft = TableDraft::new(keyspace, &name);
        draft.id = fields.bytes("id").and_then(|bytes| bytes.try_into().ok());
        draft.options = table_options(fields);
        for row in self.columns.get(&name).into_iter().flatten() {
            add_column(&mut draft, Fields(row)).ok_or_else(|| unreadable("columns", row))?;
        }
        if let Some(base) = fields.text("base_table_name") {
            draft.strict_liveness = self.has_other_key(&draft, &base);
        }
        for row in self.dropped.get(&name).into_iter().flatten() {
            add_dropped(&mut draft, Fields(row))
                .ok_or_else(|| unreadable("dropped_columns", row))?;
        }
        let schema = draft.finish(types).map_err(|e| Error::Configuration(e.what))?;
        schema.partition_key.iter().chain(&schema.clustering).try_for_each(checks::key_column)?;
        checks::counters(&schema)?;
        Ok(schema)
    }

    fn complete_table(
        &self,
        keyspace: &str,
        row: &SchemaRow,
        types: &UserTypeCatalog,
        kind: TableKind,
    ) -> Result<Table> {
        let mut schema = self.table(keyspace, row, types)?;
        schema.options.complete();
        let id = schema.id.ok_or_else(|| unreadable("tables", row))?;
        let mut table = Table::new(id, kind, schema);
        if kind == TableKind::Regular {
            table.triggers = self.triggers.get(&table.schema.name).cloned().unwrap_or_default();
            table.indexes = self.stored_indexes(&table).filter_map(Result::ok).collect();
            table.indexes.sort_by(|a, b| a.name.cmp(&b.name));
            table.views = self.views_of(&table);
        } else {
            let view = view(Fields(row)).ok_or_else(|| unreadable("views", row))?;
            if !self.tables.iter().any(|row| id_of(row) == Some(view.base_id)) {
                let what = format!("its base table {keyspace}.{} does not exist", view.base);
                return Err(Error::Configuration(what));
            }
            table.view = Some(view);
        }
        for row in self.masks.get(&table.schema.name).into_iter().flatten() {
            let name = Fields(row).text("column_name").unwrap_or_default();
            // Cassandra leaves the rows of dropped columns behind.
            if table.all_columns().any(|column| column.name == name) {
                let mask =
                    mask(Fields(row), types).ok_or_else(|| unreadable("column_masks", row))?;
                table.masks.insert(name, mask);
            }
        }
        Ok(table)
    }

    fn views_of(&self, base: &Table) -> Vec<String> {
        let views = self.views.iter().map(|row| Fields(row));
        let on_it = views.filter(|row| row.bytes("base_table_id") == Some(&base.id[..]));
        let is_table = |name: &String| {
            self.tables.iter().any(|row| Fields(row).text("table_name").as_ref() == Some(name))
        };
        let names = on_it.filter_map(|row| row.text("view_name"));
        let mut names: Vec<String> = names.filter(|name| !is_table(name)).collect();
        names.sort();
        names
    }

    /// The table's indexes, and why others are refused.
    fn stored_indexes(&self, table: &Table) -> impl Iterator<Item = Result<Index>> {
        let rows = self.indexes.get(&table.schema.name).into_iter().flatten();
        rows.map(|row| {
            let type_of = |name: &str| Some(&table.column(table.find_column(name)?)?.cql_type);
            let fields = Fields(row);
            let found = fields.text("index_name").zip(fields.text("kind"));
            let (name, kind) = found.ok_or_else(|| unreadable("indexes", row))?;
            checks::index_name(&name)?;
            let options = fields.map("options").unwrap_or_default();
            let mut index = Index::stored(name, &kind, options, type_of);
            // One of Cassandra's own kind can have it: its table is read, and written once the index is dropped.
            if checks::index_length(&index.name).is_err() {
                index.kind = IndexKind::Other("a name too long for a file".to_owned());
            }
            Ok(index)
        })
    }

    /// Whether a view has a column in its primary key that its base has elsewhere.
    fn has_other_key(&self, view: &TableDraft, base: &str) -> bool {
        self.columns.get(base).into_iter().flatten().any(|row| {
            let row = Fields(row);
            let kind = row.text("kind").and_then(|kind| column_kind(&kind));
            let name = row.text("column_name").unwrap_or_default();
            let in_view = view.columns.get(&name).is_some_and(|column| column.kind.is_key());
            in_view && kind.is_some_and(|kind| !kind.is_key())
        })
    }
}

/// A type's fields; `None`: its row cannot be understood.
fn field_texts(row: Fields<'_>) -> Option<FieldTexts> {
    let (names, types) = row.texts("field_names", 1).zip(row.texts("field_types", 1))?;
    let distinct: BTreeSet<&String> = names.iter().collect();
    let is_sound = names.len() == types.len() && distinct.len() == names.len();
    is_sound.then(|| names.into_iter().zip(types).collect())
}

fn view(row: Fields<'_>) -> Option<View> {
    Some(View {
        base_id: row.bytes("base_table_id")?.try_into().ok()?,
        base: row.text("base_table_name")?,
        includes_all: row.boolean("include_all_columns").unwrap_or(false),
        where_clause: row.text("where_clause").unwrap_or_default(),
    })
}

fn mask(row: Fields<'_>, types: &UserTypeCatalog) -> Option<ColumnMask> {
    let nulls = row.texts("function_argument_nulls", 1)?;
    let values = row.texts("function_argument_values", 1)?;
    let mut arguments = Vec::new();
    for (index, of) in row.texts("function_argument_types", 1)?.iter().enumerate() {
        let of = types.parse(of).ok()?;
        let value = match nulls.get(index)?.as_str() {
            "\u{1}" => None,
            _ => Some(values.get(index)?.clone()),
        };
        arguments.push((of, value));
    }
    let keyspace = row.text("function_keyspace")?;
    Some(ColumnMask { keyspace, function: row.text("function_name")?, arguments })
}

fn column_kind(text: &str) -> Option<ColumnKind> {
    Some(match text {
        "partition_key" => ColumnKind::PartitionKey,
        "clustering" => ColumnKind::Clustering,
        "static" => ColumnKind::Static,
        "regular" => ColumnKind::Regular,
        _ => return None,
    })
}

fn add_column(draft: &mut TableDraft, row: Fields<'_>) -> Option<()> {
    let column = ColumnDraft {
        type_text: row.text("type")?,
        kind: column_kind(&row.text("kind")?)?,
        // −1 where columns have no order but that of their names.
        position: row.int("position").and_then(|p| usize::try_from(p).ok()).unwrap_or(0),
        descending: row.text("clustering_order").is_some_and(|o| o.eq_ignore_ascii_case("desc")),
        location: None,
    };
    draft.columns.insert(row.text("column_name")?, column);
    Some(())
}

fn add_dropped(draft: &mut TableDraft, row: Fields<'_>) -> Option<()> {
    // Milliseconds here, microseconds where cells are compared with it.
    let millis = i64::from_be_bytes(row.bytes("dropped_time")?.try_into().ok()?);
    draft.dropped.push(DroppedDraft {
        name: row.text("column_name")?,
        type_text: row.text("type")?,
        kind: row.text("kind").and_then(|kind| column_kind(&kind)).unwrap_or(ColumnKind::Regular),
        location: None,
        dropped_time: millis.saturating_mul(1000),
    });
    Some(())
}

fn table_options(row: Fields<'_>) -> TableOptions {
    let flags = row.texts("flags", 1).unwrap_or_default();
    let has = |flag: &str| flags.iter().any(|known| known == flag);
    // A number that no statement can state is the default.
    let natural = |column: &str| row.int(column).filter(|value| *value >= 0);
    let fraction = |column: &str| row.double(column).filter(|value| (0.0..=1.0).contains(value));
    TableOptions {
        comment: row.text("comment").unwrap_or_default(),
        gc_grace_seconds: natural("gc_grace_seconds"),
        default_time_to_live: natural("default_time_to_live").unwrap_or(0),
        bloom_filter_fp_chance: fraction("bloom_filter_fp_chance"),
        crc_check_chance: fraction("crc_check_chance"),
        min_index_interval: natural("min_index_interval"),
        max_index_interval: natural("max_index_interval"),
        memtable_flush_period_in_ms: natural("memtable_flush_period_in_ms").unwrap_or(0),
        compression: row.map("compression").map(MapOption::lenient),
        compaction: row.map("compaction").map(MapOption::lenient),
        caching: row.map("caching").map(MapOption::lenient),
        compact_storage: row.bytes("flags").is_some() && (has("dense") || !has("compound")),
        speculative_retry: row.text("speculative_retry"),
        additional_write_policy: row.text("additional_write_policy"),
        read_repair: row.text("read_repair"),
        memtable: row.text("memtable"),
        allow_auto_snapshot: row.boolean("allow_auto_snapshot"),
        incremental_backups: row.boolean("incremental_backups"),
        cdc: row.boolean("cdc"),
    }
}

/// One table or view; `None` if the rows have none of the name.
pub fn table(rows: &SchemaRows, keyspace: &str, name: &str) -> Result<Option<TableSchema>> {
    let all = by_keyspace(rows);
    let Some(of) = all.get(keyspace) else { return Ok(None) };
    let is = |column: &'static str| {
        move |row: &&&SchemaRow| Fields(row).text(column).as_deref() == Some(name)
    };
    let row = of.tables.iter().find(is("table_name")).or(of.views.iter().find(is("view_name")));
    let Some(row) = row else { return Ok(None) };
    let types = of.user_types(keyspace);
    of.table(keyspace, row, &types).map(Some)
}

impl Catalog {
    /// The catalog of the live rows of `system_schema`, with the system's own keyspaces.
    pub fn from_rows(rows: &SchemaRows) -> Catalog {
        catalog(rows)
    }
}

/// What is set apart, by keyspace and name.
type Apart = BTreeMap<(String, String), SetApart>;

/// All keyspaces of the rows, and the system's own. What cannot be used is set apart.
fn catalog(rows: &SchemaRows) -> Catalog {
    let mut catalog = system::system_tables();
    let mut apart = Apart::new();
    let mut all = by_keyspace(rows);
    for row in rows.get("keyspaces").into_iter().flatten() {
        let fields = Fields(row);
        let name = fields.text("keyspace_name").unwrap_or_default();
        let of_keyspace = all.remove(&name).unwrap_or_default();
        let checked = checks::keyspace_name(&name)
            .and_then(|()| fields.map("replication").ok_or_else(|| unreadable("keyspaces", row)));
        let replication = match checked {
            Ok(replication) => replication,
            Err(why) => {
                set_apart(&mut apart, &name, &of_keyspace, &why);
                continue;
            }
        };
        let durable_writes = fields.boolean("durable_writes").unwrap_or(true);
        if let Some(known) = catalog.keyspaces.get_mut(&name) {
            // The tables are those that this program knows; how they are replicated is the operator's.
            let known = Arc::make_mut(known);
            if !system::is_local(&name) {
                known.replication = replication;
                known.durable_writes = durable_writes;
                let types = of_keyspace.user_types(&name);
                fill_functions(known, &of_keyspace, &types, &mut apart);
            }
            continue;
        }
        let mut keyspace = Keyspace {
            name: name.clone(),
            replication,
            durable_writes,
            is_virtual: false,
            tables: BTreeMap::new(),
            types: BTreeMap::new(),
            functions: Functions::default(),
        };
        fill(&mut keyspace, &of_keyspace, &mut apart);
        catalog.keyspaces.insert(name, Arc::new(keyspace));
    }
    set_shared_ids_apart(&mut catalog, &mut apart);
    catalog.set_apart = Arc::new(apart);
    super::set_version(&Catalog::default(), &mut catalog);
    catalog
}

/// An id names the folder, the writes in the commit log and the rows in memory of one table: of several tables with it none is used,
/// but for one of the system's.
fn set_shared_ids_apart(catalog: &mut Catalog, apart: &mut Apart) {
    let mut of_ids: BTreeMap<TableId, Vec<Arc<Table>>> = BTreeMap::new();
    for table in catalog.tables() {
        of_ids.entry(table.id).or_default().push(table.clone());
    }
    for table in of_ids.into_values().filter(|tables| tables.len() > 1).flatten() {
        let (keyspace, name) = (&table.schema.keyspace, &table.schema.name);
        if system::is_local(keyspace) || system::is_replicated_system(keyspace) {
            continue;
        }
        if let Some(keyspace) = catalog.keyspaces.get_mut(keyspace) {
            Arc::make_mut(keyspace).tables.remove(name);
        }
        let why = "another table has its id".to_owned();
        apart.insert((keyspace.clone(), name.clone()), SetApart { id: Some(table.id), why });
    }
}

/// A keyspace, under no name of a table, and all its tables.
fn set_apart(apart: &mut Apart, keyspace: &str, rows: &KeyspaceRows<'_>, why: &Error) {
    let why = || why.to_string();
    apart.insert((keyspace.to_owned(), String::new()), SetApart { id: None, why: why() });
    for row in rows.tables.iter().chain(&rows.views) {
        apart.insert(key_of(keyspace, row), SetApart { id: id_of(row), why: why() });
    }
}

fn key_of(keyspace: &str, row: &SchemaRow) -> (String, String) {
    let name = Fields(row).text("view_name").or_else(|| Fields(row).text("table_name"));
    (keyspace.to_owned(), name.unwrap_or_default())
}

fn id_of(row: &SchemaRow) -> Option<TableId> {
    Fields(row).bytes("id").and_then(|bytes| bytes.try_into().ok())
}

fn fill(keyspace: &mut Keyspace, rows: &KeyspaceRows<'_>, apart: &mut Apart) {
    let types = rows.user_types(&keyspace.name);
    for row in rows.types.iter().filter(|row| field_texts(Fields(row)).is_none()) {
        let key = (keyspace.name.clone(), Fields(row).text("type_name").unwrap_or_default());
        apart.insert(key, SetApart { id: None, why: unreadable("types", row).to_string() });
    }
    for (name, resolved) in types.all() {
        match resolved {
            Ok(user_type) => {
                keyspace.types.insert(name.to_owned(), Arc::new(user_type.clone()));
            }
            Err(error) => {
                let key = (keyspace.name.clone(), name.to_owned());
                apart.insert(key, SetApart { id: None, why: error.to_string() });
            }
        }
    }
    fill_functions(keyspace, rows, &types, apart);
    let kinds = [(&rows.tables, TableKind::Regular), (&rows.views, TableKind::View)];
    for (rows_of, kind) in kinds {
        for row in rows_of {
            let table = rows.complete_table(&keyspace.name, row, &types, kind);
            match table.and_then(|table| refuse_second(keyspace, table)) {
                Ok(table) => {
                    set_indexes_apart(rows, &table, apart);
                    keyspace.tables.insert(table.schema.name.clone(), Arc::new(table));
                }
                Err(error) => {
                    let why = error.to_string();
                    apart.insert(key_of(&keyspace.name, row), SetApart { id: id_of(row), why });
                }
            }
        }
    }
}

/// Refuses a view that has the name of a table. Statements on either are refused then: the name is set apart. The table stays for its
/// writes in the commit log.
fn refuse_second(keyspace: &Keyspace, table: Table) -> Result<Table> {
    match keyspace.tables.get(&table.schema.name) {
        None => Ok(table),
        Some(_) => Err(Error::Configuration(format!(
            "a table and a materialized view have the name {}",
            table.full_name()
        ))),
    }
}

/// An invalid index is set apart under a name that no table can have, and its table is served without it.
fn set_indexes_apart(rows: &KeyspaceRows<'_>, table: &Table, apart: &mut Apart) {
    let schema = &table.schema;
    let refused = rows.stored_indexes(table).filter_map(Result::err).enumerate();
    for (number, error) in refused.filter(|_| table.kind == TableKind::Regular) {
        let key = (schema.keyspace.clone(), format!("{}.index {}", schema.name, number + 1));
        apart.insert(key, SetApart { id: None, why: error.to_string() });
    }
}

/// A function that cannot be understood is set apart under its signature, which no table can have as its name.
fn fill_functions(
    keyspace: &mut Keyspace,
    rows: &KeyspaceRows<'_>,
    types: &UserTypeCatalog,
    apart: &mut Apart,
) {
    let mut set_apart = |row: &SchemaRow, of: &str, name: &str| {
        let arguments = Fields(row).texts("argument_types", 1).unwrap_or_default().join(", ");
        let name = Fields(row).text(name).unwrap_or_default();
        let why = unreadable(of, row).to_string();
        let key = (keyspace.name.clone(), format!("{name}({arguments})"));
        apart.insert(key, SetApart { id: None, why });
    };
    for row in &rows.functions {
        match function(&keyspace.name, Fields(row), types) {
            Some(function) => {
                keyspace.functions.scalars.insert(function.signature(), Arc::new(function));
            }
            None => set_apart(row, "functions", "function_name"),
        }
    }
    for row in &rows.aggregates {
        match aggregate(&keyspace.name, Fields(row), types) {
            Some(aggregate) => {
                keyspace.functions.aggregates.insert(aggregate.signature(), Arc::new(aggregate));
            }
            None => set_apart(row, "aggregates", "aggregate_name"),
        }
    }
}

fn function(keyspace: &str, row: Fields<'_>, types: &UserTypeCatalog) -> Option<UserFunction> {
    let names = row.texts("argument_names", 1)?;
    let parsed = row.texts("argument_types", 1)?.into_iter().map(|text| types.parse(&text).ok());
    let parsed: Vec<CqlType> = parsed.collect::<Option<_>>()?;
    if names.len() != parsed.len() {
        return None;
    }
    Some(UserFunction {
        keyspace: keyspace.to_owned(),
        name: row.text("function_name").filter(|name| checks::is_function_name(name))?,
        arguments: names.into_iter().zip(parsed).collect(),
        returns: types.parse(&row.text("return_type")?).ok()?,
        called_on_null: row.boolean("called_on_null_input")?,
        language: row.text("language")?,
        body: row.text("body")?,
    })
}

fn aggregate(keyspace: &str, row: Fields<'_>, types: &UserTypeCatalog) -> Option<UserAggregate> {
    let parsed = row.texts("argument_types", 1)?.into_iter().map(|text| types.parse(&text).ok());
    Some(UserAggregate {
        keyspace: keyspace.to_owned(),
        name: row.text("aggregate_name").filter(|name| checks::is_function_name(name))?,
        arguments: parsed.collect::<Option<_>>()?,
        state: types.parse(&row.text("state_type")?).ok()?,
        state_function: row.text("state_func")?,
        final_function: row.text("final_func"),
        returns: types.parse(&row.text("return_type")?).ok()?,
        initial: row.text("initcond"),
    })
}
