//! A session of schema statements on Cassandra 5.0.9, replayed: the same is refused with the same words, the same
//! texts describe what came of it, and the same rows of `system_schema` say it.
//!
//! `tests/data/ddl.txt`, `ddl_indexes.txt`: statements with their answers (`----`), ended by `====`. `schema_rows.txt`,
//! `index_rows.txt`, `function_rows.txt`: all rows at the end.
//! `e2e/record_answers.py` records both.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use halcyon_guardrails::{Config, Given, Guard};
use halcyon_model::CqlType;
use halcyon_model::value::to_json_string;

use super::{Context, RestrictedRows, change, drop_time, validate};
use crate::catalog::{Catalog, Keyspace};
use crate::describe::{Element, describe};
use crate::function::FunctionSettings;
use crate::index::{Index, IndexSettings};
use crate::mask::{ColumnMask, MaskSettings, MaskedColumn};
use crate::rows::tests::apply;
use crate::rows::{SchemaRows, WriteTime, difference};
use crate::view::ViewSettings;
use crate::{system_tables, virtual_keyspace};
use halcyon_syntax::Error;
use halcyon_syntax::ast::{DescribeTarget, MaskText, RawTerm, StatementKind};
use halcyon_syntax::parse_statement;

fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read_to_string(path).expect("readable")
}

/// As much of the virtual tables as the recorded session mentions; the server defines them.
const SYSTEM_VIEWS: &str =
    "CREATE TABLE system_views.caches (name text PRIMARY KEY, size_bytes bigint)";

const SYSTEM_VIRTUAL_SCHEMA: &str = "
CREATE TABLE system_virtual_schema.columns (keyspace_name text, table_name text, column_name text, clustering_order text,
column_name_bytes blob, kind text, position int, type text, PRIMARY KEY (keyspace_name, table_name, column_name))
WITH comment = 'virtual column definitions';
CREATE TABLE system_virtual_schema.keyspaces (keyspace_name text PRIMARY KEY)
WITH comment = 'virtual keyspace definitions';
CREATE TABLE system_virtual_schema.tables (keyspace_name text, table_name text, comment text,
PRIMARY KEY (keyspace_name, table_name)) WITH comment = 'virtual table definitions';";

struct Session {
    catalog: Catalog,
    rows: SchemaRows,
    keyspace: Option<String>,
    statements: u128,
    indexes: IndexSettings,
    functions: FunctionSettings,
    guard: Guard,
}

impl Session {
    fn begin() -> Session {
        let mut rows = SchemaRows::new();
        let at = WriteTime { micros: 1, seconds: 1 };
        let mut catalog = system_tables();
        for script in [SYSTEM_VIEWS, SYSTEM_VIRTUAL_SCHEMA] {
            let keyspace = virtual_keyspace(script).expect("virtual tables");
            catalog.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
        }
        apply(&mut rows, &difference(&Catalog::default(), &catalog, at));
        let (indexes, functions) = (
            IndexSettings::default(),
            FunctionSettings { are_enabled: true, ..FunctionSettings::default() },
        );
        let guard = Guard::default();
        Session { catalog, rows, keyspace: None, statements: 0, indexes, functions, guard }
    }

    /// What Cassandra's answer to it is in the recorded file.
    fn answer(&mut self, text: &str) -> String {
        self.statements += 1;
        let mut statement = match parse_statement(text) {
            Ok(statement) => statement.kind,
            Err(error) => return failure(&error),
        };
        if let StatementKind::Use { keyspace } = &statement {
            if !self.catalog.keyspaces.contains_key(keyspace) {
                return format!("2200 Keyspace '{keyspace}' does not exist");
            }
            self.keyspace = Some(keyspace.clone());
            return "ok".to_owned();
        }
        if let StatementKind::Describe(described) = &statement {
            return match describe(&self.catalog, described, self.keyspace.as_deref()) {
                Ok(elements) => listed(&described.target, &elements),
                Err(error) => failure(&error),
            };
        }
        let context = Context {
            keyspace: self.keyspace.as_deref(),
            data_center: "datacenter1",
            default_compaction: None,
            drops_compact_storage: false,
            default_factor: 1,
            guard: &self.guard,
            indexes: &self.indexes,
            views: &ViewSettings::default(),
            view_rows: |_, _, _| Ok(RestrictedRows::default()),
            functions: &self.functions,
            evaluate: &integers,
            masks: MaskSettings { are_enabled: true },
            find_mask: &natives,
            table_id: self.statements.to_be_bytes(),
            at: WriteTime { micros: 10_000_000 + self.statements as i64, seconds: 10 },
        };
        let validated = validate(&self.catalog, &mut statement, &context);
        match validated.and_then(|()| change(&self.catalog, &statement, &context)) {
            Err(error) => failure(&error),
            Ok(made) => {
                apply(&mut self.rows, &difference(&self.catalog, &made.catalog, context.at));
                self.catalog = made.catalog;
                let said = self.guard.take_said().into_iter().map(|said| said.text);
                let warnings = said.chain(made.warnings);
                let warnings = warnings.map(|text| format!("\nwarning: {text}"));
                format!("ok{}", warnings.collect::<String>())
            }
        }
    }
}

