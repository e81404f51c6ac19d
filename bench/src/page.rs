//! An experiment's page in Markdown: targets, tables, plots, and how it was measured.

use std::fmt::Write;

use serde_json::Value;

use crate::Result;
use crate::profile::Share;
use crate::record::{Record, Rounds, Target};

/// Made from a record by the experiment.
pub(crate) struct Page {
    pub(crate) title: &'static str,
    pub(crate) targets: Vec<Target>,
    /// Markdown, in their order.
    pub(crate) sections: Vec<String>,
    /// The experiment's `method.md`; a setting's name in braces stands for its value.
    pub(crate) method: &'static str,
    /// Values that the method names besides the settings.
    pub(crate) computed: Vec<(&'static str, String)>,
    /// File names and SVG; the first one is shown at the top.
    pub(crate) plots: Vec<(&'static str, String)>,
}

impl Page {
    pub(crate) fn markdown(&self, record: &Record) -> Result<String> {
        let mut text = format!("# {}\n\n{}.\n\n", self.title, taken_where(&record.machine));
        let _ = writeln!(
            text,
            "Made by `cargo x bench {}`. Ratios of one run are results; absolute times belong to this machine.",
            record.experiment
        );
        if let Some((first, _)) = self.plots.first() {
            let _ = write!(text, "\n![{}]({first})\n", self.title);
        }
        text += &targets(&self.targets);
        for section in self.sections.iter().filter(|section| !section.is_empty()) {
            let _ = write!(text, "\n{}\n", section.trim_end());
        }
        if !record.missing.is_empty() {
            let _ = write!(text, "\n## Missing\n\n- {}\n", record.missing.join("\n- "));
        }
        let method = self.filled_method(&record.settings)?;
        let _ = write!(text, "\n## How it was measured\n\n{}\n", method.trim());
        Ok(text)
    }

    fn filled_method(&self, settings: &Value) -> Result<String> {
        let mut text = String::new();
        let mut rest = self.method;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or("an open brace in a method")?;
            let computed = self.computed.iter().find(|(known, _)| *known == name);
            let value = match (computed, &settings[name]) {
                (Some((_, value)), _) => value.clone(),
                (None, Value::Null) => return Err(format!("nothing is called {name}").into()),
                (None, Value::String(word)) => word.clone(),
                (None, value) => value.to_string(),
            };
            text += before;
            text += &value;
            rest = after;
        }
        Ok(text + rest)
    }
}

/// The sentence on commit and machine that opens a page.
fn taken_where(machine: &Value) -> String {
    let word = |name: &str| machine[name].as_str().unwrap_or("?").to_owned();
    let number = |name: &str| machine[name].as_u64().unwrap_or(0);
    let uncommitted = machine["uncommitted"] == true;
    format!(
        "Commit {}{}, {}; {} × {}, {} MiB of memory, Linux {}",
        word("commit"),
        if uncommitted { " (and uncommitted changes)" } else { "" },
        word("taken_at"),
        number("cores"),
        word("cpu"),
        number("memory_mib"),
        word("kernel"),
    )
}

fn targets(targets: &[Target]) -> String {
    if targets.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n## Targets\n\n| | to reach | measured | |\n|---|---|---|---|\n");
    for Target { what, to_reach, measured, reached } in targets {
        let verdict = if *reached { "reached" } else { "missed" };
        let _ = writeln!(text, "| {what} | {to_reach} | {measured} | {verdict} |");
    }
    text
}

/// A column of a table, or the bars of a plot: a figure, scaled for a reader.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) key: &'static str,
    pub(crate) factor: f64,
    pub(crate) decimals: usize,
    pub(crate) unit: &'static str,
    with_spread: bool,
    derived: Option<fn(Rounds<'_>) -> Option<String>>,
}

impl Column {
    pub(crate) const fn new(title: &'static str, key: &'static str, decimals: usize) -> Column {
        Column { title, key, factor: 1.0, decimals, unit: "", with_spread: false, derived: None }
    }

