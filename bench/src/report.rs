//! `cargo x bench report`: one page of what every experiment has left in `bench/`.
//!
//! An experiment keeps `records.json` (with its machine), `README.md` (its tables and its method) and its plots in a folder of its own.
//! The page is their sum: headings one level lower, plots where they lie.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{Result, repository};

const PAGE: &str = "docs/experiments.md";

struct Listed {
    folder: &'static str,
    asks: &'static str,
}

/// In the order of the page.
const LISTED: [Listed; 7] = [
    Listed {
        folder: "E1",
        asks: "How long do reads take while it compacts (E1), and who made them wait (E2)?",
    },
    Listed { folder: "E3", asks: "What does a single-row read cost at the device?" },
    Listed { folder: "E4", asks: "How many durable writes does the commit log take?" },
    Listed { folder: "E5", asks: "Does more load ever make a write faster: are wake-ups lost?" },
    Listed { folder: "E6", asks: "Does completed work of a message store compact away?" },
    Listed { folder: "compaction", asks: "How fast is a major compaction, and what does it cost?" },
    Listed { folder: "node", asks: "What does a request cost?" },
];

const INTRO: &str = "# The experiments

Each of them runs Halcyon and its peers at the same work, on the same files, under the same limits, in one run on one machine, in turns. A ratio of one run
is a result; an absolute time belongs to its machine. What a machine cannot do is said where it is missing. Do not edit this page: `cargo x bench report` makes it
of what the experiments have left in `bench/`.

Run one again: `cargo x bench NAME`, as root (for page cache, cgroups and the kernel's tracer), on a quiet machine; `--help` tells what can be varied,
`--tiny` shows in seconds that it still works. Then `cargo x bench report`.

";

pub(super) fn run() -> Result<()> {
    let bench = repository().join("bench");
    let mut index = String::from("| run again by | asks | taken |\n|---|---|---|\n");
    let mut pages = String::new();
    for Listed { folder, asks } in LISTED {
        let Some((record, readme)) = read(&bench.join(folder)) else {
            let _ = writeln!(index, "| `cargo x bench {folder}` | {asks} | not yet |");
            continue;
        };
        let word = |name: &str| record["machine"][name].as_str().unwrap_or("?").to_owned();
        let _ = writeln!(
            index,
            "| `cargo x bench {folder}` | {asks} | {} at {} |",
            word("taken_at"),
            word("commit"),
        );
        pages += "\n";
        pages += &lowered(&readme, folder);
    }
    fs::write(repository().join(PAGE), format!("{INTRO}{index}{pages}"))?;
    eprintln!("bench: written to {PAGE}");
    Ok(())
}

fn read(folder: &Path) -> Option<(Value, String)> {
    let record = fs::read(folder.join("records.json")).ok()?;
    Some((
        serde_json::from_slice(&record).ok()?,
        fs::read_to_string(folder.join("README.md")).ok()?,
    ))
}

/// Headings one level lower; what lies beside the README is found from `docs/`.
fn lowered(readme: &str, folder: &str) -> String {
    let mut text = String::new();
    let mut is_code = false;
    for line in readme.lines() {
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
    fn a_page_of_its_own_becomes_a_chapter() {
        let readme =
            "# E9\n\n![Plot](plot.svg), [Linux](https://kernel.org)\n```sh\n# a comment\n```\n";
        let expected = "## E9\n\n![Plot](../bench/E9/plot.svg), [Linux](https://kernel.org)\n```sh\n# a comment\n```\n";
        assert_eq!(lowered(readme, "E9"), expected);
    }
}
