//! What an experiment measured, as rows of figures: the records, tables and bars are made of it.
//!
//! A row is one contender's turn under one heading (`10 clients`, `chunks of 4 KiB, read-ahead 0`). Turns of the same contender under the same
//! heading are rounds: shown are their medians, drawn with their spread.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::chart::{self, Chart};
use super::contender::{Contender, Spread};
use super::{Places, machine, taken_where};
use crate::Result;

/// A figure that turns have, in the order in which they give them.
pub(super) struct Column {
    /// In records.
    pub(super) key: &'static str,
    /// In tables.
    pub(super) title: &'static str,
    pub(super) decimals: usize,
    pub(super) is_drawn: bool,
}

pub(super) struct Turn {
    pub(super) heading: String,
    pub(super) contender: Contender,
    /// One for each column; not a number where it could not be measured.
    pub(super) figures: Vec<f64>,
}

pub(super) struct Sheet {
    /// `E5`.
    experiment: &'static str,
    title: &'static str,
    columns: &'static [Column],
    machine: Value,
    settings: Value,
    turns: Vec<Turn>,
    /// What was measured beside, by name.
    pub(super) beside: Map<String, Value>,
    /// What could not be measured, and why.
    pub(super) missing: Vec<String>,
}

/// A target of the project, and what was measured.
pub(super) struct Target {
    pub(super) what: String,
    pub(super) wanted: String,
    pub(super) measured: String,
    pub(super) is_met: bool,
}

impl Target {
    /// A section of a report; nothing if there are none.
    pub(super) fn table(targets: &[Target]) -> String {
        if targets.is_empty() {
            return String::new();
        }
        let mut text =
            String::from("\n## Targets\n\n| | to reach | measured | |\n|---|---|---|---|\n");
        for Target { what, wanted, measured, is_met } in targets {
            let verdict = if *is_met { "reached" } else { "missed" };
            let _ = writeln!(text, "| {what} | {wanted} | {measured} | {verdict} |");
        }
        text
    }
}

impl Sheet {
    pub(super) fn new(
        experiment: &'static str,
        title: &'static str,
        columns: &'static [Column],
        settings: Value,
    ) -> Sheet {
        Sheet {
            experiment,
            title,
            columns,
            machine: machine::describe(),
            settings,
            turns: Vec::new(),
            beside: Map::new(),
            missing: Vec::new(),
        }
    }

    /// Records, tables and the plot.
    pub(super) fn write(&self, places: &Places, targets: &[Target], method: &str) -> Result<()> {
        let table = self.markdown(targets, method);
        places.write(&self.to_json(targets), &table, self.svg())
    }

    pub(super) fn add(&mut self, heading: &str, contender: &Contender, figures: Vec<f64>) {
        let shown: Vec<String> = self
            .columns
            .iter()
            .zip(&figures)
            .map(|(column, figure)| format!("{} {figure:.*}", column.title, column.decimals))
            .collect();
        eprintln!("bench: {heading}: {}: {}", contender.name(), shown.join(", "));
        let (heading, contender) = (heading.to_owned(), contender.clone());
        self.turns.push(Turn { heading, contender, figures });
    }

    /// How many turns there were.
    pub(super) fn taken(&self) -> usize {
        self.turns.len()
    }

    pub(super) fn miss(&mut self, why: String) {
        eprintln!("bench: {why}");
        if !self.missing.contains(&why) {
            self.missing.push(why);
        }
    }

    pub(super) fn headings(&self) -> Vec<&str> {
        let mut headings: Vec<&str> = Vec::new();
        for turn in &self.turns {
            if !headings.contains(&turn.heading.as_str()) {
                headings.push(&turn.heading);
            }
        }
        headings
    }

    /// In the order of their first turns.
    pub(super) fn contenders(&self, heading: &str) -> Vec<&Contender> {
        let mut contenders: Vec<&Contender> = Vec::new();
        for turn in self.turns.iter().filter(|turn| turn.heading == heading) {
            if !contenders.contains(&&turn.contender) {
                contenders.push(&turn.contender);
            }
        }
        contenders
    }

    /// The rounds of a contender, as one.
    pub(super) fn spread(&self, heading: &str, who: &Contender, key: &str) -> Option<Spread> {
        let at = self.columns.iter().position(|column| column.key == key)?;
        let of = self.turns.iter().filter(|t| t.heading == heading && t.contender == *who);
        let known = of.filter_map(|turn| turn.figures.get(at).copied());
        let values: Vec<f64> = known.filter(|figure| !figure.is_nan()).collect();
        (!values.is_empty()).then(|| Spread::of(values))
    }

    pub(super) fn median(&self, heading: &str, who: &Contender, key: &str) -> Option<f64> {
        self.spread(heading, who, key).map(|spread| spread.median)
    }

