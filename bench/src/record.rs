//! What an experiment measured: one format for all of them.
//!
//! 1. A turn is one run of one contender under one heading (`10 clients`, `chunks of 4 KiB, read-ahead 0 KiB`). It has figures by
//!    name, and details that no table shows as they are (a timeline, a histogram).
//! 2. Turns of the same contender under the same heading are rounds: a table shows their median, a plot also their least and most.
//! 3. Pages and plots are made from a record and from nothing else, so that they can be made again without a run.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use halcyon_oracle::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::machine;
use crate::volume::Limits;

/// A program in one of its modes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Contender {
    /// `halcyon`, `postgresql`, `device`, or a release of Cassandra.
    pub(crate) peer: String,
    pub(crate) mode: String,
}

impl Contender {
    pub(crate) fn new(peer: &str, mode: &str) -> Contender {
        Contender { peer: peer.to_owned(), mode: mode.to_owned() }
    }

    pub(crate) fn is_halcyon(&self) -> bool {
        self.peer == "halcyon"
    }

    pub(crate) fn name(&self) -> String {
        let peer = match self.peer.as_str() {
            "halcyon" => "Halcyon".to_owned(),
            "postgresql" => "PostgreSQL".to_owned(),
            "device" => "Device".to_owned(),
            release => format!("Cassandra {release}"),
        };
        format!("{peer} {}", self.mode)
    }
}

/// Measurements of a turn, in the order in which they are given; not a number where one could not be measured.
#[derive(Default)]
pub(crate) struct Measurements(Vec<(String, f64)>);

impl Measurements {
    pub(crate) fn with(mut self, name: &str, value: f64) -> Measurements {
        self.add(name, value);
        self
    }

    pub(crate) fn add(&mut self, name: &str, value: f64) {
        self.0.push((name.to_owned(), value));
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// All numbers that something has, their names behind a prefix.
    pub(crate) fn fields(self, prefix: &str, of: &impl Serialize) -> Measurements {
        let Ok(Value::Object(fields)) = serde_json::to_value(of) else { return self };
        let numbers = fields.iter().filter_map(|(name, value)| Some((name, value.as_f64()?)));
        numbers.fold(self, |to, (name, value)| to.with(&format!("{prefix}{name}"), value))
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) heading: String,
    #[serde(flatten)]
    pub(crate) contender: Contender,
    pub(crate) figures: BTreeMap<String, Option<f64>>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) details: Value,
}

/// A target of the project, and what was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) to_reach: String,
    pub(crate) measured: String,
    pub(crate) reached: bool,
}

impl Target {
    pub(crate) fn new(
        what: impl Into<String>,
        to_reach: impl Into<String>,
        measured: String,
        reached: bool,
    ) -> Target {
        Target { what: what.into(), to_reach: to_reach.into(), measured, reached }
    }

    /// Of ratios none of which may be larger; none where nothing was measured.
    pub(crate) fn at_most<T: Display>(
        what: impl Into<String>,
        most: f64,
        ratios: &[(T, f64)],
    ) -> Option<Target> {
        let reached = ratios.iter().all(|(_, ratio)| *ratio <= most);
        let target = Target::new(what, format!("≤ {most}"), listed(ratios, 2), reached);
        (!ratios.is_empty()).then_some(target)
    }
}

/// `1.20 (10), 0.90 (50)`: ratios, and what each is of.
pub(crate) fn listed<T: Display>(ratios: &[(T, f64)], decimals: usize) -> String {
    let shown = ratios.iter().map(|(of, ratio)| format!("{ratio:.decimals$} ({of})"));
    shown.collect::<Vec<_>>().join(", ")
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The argument of `cargo x bench`: `E5`.
    pub(crate) experiment: String,
    pub(crate) machine: Value,
    /// The arguments of the run.
    pub(crate) settings: Value,
    /// Of the volume that was rented in place of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rented: Option<Limits>,
    pub(crate) targets: Vec<Target>,
    pub(crate) turns: Vec<Turn>,
    /// What was measured beside the turns, by name.
    #[serde(default)]
    pub(crate) beside: Map<String, Value>,
    /// What could not be measured, and why.
    pub(crate) missing: Vec<String>,
}

impl Record {
    pub(crate) fn new(experiment: &str, settings: Value) -> Record {
        Record {
            experiment: experiment.to_owned(),
            machine: machine::describe(),
            settings,
            rented: None,
            targets: Vec::new(),
            turns: Vec::new(),
            beside: Map::new(),
            missing: Vec::new(),
        }
    }

