//! The list of experiments.
//!
//! An experiment keeps its `records.json` in a folder of `bench/`, and beside it the `README.md` and the plots that follow from it. A run
//! on a rented volume has a folder of its own. `cargo x bench report` makes these again from the records, and `bench/README.md`, the
//! index of all pages.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use halcyon_oracle::{Result, repository};

use crate::invocation::{Experiment, Listed, folder, write_page};
use crate::record::Record;
use crate::{
    access, chores, cold, messaging, mixed, observers, queries, ring, scale, steps,
    under_compaction,
};

const INDEX: &str = "bench/README.md";

/// In the order of the index.
const EXPERIMENTS: [Listed; 11] = [
    under_compaction::Arguments::LISTED,
    ring::Arguments::LISTED,
    cold::Arguments::LISTED,
    messaging::Arguments::LISTED,
    mixed::Arguments::LISTED,
    steps::Arguments::LISTED,
    chores::Arguments::LISTED,
    access::Arguments::LISTED,
    observers::Arguments::LISTED,
    scale::Arguments::LISTED,
    queries::Arguments::LISTED,
];

/// Experiments whose question is answered: record and page stay, the program was removed.
const ANSWERED: [(&str, &str); 5] = [
    ("E3", "What does a single-row read cost at the device?"),
    ("E4", "How many durable writes does the commit log take?"),
    ("E5", "Does more load ever make a write faster: are wake-ups lost?"),
    ("compaction", "How fast is a major compaction, and what does it cost?"),
    ("node", "What does a request cost?"),
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

/// Makes all pages again, and their index.
pub(crate) fn report() -> Result<()> {
    for (experiment, folder) in taken() {
        let records = records(&folder);
        let into = records.parent().ok_or("no folder")?;
        write_page(experiment, &mut Record::load(&records)?, into)?;
    }
    fs::write(repository().join(INDEX), index()?)?;
    eprintln!("bench: written to {INDEX}");
    Ok(())
}

fn index() -> Result<String> {
    let mut rows = String::from("| question | taken | repeat with |\n|---|---|---|\n");
    for Listed { name, asks, .. } in &EXPERIMENTS {
        if !records(name).exists() {
            let _ = writeln!(rows, "| {asks} | not yet | `cargo x bench {name}` |");
        }
    }
    for (Listed { name, asks, .. }, folder) in taken() {
        let record = Record::load(&records(&folder))?;
        let rented = record.rented.map_or("", |_| " --rented");
        let link = format!("[{asks}]({folder}/README.md)");
        let _ =
            writeln!(rows, "| {link} | {} | `cargo x bench {name}{rented}` |", taken_at(&record));
    }
    let mut answered = String::from("| answered question | taken |\n|---|---|\n");
    for (name, asks) in ANSWERED {
        let record = Record::load(&records(name))?;
        let _ = writeln!(answered, "| [{asks}]({name}/README.md) | {} |", taken_at(&record));
    }
    Ok(format!("{INTRO}\n{rows}\n{answered}"))
}

/// Time and commit of a record.
fn taken_at(record: &Record) -> String {
    let word = |of: &str| record.machine[of].as_str().unwrap_or("?").to_owned();
    format!("{} at {}", word("taken_at"), word("commit"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invocation::files;
    use crate::page::Files;

    /// What is committed is what the committed records give: pages, plots and the index. `cargo x bench report` makes them again. An
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
        let committed = fs::read_to_string(repository().join(INDEX)).unwrap_or_default();
        assert!(index().expect("the index") == committed, "{INDEX} differs");
    }
}
