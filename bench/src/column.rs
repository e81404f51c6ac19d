//! A figure as a page shows it.

use minijinja::value::{Kwargs, Serde};
use minijinja::{Error, Value as Shown};
use serde::{Deserialize, Serialize};

use crate::record::Rounds;

/// A column of a table, or the bars of a plot: a figure, scaled for a reader.
#[derive(Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) key: String,
    decimals: usize,
    times: f64,
    unit: String,
    /// The least and the most behind the median.
    spread: bool,
    /// Say whether this was held.
    at_most: Option<f64>,
}

/// `col(…)` of a template.
pub(crate) fn column(
    title: String,
    key: String,
    decimals: usize,
    options: Kwargs,
) -> Result<Shown, Error> {
    let column = Column {
        title,
        key,
        decimals,
        times: options.get::<Option<f64>>("times")?.unwrap_or(1.0),
        unit: options.get::<Option<String>>("unit")?.unwrap_or_default(),
        spread: options.get::<Option<bool>>("spread")?.unwrap_or_default(),
        at_most: options.get("at_most")?,
    };
    options.assert_all_used()?;
    Ok(Shown::from(Serde(column)))
}

impl Column {
    pub(crate) fn shown(&self, value: f64) -> String {
        if let Some(bound) = self.at_most {
            return if value <= bound { "held" } else { "missed" }.to_owned();
        }
        format!("{:.*}{}", self.decimals, value * self.times, self.unit)
    }

    pub(crate) fn cell(&self, rounds: Rounds<'_>) -> String {
        let Some(spread) = rounds.spread(&self.key) else { return String::new() };
        let median = self.shown(spread.median);
        if self.spread {
            return format!("{median} ({}–{})", self.shown(spread.min), self.shown(spread.max));
        }
        median
    }
}