    /// What is not a figure of the turns themselves.
    pub(crate) const fn derived(
        title: &'static str,
        of: fn(Rounds<'_>) -> Option<String>,
    ) -> Column {
        Column { derived: Some(of), ..Column::new(title, "", 0) }
    }

    pub(crate) const fn times(self, factor: f64) -> Column {
        Column { factor, ..self }
    }

    pub(crate) const fn unit(self, unit: &'static str) -> Column {
        Column { unit, ..self }
    }

    /// The least and the most behind the median.
    pub(crate) const fn with_spread(self) -> Column {
        Column { with_spread: true, ..self }
    }

    pub(crate) fn shown(&self, value: f64) -> String {
        format!("{:.*}{}", self.decimals, value * self.factor, self.unit)
    }

    fn cell(&self, rounds: Rounds<'_>) -> String {
        if let Some(of) = self.derived {
            return of(rounds).unwrap_or_default();
        }
        let Some(spread) = rounds.spread(self.key) else { return String::new() };
        let median = self.shown(spread.median);
        if self.with_spread {
            return format!("{median} ({}–{})", self.shown(spread.min), self.shown(spread.max));
        }
        median
    }
}

/// A row for each contender under each of the headings; `corner` is the title of the headings' column, without which there is none.
pub(crate) fn table<'a>(
    record: &Record,
    corner: Option<&str>,
    headings: impl IntoIterator<Item = (&'a str, &'a str)>,
    columns: &[Column],
) -> String {
    let mut rows = String::new();
    for (heading, shown) in headings {
        for who in record.contenders(heading) {
            let cells = columns.iter().map(|column| column.cell(record.rounds(heading, who)));
            let cells: Vec<String> = cells.collect();
            let shown = corner.map_or(String::new(), |_| format!("{shown} | "));
            let _ = writeln!(rows, "| {shown}{} | {} |", who.name(), cells.join(" | "));
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
    let corner =
        corner.map_or(String::new(), |title| format!("{title} | ").trim_start().to_owned());
    let lines = "---|".repeat(columns.len() + 1 + usize::from(!corner.is_empty()));
    format!("| {corner}| {} |\n|{lines}\n{rows}", titles.join(" | "))
}

/// All headings as they are called.
pub(crate) fn plain<'a>(headings: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    headings.iter().map(|heading| (*heading, *heading)).collect()
}

/// What `perf` found, by the name under which it was kept.
pub(crate) fn profile(record: &Record, name: &str) -> Option<String> {
    let shares = record.beside.get("profiles")?.get(name)?;
    Some(Share::table(&serde_json::from_value::<Vec<Share>>(shares.clone()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Contender, Measurements};

    /// A table has a row for each contender; what was not measured stays empty; a method's braces are filled, and an unknown name is
    /// an error.
    #[test]
    fn a_page_says_what_the_record_has() {
        const COLUMNS: &[Column] =
            &[Column::new("per second", "rate", 0), Column::new("wait", "wait", 1).unit(" µs")];
        let mut record = Record::new("E0", serde_json::json!({ "rounds": 2 }));
        let (ours, theirs) = (Contender::new("halcyon", "a"), Contender::new("5.0.9", "b"));
        record.add("1 client", &ours, Measurements::default().with("rate", 10.0).with("wait", 1.0));
        record.add("1 client", &theirs, Measurements::default().with("rate", 5.0));
        record.miss("no device".to_owned());
        let tables = table(&record, Some("clients"), [("1 client", "1")], COLUMNS);
        let mut page = Page {
            title: "nothing",
            targets: Vec::new(),
            sections: vec![tables],
            method: "- {rounds} rounds of {what}.",
            computed: vec![("what", "work".to_owned())],
            plots: Vec::new(),
        };
        let text = page.markdown(&record).expect("a page");
        assert!(text.contains("| clients | | per second | wait |\n|---|---|---|---|\n"), "{text}");
        assert!(text.contains("| 1 | Halcyon a | 10 | 1.0 µs |"), "{text}");
        assert!(text.contains("| 1 | Cassandra 5.0.9 b | 5 |  |"), "{text}");
        assert!(text.contains("- no device") && text.contains("- 2 rounds of work."), "{text}");
        page.computed.clear();
        assert!(page.markdown(&record).is_err());
    }
}