/// As much of the meaning of terms as the recorded sessions need.
fn integers(_: &Keyspace, term: &RawTerm, _: &CqlType) -> halcyon_syntax::Result<Option<Vec<u8>>> {
    let number: i32 = term.to_string().parse().expect("an integer");
    Ok(Some(number.to_be_bytes().to_vec()))
}

/// Only what needs no look at functions.
fn natives(_: MaskedColumn<'_>, mask: &MaskText) -> halcyon_syntax::Result<ColumnMask> {
    let arguments = mask.arguments.iter().map(|term| {
        let text = (*term != RawTerm::Null).then(|| term.to_string());
        (CqlType::Int, text)
    });
    let function = mask.function.name.clone();
    Ok(ColumnMask { keyspace: "system".to_owned(), function, arguments: arguments.collect() })
}

fn failure(error: &Error) -> String {
    let code = match error {
        Error::Syntax { .. } => "2000",
        Error::Unauthorized(_) => "2100",
        Error::Configuration(_) => "2300",
        // The driver that recorded the answers words this one itself.
        Error::AlreadyExists { keyspace, table, .. } if table.is_empty() => {
            return format!("AlreadyExists Keyspace '{keyspace}' already exists");
        }
        Error::AlreadyExists { keyspace, table, .. } => {
            return format!("AlreadyExists Table '{keyspace}.{table}' already exists");
        }
        _ => "2200",
    };
    format!("{code} {error}")
}

fn listed(target: &DescribeTarget, elements: &[Element]) -> String {
    let lists = matches!(
        target,
        DescribeTarget::Keyspaces
            | DescribeTarget::Tables
            | DescribeTarget::Types
            | DescribeTarget::Functions
            | DescribeTarget::Aggregates
    );
    let statement = if lists { "" } else { ", create_statement" };
    let mut out = format!("ok\ncolumns: keyspace_name, type, name{statement}");
    for element in elements {
        let _ = write!(out, "\nrow: {}|{}|{}", element.keyspace, element.kind, element.name);
        if let Some(statement) = &element.statement {
            let _ = write!(out, "|{statement}");
        }
    }
    out
}