    pub(super) fn to_json(&self, targets: &[Target]) -> Value {
        let turn = |turn: &Turn| {
            let figures = self.columns.iter().zip(&turn.figures);
            let figures: Map<String, Value> =
                figures.map(|(column, figure)| (column.key.to_owned(), json!(figure))).collect();
            json!({
                "heading": turn.heading,
                "peer": turn.contender.peer,
                "mode": turn.contender.mode,
                "figures": figures,
            })
        };
        let target = |target: &Target| {
            json!({
                "what": target.what,
                "to_reach": target.wanted,
                "measured": target.measured,
                "reached": target.is_met,
            })
        };
        json!({
            "experiment": self.experiment,
            "title": self.title,
            "machine": self.machine,
            "settings": self.settings,
            "targets": targets.iter().map(target).collect::<Vec<_>>(),
            "turns": self.turns.iter().map(turn).collect::<Vec<_>>(),
            "beside": self.beside,
            "missing": self.missing,
        })
    }

    /// `method` is text of the experiment's own.
    pub(super) fn markdown(&self, targets: &[Target], method: &str) -> String {
        let mut text = format!(
            "# {}: {}\n\n{}.\n\nMade by `cargo x bench {}`. Ratios of one run are results; absolute times belong to this machine.\n\n\
             ![{}](plot.svg)\n",
            self.experiment,
            self.title,
            taken_where(&self.machine),
            self.experiment,
            self.title
        );
        text += &Target::table(targets);
        let titles: Vec<&str> = self.columns.iter().map(|column| column.title).collect();
        let _ = write!(
            text,
            "\n## Figures\n\n| | | {} |\n|---|---|{}\n",
            titles.join(" | "),
            "---|".repeat(titles.len())
        );
        for heading in self.headings() {
            for who in self.contenders(heading) {
                let shown = self.columns.iter().map(|column| self.cell(heading, who, column));
                let shown: Vec<String> = shown.collect();
                let _ = writeln!(text, "| {heading} | {} | {} |", who.name(), shown.join(" | "));
            }
        }
        if !self.missing.is_empty() {
            let _ = write!(text, "\n## Missing\n\n- {}\n", self.missing.join("\n- "));
        }
        let _ = write!(text, "\n## How it was measured\n\n{}\n", method.trim());
        text
    }

    fn cell(&self, heading: &str, who: &Contender, column: &Column) -> String {
        match self.spread(heading, who, column.key) {
            Some(spread) => format!("{:.*}", column.decimals, spread.median),
            None => String::new(),
        }
    }

    pub(super) fn svg(&self) -> String {
        let drawn = || self.columns.iter().filter(|column| column.is_drawn);
        let row = |heading: &str, who: &Contender| chart::Row {
            label: who.name().replace("Cassandra ", "C* "),
            is_halcyon: who.is_halcyon(),
            spreads: drawn()
                .map(|column| self.spread(heading, who, column.key).unwrap_or_default())
                .collect(),
        };
        let section = |heading: &str| chart::Section {
            title: heading.to_owned(),
            rows: self.contenders(heading).into_iter().map(|who| row(heading, who)).collect(),
            bounds: Vec::new(),
        };
        Chart {
            title: self.title,
            columns: drawn()
                .map(|c| chart::Column { title: c.title, decimals: c.decimals, unit: "" })
                .collect(),
            sections: self.headings().into_iter().map(section).collect(),
        }
        .svg()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds become one row, in the order of first turns; what was not measured is left empty.
    #[test]
    fn rounds_are_one_row() {
        const COLUMNS: &[Column] = &[
            Column { key: "rate", title: "per second", decimals: 0, is_drawn: true },
            Column { key: "wait", title: "wait µs", decimals: 1, is_drawn: false },
        ];
        let mut sheet = Sheet::new("E0", "nothing", COLUMNS, Value::Null);
        sheet.miss("no device".to_owned());
        let (ours, theirs) = (Contender::new("halcyon", "a"), Contender::new("5.0.9", "b"));
        sheet.add("1 client", &ours, vec![10.0, 1.0]);
        sheet.add("1 client", &theirs, vec![5.0, f64::NAN]);
        sheet.add("1 client", &ours, vec![30.0, 3.0]);
        assert_eq!(sheet.median("1 client", &ours, "rate"), Some(20.0));
        assert_eq!(sheet.median("1 client", &theirs, "wait"), None);
        let text = sheet.markdown(&[], "as ever");
        assert!(text.contains("| 1 client | Halcyon a | 20 | 2.0 |"), "{text}");
        assert!(text.contains("| 1 client | Cassandra 5.0.9 b | 5 |  |"), "{text}");
        assert!(text.contains("- no device"), "{text}");
        assert_eq!(sheet.to_json(&[])["turns"].as_array().map(Vec::len), Some(3));
    }
}