    pub(crate) fn load(path: &Path) -> Result<Record> {
        let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))?)
    }

    pub(crate) fn add(&mut self, heading: &str, who: &Contender, figures: Measurements) {
        self.add_with(heading, who, figures, Value::Null);
    }

    pub(crate) fn add_with(
        &mut self,
        heading: &str,
        who: &Contender,
        Measurements(figures): Measurements,
        details: Value,
    ) {
        const SHOWN: usize = 8;
        let first = figures.iter().take(SHOWN);
        let shown: Vec<String> = first.map(|(name, value)| format!("{name} {value:.1}")).collect();
        eprintln!("bench: {heading}: {}: {}", who.name(), shown.join(", "));
        let known = |value: f64| (!value.is_nan()).then_some(value);
        let figures = figures.into_iter().map(|(name, value)| (name, known(value))).collect();
        let (heading, contender) = (heading.to_owned(), who.clone());
        self.turns.push(Turn { heading, contender, figures, details });
    }

    pub(crate) fn miss(&mut self, why: String) {
        eprintln!("bench: {why}");
        if !self.missing.contains(&why) {
            self.missing.push(why);
        }
    }

    /// In the order of their first turns.
    pub(crate) fn headings(&self) -> Vec<&str> {
        distinct(self.turns.iter().map(|turn| turn.heading.as_str()))
    }

    /// In the order of their first turns.
    pub(crate) fn contenders(&self, heading: &str) -> Vec<&Contender> {
        let of_heading = self.turns.iter().filter(|turn| turn.heading == heading);
        distinct(of_heading.map(|turn| &turn.contender))
    }

    pub(crate) fn rounds<'a>(&'a self, heading: &'a str, who: &'a Contender) -> Rounds<'a> {
        Rounds { record: self, heading, who }
    }

    pub(crate) fn median(&self, heading: &str, who: &Contender, key: &str) -> Option<f64> {
        self.rounds(heading, who).median(key)
    }

    /// Gives every turn a figure that is computed from all rounds of its contender.
    pub(crate) fn derive(&mut self, key: &str, of: impl Fn(Rounds<'_>) -> Option<f64>) {
        let turns = self.turns.iter();
        let derived: Vec<Option<f64>> =
            turns.map(|turn| of(self.rounds(&turn.heading, &turn.contender))).collect();
        for (turn, figure) in self.turns.iter_mut().zip(derived) {
            turn.figures.insert(key.to_owned(), figure);
        }
    }

    /// Not a number if absent.
    pub(crate) fn setting(&self, name: &str) -> f64 {
        self.settings[name].as_f64().unwrap_or(f64::NAN)
    }
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// The turns of one contender under one heading.
#[derive(Clone, Copy)]
pub(crate) struct Rounds<'a> {
    pub(crate) record: &'a Record,
    pub(crate) heading: &'a str,
    pub(crate) who: &'a Contender,
}

impl<'a> Rounds<'a> {
    pub(crate) fn turns(self) -> impl Iterator<Item = &'a Turn> {
        let is_one =
            move |turn: &&Turn| turn.heading == self.heading && turn.contender == *self.who;
        self.record.turns.iter().filter(is_one)
    }

    /// The same heading's rounds of another contender.
    pub(crate) fn of(self, who: &'a Contender) -> Rounds<'a> {
        Rounds { who, ..self }
    }

    pub(crate) fn spread(self, key: &str) -> Option<Spread> {
        let known: Vec<f64> = self.turns().filter_map(|turn| turn.get(key)).collect();
        (!known.is_empty()).then(|| Spread::of(known))
    }

    pub(crate) fn median(self, key: &str) -> Option<f64> {
        self.spread(key).map(|spread| spread.median)
    }
}

impl Turn {
    /// Nothing if absent, or of another form.
    pub(crate) fn detail<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        serde_json::from_value(self.details[name].clone()).unwrap_or_default()
    }

    pub(crate) fn get(&self, key: &str) -> Option<f64> {
        self.figures.get(key).copied().flatten()
    }
}

/// Median, least and most.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return Spread::default();
        };
        let (upper, lower) = (sorted.len() / 2, (sorted.len() - 1) / 2);
        Spread { median: (sorted[upper] + sorted[lower]) / 2.0, min: *min, max: *max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        let spread = Spread { median: 2.5, min: 1.0, max: 9.0 };
        assert_eq!(Spread::of([9.0, 2.0, 1.0, 3.0]), spread);
        assert_eq!(Spread::of([7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
        assert_eq!(Spread::of([]), Spread::default());
    }

    /// Rounds are summed up by their medians, headings and contenders keep the order of their first turns, and a record survives its file.
    #[test]
    fn rounds_are_one_contender_under_one_heading() {
        let mut record = Record::new("E0", Value::Null);
        let (ours, theirs) = (Contender::new("halcyon", "a"), Contender::new("5.0.9", "b"));
        for (who, rate, wait) in [(&ours, 10.0, 1.0), (&theirs, 5.0, f64::NAN), (&ours, 30.0, 3.0)]
        {
            record.add(
                "1 client",
                who,
                Measurements::default().with("rate", rate).with("wait", wait),
            );
        }
        let text = serde_json::to_string(&record).expect("a record");
        let record: Record = serde_json::from_str(&text).expect("the same record");
        assert_eq!(record.contenders("1 client"), [&ours, &theirs]);
        assert_eq!(record.median("1 client", &ours, "rate"), Some(20.0));
        assert_eq!(record.median("1 client", &theirs, "wait"), None);
    }
}
