//! The list of experiments, and the one page of all of them.
//!
//! An experiment keeps in a folder of `bench/` its `records.json`, and made of it `README.md` and plots. `cargo x bench report` makes
//! these again from the records, and `docs/experiments.md` of all pages: headings one level lower, plots where they are.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use halcyon_oracle::repository;

use crate::Result;
use crate::page::Page;
use crate::record::Record;

const DOCUMENT: &str = "docs/experiments.md";

pub(crate) struct Experiment {
    /// As `cargo x bench` is told it, and its folder.
    pub(crate) name: &'static str,
    asks: &'static str,
    page: fn(&Record) -> Result<Page>,
}

/// In the order of the document.
const EXPERIMENTS: [Experiment; 7] = [
    Experiment {
        name: "E1",
        asks: "How long do reads take while it compacts (E1), and who made them wait (E2)?",
        page: crate::under_compaction::page,
    },
    Experiment {
        name: "E3",
        asks: "What does a single-row read cost at the device?",
        page: crate::read_amplification::page,
    },
    Experiment {
        name: "E4",
        asks: "How many durable writes does the commit log take?",
        page: crate::commit_log::page,
    },
    Experiment {
        name: "E5",
        asks: "Does more load ever make a write faster: are wake-ups lost?",
        page: crate::clients::page,
    },
    Experiment {
        name: "E6",
        asks: "Does completed work of a message store compact away?",
        page: crate::messaging::page,
    },
    Experiment {
        name: "compaction",
        asks: "How fast is a major compaction, and what does it cost?",
        page: crate::compaction::page,
    },
    Experiment { name: "node", asks: "What does a request cost?", page: crate::node::page },
];

const INTRO: &str = include_str!("../experiments.md");

pub(crate) fn find(name: &str) -> Result<&'static Experiment> {
    let found = EXPERIMENTS.iter().find(|experiment| experiment.name == name);
    Ok(found.ok_or_else(|| format!("no experiment {name}"))?)
}

/// Writes a record, and what is made of it. The targets are part of the record, for programs that read it.
pub(crate) fn write_page(experiment: &Experiment, record: &mut Record, out: &Path) -> Result<()> {
    let page = (experiment.page)(record)?;
    record.targets = page.targets.clone();
    let text = page.markdown(record)?;
    fs::write(out.join("records.json"), format!("{:#}\n", serde_json::to_value(&record)?))?;
    fs::write(out.join("README.md"), text)?;
    for (name, plot) in &page.plots {
        fs::write(out.join(name), plot)?;
    }
    Ok(())
}

/// Makes all pages again, and the document.
pub(crate) fn report() -> Result<()> {
    for experiment in &EXPERIMENTS {
        let folder = repository().join("bench").join(experiment.name);
        if folder.join("records.json").exists() {
            write_page(experiment, &mut Record::load(&folder.join("records.json"))?, &folder)?;
        }
    }
    fs::write(repository().join(DOCUMENT), document()?)?;
    eprintln!("bench: written to {DOCUMENT}");
    Ok(())
}

fn document() -> Result<String> {
    let mut index = String::from("| run again by | asks | taken |\n|---|---|---|\n");
    let mut pages = String::new();
    for Experiment { name, asks, .. } in &EXPERIMENTS {
        let folder = repository().join("bench").join(name);
        if !folder.join("records.json").exists() {
            let _ = writeln!(index, "| `cargo x bench {name}` | {asks} | not yet |");
            continue;
        }
        let record = Record::load(&folder.join("records.json"))?;
        let word = |of: &str| record.machine[of].as_str().unwrap_or("?").to_owned();
        let (at, commit) = (word("taken_at"), word("commit"));
        let _ = writeln!(index, "| `cargo x bench {name}` | {asks} | {at} at {commit} |");
        pages.push('\n');
        pages += &lowered(&fs::read_to_string(folder.join("README.md"))?, name);
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

    #[test]
    fn a_page_becomes_a_chapter() {
        let page =
            "# E9\n\n![Plot](plot.svg), [Linux](https://kernel.org)\n```sh\n# a comment\n```\n";
        let expected = "## E9\n\n![Plot](../bench/E9/plot.svg), [Linux](https://kernel.org)\n```sh\n# a comment\n```\n";
        assert_eq!(lowered(page, "E9"), expected);
    }

    /// What is committed is what the committed records give: pages, plots and the document. `cargo x bench report` makes them again.
    #[test]
    fn committed_pages_follow_from_their_records() {
        for experiment in &EXPERIMENTS {
            let folder = repository().join("bench").join(experiment.name);
            let mut record = Record::load(&folder.join("records.json")).expect("a record");
            let page = (experiment.page)(&record).expect("a page");
            assert_eq!(page.targets, record.targets, "{}", experiment.name);
            record.targets = page.targets.clone();
            let committed = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
            let text = page.markdown(&record).expect("Markdown");
            assert!(text == committed("README.md"), "{}/README.md differs", experiment.name);
            for (name, plot) in &page.plots {
                assert!(*plot == committed(name), "{}/{name} differs", experiment.name);
            }
        }
        let committed = fs::read_to_string(repository().join(DOCUMENT)).unwrap_or_default();
        assert!(document().expect("the document") == committed, "{DOCUMENT} differs");
    }
}
