//! Tests as data: `tests/data/*.txt` holds texts and what they mean; `HALCYON_ACCEPT=1` rewrites the meanings, to be
//! reviewed as a diff.
//!
//! ```text
//! # what the case shows
//! CREATE TABLE …
//! ----
//! table ks.t …            or  error: line 1:7 …
//! ```

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use halcyon_model::CqlType;
use halcyon_model::options::TableOptions;
use halcyon_model::schema::{ColumnDef, TableSchema};

use crate::Schema;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Runs `meaning` over the cases of a file and compares.
fn check(name: &str, meaning: impl Fn(&str) -> String) {
    let path = data(name);
    let text = std::fs::read_to_string(&path).expect("readable");
    let accept = std::env::var_os("HALCYON_ACCEPT").is_some();
    let mut rewritten = String::new();
    for case in text.split("\n# ").map(|case| case.trim_start_matches("# ")) {
        let (title, rest) = case.split_once('\n').expect("a title");
        let (input, expected) = rest.split_once("\n----\n").unwrap_or((rest.trim_end(), ""));
        let found = meaning(input);
        if accept {
            let _ = write!(rewritten, "# {title}\n{input}\n----\n{found}\n");
        } else {
            assert_eq!(found.trim_end(), expected.trim_end(), "{name}: {title}");
        }
    }
    if accept {
        std::fs::write(path, rewritten.trim_end().to_owned() + "\n").expect("writable");
    }
}

fn push_columns(out: &mut String, kind: &str, columns: &[ColumnDef]) {
    for column in columns {
        let order = if matches!(column.cql_type, CqlType::Reversed(_)) { " desc" } else { "" };
        let _ = write!(out, "  {kind} {} {}{order}", column.name, column.cql_type.cql_name());
        if let CqlType::Udt(udt) = column.cql_type.thawed() {
            let fields = udt
                .fields
                .iter()
                .map(|(name, t)| format!("{} {}", String::from_utf8_lossy(name), t.cql_name()));
            let _ = write!(out, " ({})", fields.collect::<Vec<_>>().join(", "));
        }
        out.push('\n');
    }
}

fn push_options(out: &mut String, options: &TableOptions) {
    if options.compact_storage {
        out.push_str("  compact storage\n");
    }
    let default = TableOptions::default().print();
    for line in options.print().iter().filter(|line| !default.contains(line)) {
        let _ = writeln!(out, "  {line}");
    }
}

fn describe(table: &TableSchema) -> String {
    let mut out = format!("table {}.{}", table.keyspace, table.name);
    if table.strict_liveness {
        out.push_str(" strict");
    }
    if let Some(id) = table.id {
        let _ = write!(out, " id {:032x}", u128::from_be_bytes(id));
    }
    out.push('\n');
    push_columns(&mut out, "key", &table.partition_key);
    push_columns(&mut out, "clustering", &table.clustering);
    push_columns(&mut out, "static", &table.statics);
    push_columns(&mut out, "regular", &table.regulars);
    for d in &table.dropped {
        let kind = format!("{:?}", d.kind).to_lowercase();
        let _ = writeln!(
            out,
            "  dropped {kind} {} {} at {}",
            d.name,
            d.cql_type.cql_name(),
            d.dropped_time
        );
    }
    push_options(&mut out, &table.options);
    out
}

fn schema_meaning(input: &str) -> String {
    match Schema::parse(input, "ks") {
        Err(error) => format!("error: {error}"),
        Ok(schema) => {
            let mut out: String = schema.tables().map(describe).collect();
            for note in &schema.notes {
                let _ = writeln!(out, "note: {note}");
            }
            out
        }
    }
}

#[test]
fn schemas() {
    check("schemas.txt", schema_meaning);
}

#[test]
fn errors() {
    check("errors.txt", schema_meaning);
}

/// Every `schema.cql` among the golden files, which `DESCRIBE` wrote, is understood.
#[test]
fn golden_schemas_are_understood() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let mut seen = 0;
    for version in std::fs::read_dir(testdata).expect("testdata").flatten() {
        for table in std::fs::read_dir(version.path()).into_iter().flatten().flatten() {
            let Ok(text) = std::fs::read_to_string(table.path().join("schema.cql")) else {
                continue;
            };
            let schema =
                Schema::parse(&text, "none").unwrap_or_else(|e| panic!("{:?}: {e}", table.path()));
            assert!(schema.tables().all(|t| t.id.is_some()), "{:?}", table.path());
            assert!(schema.tables().next().is_some(), "{:?}", table.path());
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} golden tables");
}

/// No text, however it is cut or bent, makes a script panic or run away.
#[test]
fn any_text_is_survived() {
    let text = std::fs::read_to_string(data("schemas.txt")).expect("readable");
    for (cut, _) in text.char_indices().step_by(7) {
        let _ = Schema::parse(&text[..cut], "ks");
        let _ = Schema::parse(&text[cut..], "ks");
    }
    let deep = format!(
        "CREATE TABLE t (k {}int{} PRIMARY KEY)",
        "list<".repeat(50_000),
        ">".repeat(50_000)
    );
    assert!(Schema::parse(&deep, "ks").is_err());
    let parens = format!("CREATE TABLE t (k int MASKED WITH f{}", "(".repeat(100_000));
    assert!(Schema::parse(&parens, "ks").is_err());
    let mut doubling = String::from("CREATE TYPE t0 (a int);");
    for i in 1..60 {
        let before = i - 1;
        let _ = write!(doubling, "CREATE TYPE t{i} (a frozen<t{before}>, b frozen<t{before}>);");
    }
    doubling.push_str("CREATE TABLE t (k frozen<t59> PRIMARY KEY)");
    let error = Schema::parse(&doubling, "ks").expect_err("too large").to_string();
    assert!(error.contains("unfolds to more than"), "{error}");
    let circle = "CREATE TYPE a (x frozen<b>); CREATE TYPE b (x frozen<a>); CREATE TABLE t (k frozen<a> PRIMARY KEY)";
    assert!(Schema::parse(circle, "ks").is_err());
}
