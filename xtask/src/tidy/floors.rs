//! Compares the crate table of ARCHITECTURE.md with `cargo metadata`.
//!
//! A row reads `| floor | crate | may use |`, e.g. `| 2 | sstable | io, stream, model |`; `–` or nothing
//! means no crate. A crate may use only what its row names, and a row may name only lower floors.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::metadata;
use crate::{Result, repository};

#[derive(Debug, PartialEq)]
struct Row {
    floor: u32,
    may_use: BTreeSet<String>,
}

type Table = BTreeMap<String, Row>;
type Used = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check() -> Result<Vec<String>> {
    let path = repository().join("ARCHITECTURE.md");
    let Ok(text) = fs::read_to_string(path) else {
        return Ok(vec!["ARCHITECTURE.md: missing, and with it the table of crates".to_owned()]);
    };
    Ok(compare(&parse(&text), &used_crates()?))
}

fn parse(text: &str) -> Table {
    text.lines().filter_map(parse_row).collect()
}

fn parse_row(line: &str) -> Option<(String, Row)> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = inner.split('|').map(|cell| cell.trim()).collect();
    let [floor, name, may_use, ..] = cells[..] else { return None };
    let may_use = may_use.split(',').map(plain).filter(|used| !used.is_empty()).collect();
    Some((plain(name), Row { floor: floor.parse().ok()?, may_use }))
}

fn plain(cell: &str) -> String {
    cell.trim_matches(|letter: char| " `-–—".contains(letter)).to_owned()
}

fn used_crates() -> Result<Used> {
    let crates = metadata::packages()?.into_iter().filter(|package| package.is_crate);
    Ok(crates.map(|package| (package.name, package.uses)).collect())
}

fn compare(table: &Table, used: &Used) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find = |text: String| findings.push(format!("ARCHITECTURE.md: {text}"));
    for name in table.keys().filter(|name| !used.contains_key(*name)) {
        find(format!("names crate {name}, which is not in the workspace"));
    }
    for (name, uses) in used {
        let Some(row) = table.get(name) else {
            find(format!("no row for crate {name}"));
            continue;
        };
        for other in uses.difference(&row.may_use) {
            find(format!("crate {name} uses {other}, which its row does not allow"));
        }
        for other in &row.may_use {
            match table.get(other) {
                None => find(format!("the row of {name} allows {other}, which has no row")),
                Some(below) if below.floor >= row.floor => {
                    find(format!(
                        "the row of {name} allows {other}, which is not on a lower floor"
                    ));
                }
                Some(_) => {}
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
| floor | crate | may use |
|---|---|---|
| 2 | `sstable` | io, model |
| 1 | io | model |
| 0 | model | – |
";

    fn used(rows: &[(&str, &[&str])]) -> Used {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        rows.iter().map(|(name, names)| ((*name).to_owned(), owned(names))).collect()
    }

    #[test]
    fn a_faithful_table_has_no_findings() {
        let workspace = used(&[("sstable", &["io", "model"]), ("io", &[]), ("model", &[])]);
        assert_eq!(compare(&parse(TEXT), &workspace), Vec::<String>::new());
    }

    #[test]
    fn each_difference_is_found() {
        let workspace = used(&[("sstable", &["cql"]), ("io", &[]), ("cql", &[])]);
        let findings = compare(&parse(TEXT), &workspace).join("\n");
        assert!(
            findings.contains("names crate model, which is not in the workspace"),
            "{findings}"
        );
        assert!(findings.contains("no row for crate cql"), "{findings}");
        assert!(findings.contains("crate sstable uses cql"), "{findings}");
    }

    #[test]
    fn a_row_may_not_look_up() {
        let text = TEXT.replace("| 0 | model | – |", "| 0 | model | io |");
        let workspace = used(&[("sstable", &[]), ("io", &[]), ("model", &[])]);
        let findings = compare(&parse(&text), &workspace).join("\n");
        assert!(findings.contains("the row of model allows io"), "{findings}");
    }
}