/// Ids are each node's own. Cassandra names a column's indexes in the order of their objects' addresses.
fn without_ids(text: &str) -> String {
    if let Some((begin, names)) = text.split_once("dependent secondary indexes (") {
        let mut names: Vec<&str> = names.trim_end_matches(')').split(", ").collect();
        names.sort_unstable();
        return format!("{begin}{names:?}");
    }
    for begin in ["is still referenced by aggregates ", "is still used by functions "] {
        if let Some((before, names)) = text.split_once(begin) {
            let mut names: Vec<&str> = names.split(", ").collect();
            names.sort_unstable();
            return format!("{before}{begin}{names:?}");
        }
    }
    let line = |line: &str| match line.split_once("ID = ") {
        Some((before, id)) if id.len() >= 36 => format!("{before}ID = …"),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Statements whose answers are others here: about what is not supported yet, and where Cassandra fails with a Java exception.
fn is_ours(text: &str, expected: &str) -> bool {
    expected.contains("java.lang.NullPointerException")
        || expected.contains("No enum constant")
        || [
            "LIST",
            "GRANT",
            "REVOKE",
            "CREATE ROLE",
            "ALTER ROLE",
            "DROP ROLE",
            "CREATE USER",
            "DROP USER",
        ]
        .iter()
        .any(|begin| text.starts_with(begin))
        || ["ADD IDENTITY", "DROP IDENTITY", "TRUNCATE", "DESCRIBE CLUSTER"]
            .iter()
            .any(|begin| text.starts_with(begin))
}

#[test]
fn a_recorded_session_is_replayed() {
    let session = replay("ddl.txt");
    compare_schema_rows(&session, recorded_rows("schema_rows.txt"), |_| true);
}

/// The same of statements about indexes.
#[test]
fn a_recorded_session_with_indexes_is_replayed() {
    let session = replay("ddl_indexes.txt");
    let is_index = |key: &str| key.starts_with("indexes ");
    compare_schema_rows(&session, recorded_rows("index_rows.txt"), is_index);
}

/// The same of statements about functions.
#[test]
fn a_recorded_session_with_functions_is_replayed() {
    let session = replay("ddl_functions.txt");
    let is_function = |key: &str| key.starts_with("functions ") || key.starts_with("aggregates ");
    compare_schema_rows(&session, recorded_rows("function_rows.txt"), is_function);
}

/// Proves that functions are refused unless the setting allows them, whatever their language.
#[test]
fn functions_are_disabled() {
    let mut session = Session::begin();
    session.functions.are_enabled = false;
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    session.answer(&format!("CREATE KEYSPACE k WITH replication = {replication}"));
    let create = "FUNCTION k.f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE wasm AS ''";
    assert_eq!(
        session.answer(&format!("CREATE {create}")),
        "2200 User-defined functions are disabled in cassandra.yaml - set user_defined_functions_enabled=true to enable"
    );
    assert_eq!(session.answer("DROP FUNCTION k.f"), "2200 Function 'k.f' doesn't exist");
}

/// Proves that a trigger is refused as in Cassandra where its class is not there.
#[test]
fn triggers_have_no_class() {
    let mut session = Session::begin();
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    session.answer(&format!("CREATE KEYSPACE k WITH replication = {replication}"));
    session.answer("CREATE TABLE k.t (k int PRIMARY KEY)");
    for (table, expected) in [
        ("k.t", "2200 Trigger class 'org.Nope' couldn't be loaded"),
        ("k.nope", "2200 Table 'nope' doesn't exist"),
        ("nope.t", "2200 Keyspace 'nope' doesn't exist"),
    ] {
        let statement = format!("CREATE TRIGGER tr ON {table} USING 'org.Nope'");
        assert_eq!(session.answer(&statement), expected);
    }
}

fn replay(name: &str) -> Session {
    let mut session = Session::begin();
    let mut wrong = Vec::new();
    let recorded = data(name);
    for case in recorded.split("\n====\n").filter(|case| !case.is_empty()) {
        let (text, expected) = case.split_once("\n----\n").expect("text and answer");
        let found = session.answer(text);
        if is_ours(text, expected) {
            continue;
        }
        let (found, expected) = (without_ids(&found), without_ids(expected));
        if found != expected {
            wrong.push(format!("{text}\n  Cassandra: {expected}\n  here:      {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    session
}

/// Rows by table and key, each as `column value` lines.
type Texts = BTreeMap<String, Vec<String>>;

fn recorded_rows(name: &str) -> Texts {
    let mut rows = Texts::new();
    let mut key = String::new();
    for line in data(name).lines() {
        match line.strip_prefix("  ") {
            Some(cell) => rows.entry(key.clone()).or_default().push(cell.to_owned()),
            None => key = line.to_owned(),
        }
    }
    rows
}

fn our_rows(session: &Session) -> Texts {
    let system = system_tables();
    let mut rows = Texts::new();
    for (name, of) in &session.rows {
        let table = system.table("system_schema", name).expect("a table");
        let schema = &table.schema;
        for row in of {
            let cell = |column: &halcyon_model::schema::ColumnDef| {
                let bytes = row.get(&column.name)?.as_deref()?;
                Some(to_json_string(column.cql_type.base(), bytes))
            };
            let mut key = name.clone();
            for column in schema.partition_key.iter().chain(&schema.clustering) {
                let _ = write!(key, " {}", cell(column).expect("a key"));
            }
            let is_system = key.contains(" \"system");
            let cells = schema.regulars.iter().filter(|c| c.name != "id" || is_system);
            let mut texts: Vec<String> =
                cells.filter_map(|c| Some(format!("{} {}", c.name, cell(c)?))).collect();
            texts.sort();
            rows.insert(key, texts);
        }
    }
    rows
}

fn compare_schema_rows(session: &Session, recorded: Texts, is_compared: fn(&str) -> bool) {
    let mut ours = our_rows(session);
    ours.retain(|key, _| is_compared(key));
    let mut wrong = Vec::new();
    // Cassandra keeps what `extensions` says and a cell that says nothing any more.
    for (key, expected) in &recorded {
        let found = ours.get(key).cloned().unwrap_or_default();
        let differs: Vec<&String> = expected.iter().filter(|cell| !found.contains(cell)).collect();
        let more: Vec<&String> = found.iter().filter(|cell| !expected.contains(cell)).collect();
        if !differs.is_empty() || !more.is_empty() {
            wrong.push(format!("{key}\n  Cassandra: {differs:?}\n  here:      {more:?}"));
        }
    }
    wrong.extend(
        ours.keys()
            .filter(|key| !recorded.contains_key(*key))
            .map(|key| format!("{key}: only here")),
    );
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    let again = Catalog::from_rows(&session.rows);
    assert_eq!(again.version, session.catalog.version);
    assert_eq!(again.types_version, session.catalog.types_version);
}

/// Executes all; a refusal leaves the schema as it was. Afterwards the stored rows must make the same schema.
fn accepted(statements: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut session = Session::begin();
    let keyspace = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    assert_eq!(session.answer(keyspace), "ok");
    assert_eq!(session.answer("USE ks"), "ok");
    let answers = statements.into_iter().map(|statement| session.answer(&statement)).collect();
    let again = Catalog::from_rows(&session.rows);
    assert_eq!(*again.set_apart, BTreeMap::new());
    assert_eq!(again.version, session.catalog.version);
    assert_eq!(again.types_version, session.catalog.types_version);
    answers
}

/// Proves that types which double with each statement are refused before they are made, whether by CREATE or by ALTER.
#[test]
fn types_that_double() {
    let doubling = (1..12).map(|i| {
        let b = i - 1;
        format!("CREATE TYPE e{i} (a frozen<e{b}>, b frozen<e{b}>, c frozen<e{b}>, d frozen<e{b}>)")
    });
    let first = ["CREATE TYPE e0 (a int)".to_owned()];
    let table = ["CREATE TABLE t (k int PRIMARY KEY, v frozen<e6>, w list<frozen<e5>>)".to_owned()];
    let wide = ["ALTER TYPE e0 ADD b tuple<int>".to_owned()];
    let wider = [format!("ALTER TYPE e0 ADD c tuple<{}int>", "int, ".repeat(100))];
    let answers = accepted(first.into_iter().chain(doubling).chain(table).chain(wide).chain(wider));
    let refused = |answer: &String| answer.contains("unfolds to more than 100000 types");
    assert_eq!(answers.iter().filter(|answer| refused(answer)).count(), 2, "{answers:?}");
    assert!(refused(&answers[8]), "{answers:?}");
    assert!(answers[9].starts_with("2200 Unknown type ks.e8"), "{answers:?}");
    assert_eq!(answers[12], "ok");
    assert!(refused(&answers[14]), "{answers:?}");
}

/// Proves that a chain of types cannot be altered into one that nests deeper than a start reads.
#[test]
fn types_that_nest() {
    let chain = (1..126).map(|i| format!("CREATE TYPE n{i} (a frozen<n{}>)", i - 1));
    let first = ["CREATE TYPE n0 (a int)".to_owned()];
    let deeper = (0..8).map(|i| {
        let inner = format!("{}int{}", "frozen<list<".repeat(i), ">>".repeat(i));
        format!("ALTER TYPE n0 ADD f{i} {inner}")
    });
    let tables = (0..126)
        .step_by(25)
        .map(|i| format!("CREATE TABLE t{i} (k int PRIMARY KEY, v frozen<n{i}>)"));
    let answers = accepted(first.into_iter().chain(chain).chain(tables).chain(deeper));
    let refused = |answer: &&String| answer.contains("nest deeper than 128");
    assert!(answers.iter().any(|answer| refused(&answer)), "{answers:?}");
    let other = |answer: &&String| !refused(answer) && *answer != "ok";
    let others: Vec<_> =
        answers.iter().filter(other).filter(|answer| !answer.contains("Unknown type")).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// Proves that the time of a DROP is one that `dropped_columns` can store, and not before the change.
#[test]
fn columns_are_dropped_at_a_whole_millisecond() {
    let mut session = Session::begin();
    for text in [
        "CREATE KEYSPACE d WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE d.t (k int PRIMARY KEY, v int)",
        "ALTER TABLE d.t DROP v",
    ] {
        assert_eq!(session.answer(text), "ok");
    }
    let dropped = |catalog: &Catalog| {
        catalog.keyspaces["d"].tables["t"]
            .schema
            .dropped
            .iter()
            .map(|c| c.dropped_time)
            .collect::<Vec<_>>()
    };
    assert_eq!(dropped(&session.catalog), [10_001_000]);
    assert_eq!([0, 1, 999, 1000, 1001, -1].map(drop_time), [0, 1000, 1000, 1000, 2000, 0]);
}

/// Proves that settings forbid indexes, count them, and say which kind is made.
#[test]
fn settings_of_indexes() {
    let begin = |settings: IndexSettings| {
        let mut session = Session::begin();
        session.indexes = settings;
        for text in [
            "CREATE KEYSPACE d WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE d.t (k int PRIMARY KEY, v int, w int)",
        ] {
            assert_eq!(session.answer(text), "ok");
        }
        session
    };
    let refused = |settings: IndexSettings, text: &str| begin(settings).answer(text);
    let default = IndexSettings::default();
    let no_default = IndexSettings { has_default: false, ..default.clone() };
    assert_eq!(
        refused(no_default, "CREATE INDEX ON d.t (v)"),
        "2200 Must specify index implementation via USING"
    );
    let mut session = begin(IndexSettings { default_class: "sai".to_owned(), ..default });
    session.guard = guarded(&[
        ("secondary_indexes_per_table_warn_threshold", "1"),
        ("secondary_indexes_per_table_fail_threshold", "2"),
    ]);
    assert_eq!(session.answer("CREATE INDEX ON d.t (v)"), "ok");
    let warned = "ok\nwarning: Guardrail secondary_indexes_per_table violated: Creating secondary index i on table t, current \
                  number of indexes 2 exceeds warning threshold of 1.";
    assert_eq!(session.answer("CREATE INDEX i ON d.t (w)"), warned);
    let too_many = "2200 Guardrail secondary_indexes_per_table violated: Tables cannot have more than 2 secondary indexes, \
                    aborting the creation of secondary index on table t";
    assert_eq!(session.answer("CREATE INDEX ON d.t (w) USING 'legacy_local_table'"), too_many);
    assert!(session.answer("DESCRIBE INDEX d.t_v_idx").contains("USING 'sai'"));
}

fn guarded(settings: &'static [(&'static str, &'static str)]) -> Guard {
    let given = |name: &str| {
        let found = settings.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| Given::List(text.split(", ").map(str::to_owned).collect()))
    };
    let scalar = |name: &str| match given(name)? {
        Given::List(list) if !name.starts_with("table_properties") => {
            list.first().cloned().map(Given::Scalar)
        }
        list => Some(list),
    };
    let properties = halcyon_model::options::NAMES;
    let config = Config::read(&scalar, &properties, false).expect("good settings");
    Guard::new(Some(Arc::new(config)))
}

/// Proves that guardrails warn of statements or refuse them in Cassandra's words, and that options which are ignored are not set.
#[test]
fn guardrails() {
    let mut session = Session::begin();
    session.guard = guarded(&[
        ("keyspaces_warn_threshold", "1"),
        ("keyspaces_fail_threshold", "2"),
        ("columns_per_table_fail_threshold", "3"),
        ("fields_per_udt_fail_threshold", "1"),
        ("vector_dimensions_warn_threshold", "2"),
        ("maximum_replication_factor_warn_threshold", "1"),
        ("table_properties_ignored", "comment"),
        ("compact_tables_enabled", "false"),
        ("uncompressed_tables_enabled", "false"),
        ("drop_keyspace_enabled", "false"),
        ("drop_truncate_table_enabled", "false"),
        ("zero_ttl_on_twcs_warned", "true"),
    ]);
    let keyspace = |name: &str, factor: u8| {
        format!(
            "CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {factor}}}"
        )
    };
    assert_eq!(session.answer(&keyspace("a", 1)), "ok");
    let warned = "ok
warning: Guardrail keyspaces violated: Creating keyspace b, current number of keyspaces 2 exceeds warning threshold of 1.
warning: Guardrail maximum_replication_factor violated: The keyspace b has a replication factor of 2, above the warning threshold of 1.
warning: Your replication factor 2 for keyspace b is higher than the number of nodes 1";
    assert_eq!(session.answer(&keyspace("b", 2)), warned);
    for (text, answer) in [
        (
            &*keyspace("c", 1),
            "2200 Guardrail keyspaces violated: Cannot have more than 2 keyspaces, aborting the creation of keyspace c",
        ),
        (
            "DROP KEYSPACE IF EXISTS nothing",
            "2200 Guardrail drop_keyspace_enabled violated: DROP KEYSPACE functionality is not allowed",
        ),
        (
            "CREATE TABLE a.t (k int PRIMARY KEY, a int, b int, c int)",
            "2200 Guardrail columns_per_table violated: Tables cannot have more than 3 columns, but 4 provided for table t",
        ),
        (
            "CREATE TABLE a.t (k int PRIMARY KEY, v int) WITH COMPACT STORAGE",
            "2200 Guardrail compact_tables violated: Creation of new COMPACT STORAGE tables is not allowed",
        ),
        (
            "CREATE TABLE a.t (k int PRIMARY KEY, v int) WITH compression = {'enabled': 'false'}",
            "2200 Guardrail uncompressed_tables_enabled violated: Uncompressed table is not allowed",
        ),
        (
            "CREATE TYPE a.u (a int, b int)",
            "2200 Guardrail fields_per_udt violated: User types cannot have more than 1 columns, but 2 provided for user type u.",
        ),
        (
            "DROP TABLE a.nothing",
            "2200 Guardrail drop_truncate_table_enabled violated: DROP and TRUNCATE TABLE functionality is not allowed",
        ),
        (
            "CREATE TABLE a.t (k int PRIMARY KEY, v vector<float, 3>) WITH comment = 'c'",
            "ok
warning: Guardrail table_properties violated: Ignoring provided values [comment] as they are not supported for Table Properties (ignored values are: [comment])
warning: Guardrail vector_dimensions violated: Column v has a vector of 3 dimensions, this exceeds the warning threshold of 2.",
        ),
        (
            "ALTER TABLE a.t ADD (b int, c int)",
            "2200 Guardrail columns_per_table violated: Tables cannot have more than 3 columns, but 4 provided for table t",
        ),
    ] {
        session.guard.take_said();
        assert_eq!(session.answer(text), answer, "{text}");
    }
    assert!(session.answer("DESCRIBE TABLE a.t").contains("comment = ''"));
    session.guard.take_said();
    let windows = "CREATE TABLE a.w (k int PRIMARY KEY) WITH compaction = {'class': 'TimeWindowCompactionStrategy'}";
    let warned = "ok\nwarning: Guardrail zero_ttl_on_twcs violated: 0 default_time_to_live on a table with TimeWindowCompactionStrategy compaction strategy is not recommended. It is suspicious";
    assert!(session.answer(windows).starts_with(warned));
}

/// Proves what SASI refuses, that its indexes are rows and back, and that one with unknown options is not taken for one that is kept.
#[test]
fn sasi_indexes() {
    let mut session = Session::begin();
    session.indexes.is_sasi_allowed = true;
    for text in [
        "CREATE KEYSPACE d WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE d.t (k int, j int, c text, v text, n int, m map<int, int>, PRIMARY KEY ((k, j), c)) WITH CLUSTERING ORDER BY (c DESC)",
    ] {
        assert_eq!(session.answer(text), "ok");
    }
    let mut create = |target: &str, options: &str| {
        session.answer(&format!(
            "CREATE CUSTOM INDEX x{target} ON d.t ({target}) USING 'org.apache.cassandra.index.sasi.SASIIndex' WITH OPTIONS = {{{options}}}"
        ))
    };
    for (target, options, refusal) in [
        ("m", "", "2300 complex columns are not yet supported by SASI"),
        ("k", "", "2300 partition key columns are not yet supported by SASI"),
        ("v", "'mode': 'foo'", "2300 Incorrect index mode: foo"),
        ("v", "'mode': 'SPARSE'", "2300 SPARSE mode is only supported on non-literal columns."),
        (
            "n",
            "'mode': 'SPARSE', 'analyzed': 'true'",
            "2300 SPARSE mode doesn't support analyzers.",
        ),
        ("v", "'analyzer_class': 'x.Y'", "2300 Unable to find analyzer class 'x.Y'"),
        (
            "c",
            "'analyzer_class': 'org.apache.cassandra.index.sasi.analyzer.DelimiterAnalyzer'",
            "2300 DelimiterAnalyzer does not support type text",
        ),
        (
            "v",
            "'max_compaction_flush_memory_in_mb': 'x'",
            "2300 Failed to validate custom indexer options: {max_compaction_flush_memory_in_mb=x, \
             class_name=org.apache.cassandra.index.sasi.SASIIndex, target=v}",
        ),
    ] {
        assert_eq!(create(target, options), refusal);
    }
    let warned =
        "ok\nwarning: SASI indexes are experimental and are not recommended for production use.";
    assert_eq!(create("v", "'mode': 'CONTAINS', 'analyzed': 'true'"), warned);
    assert_eq!(create("c", ""), warned);
    let again = Catalog::from_rows(&session.rows);
    let indexes = |catalog: &Catalog| catalog.table("d", "t").expect("the table").indexes.clone();
    assert_eq!(indexes(&again), indexes(&session.catalog));
    assert!(indexes(&again).iter().all(|index| index.sasi().is_some() && index.is_kept()));
    let mut options = indexes(&again)[1].options.clone();
    options.insert("tokenization_enable_stemming".to_owned(), "true".to_owned());
    options.insert("tokenization_locale".to_owned(), "en".to_owned());
    let text = CqlType::Text;
    let stemmed = Index::stored("i".to_owned(), "CUSTOM", options, |_| Some(&text));
    assert!(!stemmed.is_kept(), "{stemmed:?}");
}

/// Proves that masks are rows and back, those of views too, and that a new column has not the mask of a dropped one.
#[test]
fn masks_are_rows_and_back() {
    let mut session = Session::begin();
    for statement in [
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.t (a int MASKED WITH DEFAULT, b text, c int MASKED WITH f(1, null), PRIMARY KEY (a, c))",
        "ALTER TABLE k.t ADD d int MASKED WITH f(7)",
        "ALTER TABLE k.t ADD e int MASKED WITH f(8)",
        "ALTER TABLE k.t DROP e",
        "ALTER TABLE k.t RENAME c TO cc",
        "ALTER TABLE k.t ALTER b MASKED WITH g()",
        "ALTER TABLE k.t ALTER b DROP MASKED",
    ] {
        assert_eq!(session.answer(statement), "ok", "{statement}");
    }
    let again = Catalog::from_rows(&session.rows);
    let masks = &session.catalog.table("k", "t").expect("the table").masks;
    assert_eq!(*masks, again.table("k", "t").expect("the table").masks);
    let shown: Vec<String> = masks.iter().map(|(name, mask)| format!("{name} {mask}")).collect();
    assert_eq!(shown, ["a system.mask_default()", "cc system.f(1, null)", "d system.f(7)"]);
    // As Cassandra leaves it behind.
    let mut stray = session.rows["column_masks"][0].clone();
    stray.insert("column_name".to_owned(), Some(b"b2".to_vec()));
    session.rows.get_mut("column_masks").expect("rows").push(stray);
    assert_eq!(session.answer("ALTER TABLE k.t ADD b2 int"), "ok");
    let again = Catalog::from_rows(&session.rows);
    assert_eq!(again.table("k", "t").expect("the table").masks.len(), 3);
}

/// Proves that the name of an index, stated or made of long names, is refused where a file's name would not fit, and how it is not.
#[test]
fn names_of_indexes_fit_files() {
    let mut session = Session::begin();
    let table = "t".repeat(200);
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        &format!("CREATE TABLE ks.{table} (k int PRIMARY KEY, v int)"),
    ] {
        assert_eq!(session.answer(text), "ok");
    }
    let create = |name: &str| format!("CREATE INDEX {name} ON ks.{table} (v)");
    for name in ["", &"i".repeat(192), &"i".repeat(240)] {
        let refused = session.answer(&create(name));
        assert!(refused.starts_with("2300 Index name must not be more than 191"), "{refused}");
        assert!(refused.contains("CREATE INDEX <name> ON"), "{refused}");
    }
    assert_eq!(session.answer(&create(&"i".repeat(191))), "ok");
}
