//! The list of experiments, and the one page of all of them.
//!
//! An experiment keeps in a folder of `bench/` its `records.json`, and made of it `README.md` and plots; on a rented volume in another.
//! `cargo x bench report` makes these again from the records, and `docs/experiments.md` of all pages: headings one level lower, plots where
//! they are.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use halcyon_oracle::{Result, repository};

use crate::invocation::{Experiment, Listed, folder, write_page};
use crate::record::Record;
use crate::{
    chores, clients, cold, commit_log, compaction, messaging, mixed, node, queries,
    read_amplification, ring, steps, under_compaction,
};

const DOCUMENT: &str = "docs/experiments.md";

/// In the order of the document.
const EXPERIMENTS: [Listed; 13] = [
    under_compaction::Arguments::LISTED,
    ring::Arguments::LISTED,
    read_amplification::Arguments::LISTED,
    cold::Arguments::LISTED,
    commit_log::Arguments::LISTED,
    clients::Arguments::LISTED,
    messaging::Arguments::LISTED,
    mixed::Arguments::LISTED,
    steps::Arguments::LISTED,
    chores::Arguments::LISTED,
    compaction::Arguments::LISTED,
    node::Arguments::LISTED,
    queries::Arguments::LISTED,
];

const INTRO: &str = include_str!("../experiments.md");

/// Those that have been taken, each with its folder's name.
fn taken() -> impl Iterator<Item = (&'static Listed, String)> {
    let all = EXPERIMENTS.iter().flat_map(|experiment| {
        [false, true].map(|rented| (experiment, folder(experiment.name, rented)))
    });
    all.filter(|(_, folder)| records(folder).exists())
}

fn records(folder: &str) -> PathBuf {
    repository().join("bench").join(folder).join("records.json")
}

/// Makes all pages again, and the document.
pub(crate) fn report() -> Result<()> {
    for (experiment, folder) in taken() {
        let records = records(&folder);
        let into = records.parent().ok_or("no folder")?;
        write_page(experiment, &mut Record::load(&records)?, into)?;
    }
    fs::write(repository().join(DOCUMENT), document()?)?;
    eprintln!("bench: written to {DOCUMENT}");
    Ok(())
}

fn document() -> Result<String> {
    let mut index = String::from("| run again by | asks | taken |\n|---|---|---|\n");
    let mut pages = String::new();
    for Listed { name, asks, .. } in &EXPERIMENTS {
        if !records(name).exists() {
            let _ = writeln!(index, "| `cargo x bench {name}` | {asks} | not yet |");
        }
    }
    for (Listed { name, asks, .. }, folder) in taken() {
        let record = Record::load(&records(&folder))?;
        let word = |of: &str| record.machine[of].as_str().unwrap_or("?").to_owned();
        let (at, commit) = (word("taken_at"), word("commit"));
        let rented = record.rented.map_or("", |_| " --rented");
        let _ = writeln!(index, "| `cargo x bench {name}{rented}` | {asks} | {at} at {commit} |");
        pages.push('\n');
        let page = records(&folder).with_file_name("README.md");
        pages += &lowered(&fs::read_to_string(page)?, &folder);
    }
    Ok(format!("{INTRO}\n{index}{pages}"))
}

/// Headings one level lower; links to files beside the page lead there from `docs/`.
fn lowered(page: &str, folder: &str) -> String {
    let mut text = String::new();
    let mut is_code = false;
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        if line.starts_with('#') && !is_code {
            text.push('#');
        }
        text += &pointed(line, folder);
        text.push('\n');
    }
    text
}

fn pointed(line: &str, folder: &str) -> String {
    let mut pieces = line.split("](");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_relative = !piece.starts_with(['/', '#', '.']) && !piece.starts_with("http");
        let way = if is_relative { format!("../bench/{folder}/") } else { String::new() };
        let _ = write!(text, "]({way}{piece}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invocation::files;
    use crate::page::Files;

    #[test]
    fn a_page_becomes_a_chapter() {
        let page =
            "# E9\n\n![Plot](plot.svg), [Linux](https://kernel.org)\n```sh\n# a comment\n```\n";
        let expected = "## E9\n\n![Plot](../bench/E9/plot.svg), [Linux](https://kernel.org)\n```sh\n# a comment\n```\n";
        assert_eq!(lowered(page, "E9"), expected);
    }

    /// What is committed is what the committed records give: pages, plots and the document. `cargo x bench report` makes them again. An
    /// experiment may not have been taken yet.
    #[test]
    fn committed_pages_follow_from_their_records() {
        for (experiment, folder) in taken() {
            let folder = repository().join("bench").join(folder);
            let mut record = Record::load(&folder.join("records.json")).expect("a record");
            let targets = record.targets.clone();
            let Files { text, plots } = files(experiment, &mut record).expect("a page");
            assert_eq!(targets, record.targets, "{}", experiment.name);
            let committed = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(text == committed("README.md"), "{}/README.md differs", experiment.name);
            for (name, plot) in &plots {
                assert!(*plot == committed(name), "{}/{name} differs", experiment.name);
            }
        }
        let committed = fs::read_to_string(repository().join(DOCUMENT)).unwrap_or_default();
        assert!(document().expect("the document") == committed, "{DOCUMENT} differs");
    }
}
