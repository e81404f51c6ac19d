//! An experiment's page: `bench/page.md` around the template `page.md` of the experiment, filled from the record.
//!
//! A template names settings, `experiment`, `machine`, `rented`, `beside`, `missing`, `targets`, what the experiment gives it besides, and
//!
//! | | |
//! |---|---|
//! | `col(title, key, decimals, times=, unit=, spread=, at_most=)` | a column of a table, or the bars of a plot |
//! | `table(headings, columns, corner=)` | a row for each contender under each heading; `corner`: the title of the headings' column |
//! | `bars(file, title, headings, columns)` | draws a plot beside the page; the file's name |
//! | `headings()`, `contenders(heading)` | of the record, in the order of the first turns |
//! | `number \| fixed(decimals)` | a number for a reader |
//!
//! A heading is a string, or a pair of it and what is shown instead. A name in a template without a value is an error.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use halcyon_oracle::Result;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value as Shown};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::column::{Column, column};
use crate::plot::{Bars, Section};
use crate::record::{Record, Target};

/// File names and SVG.
type Plots = BTreeMap<String, String>;

/// Made from a record by the experiment.
#[derive(Default)]
pub(crate) struct Page {
    pub(crate) template: &'static str,
    pub(crate) targets: Vec<Target>,
    /// By the names that the template calls them.
    pub(crate) names: Value,
    pub(crate) plots: Plots,
}

/// A page as its files have it.
pub(crate) struct Files {
    pub(crate) text: String,
    pub(crate) plots: Plots,
}

impl Page {
    pub(crate) fn files(self, record: Record) -> Result<Files> {
        let mut names = json!({
            "KIB": 1 << 10,
            "MIB": 1 << 20,
            "experiment": record.experiment,
            "machine": record.machine,
            "rented": record.rented,
            "beside": record.beside,
            "missing": record.missing,
        });
        merge(&mut names, record.settings.clone());
        merge(&mut names, self.names);
        names["targets"] = json!(self.targets);
        let plots = Arc::new(Mutex::new(self.plots));
        let mut engine = engine(Arc::new(record), &plots)?;
        engine.add_template("page.md", include_str!("../page.md"))?;
        let text = engine.render_named_str(
            "page.md of the experiment",
            self.template,
            Shown::from(Serde(names)),
        );
        let mut text = text.map_err(|error| format!("{error:#}"))?;
        // What a template leaves out leaves its blank lines.
        while text.contains("\n\n\n") {
            text = text.replace("\n\n\n", "\n\n");
        }
        let mut plots = plots.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Files { text: text.trim().to_owned() + "\n", plots: std::mem::take(&mut *plots) })
    }
}

fn merge(names: &mut Value, more: Value) {
    if let (Value::Object(names), Value::Object(mut more)) = (names, more) {
        names.append(&mut more);
    }
}

fn engine(record: Arc<Record>, plots: &Arc<Mutex<Plots>>) -> Result<Environment<'static>> {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    engine.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    engine.add_filter("fixed", |value: f64, decimals: usize| format!("{value:.decimals$}"));
    engine.add_function("col", column);
    let of = record.clone();
    engine.add_function("headings", move || Shown::from(Serde(of.headings())));
    let of = record.clone();
    engine.add_function("contenders", move |heading: String| {
        Shown::from(Serde(of.contenders(&heading)))
    });
    let of = record.clone();
    engine.add_function(
        "table",
        move |Serde(headings): Serde<Vec<Heading>>,
              Serde(columns): Serde<Vec<Column>>,
              options: Kwargs| {
            let corner: Option<String> = options.get("corner")?;
            options.assert_all_used()?;
            Ok::<_, Error>(table(&of, corner.as_deref(), &headings, &columns))
        },
    );
    let plots = plots.clone();
    engine.add_function(
        "bars",
        move |file: String,
              title: String,
              Serde(headings): Serde<Vec<Heading>>,
              Serde(columns): Serde<Vec<Column>>| {
            let section = |heading: &Heading| {
                let (heading, title) = heading.names();
                Section { heading: heading.to_owned(), title: title.to_owned() }
            };
            let sections = headings.iter().map(section).collect();
            let svg = Bars { title, columns, sections }.svg(&record);
            let svg = svg.map_err(|e| Error::new(ErrorKind::InvalidOperation, e.to_string()))?;
            plots.lock().unwrap_or_else(PoisonError::into_inner).insert(file.clone(), svg);
            Ok::<_, Error>(file)
        },
    );
    Ok(engine)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Heading {
    Plain(String),
    Shown(String, String),
}

impl Heading {
    fn names(&self) -> (&str, &str) {
        match self {
            Heading::Plain(heading) => (heading, heading),
            Heading::Shown(heading, shown) => (heading, shown),
        }
    }
}

/// Empty without a turn under any of the headings.
fn table(
    record: &Record,
    corner: Option<&str>,
    headings: &[Heading],
    columns: &[Column],
) -> String {
    let mut rows = String::new();
    for (heading, shown) in headings.iter().map(Heading::names) {
        for who in record.contenders(heading) {
            let cells = columns.iter().map(|column| column.cell(record.rounds(heading, who)));
            let cells: Vec<String> = cells.collect();
            let shown = corner.map_or(String::new(), |_| format!("{shown} | "));
            rows += &format!("| {shown}{} | {} |\n", who.name(), cells.join(" | "));
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let titles: Vec<&str> = columns.iter().map(|column| column.title.as_str()).collect();
    let corner = corner.map(|title| format!("{title} | ").trim_start().to_owned());
    let corner = corner.unwrap_or_default();
    let lines = "---|".repeat(columns.len() + 1 + usize::from(!corner.is_empty()));
    format!("| {corner}| {} |\n|{lines}\n{rows}", titles.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Contender, Measurements};

    const TEMPLATE: &str = "{% extends 'page.md' %}{% set title = 'nothing' %}
        {% set columns = [col('per second', 'rate', 0), col('wait', 'wait', 1, unit=' µs')] %}
        {% block plot %}{{ bars('plot.svg', 'a plot', headings(), columns) }}{% endblock %}
        {% block sections %}{{ table([['1 client', '1']], columns, corner='clients') }}{% endblock %}
        {% block method %}- {{ rounds }} rounds of {{ what }}.{% endblock %}";

    /// A table has a row for each contender, and a plot its name and numbers; what was not measured stays empty; a name without a
    /// value is an error.
    #[test]
    fn a_page_says_what_the_record_has() {
        let mut record = Record::new("E0", json!({ "rounds": 2 }));
        let (ours, theirs) = (Contender::new("halcyon", "long name"), Contender::new("5.0.9", "b"));
        record.add("1 client", &ours, Measurements::default().with("rate", 10.0).with("wait", 1.0));
        record.add("1 client", &theirs, Measurements::default().with("rate", 5.0));
        record.miss("no device".to_owned());
        let page = |names| Page { template: TEMPLATE, names, ..Page::default() };
        let named = page(json!({ "what": "work" })).files(record.clone());
        let Files { text, plots } = named.expect("a page");
        assert!(text.contains("| clients | | per second | wait |\n|---|---|---|---|\n"), "{text}");
        assert!(text.contains("| 1 | Halcyon long name | 10 | 1.0 µs |"), "{text}");
        assert!(text.contains("| 1 | Cassandra 5.0.9 b | 5 |  |"), "{text}");
        assert!(text.contains("- no device") && text.contains("- 2 rounds of work."), "{text}");
        for shown in ["a plot", "per second", "1 client", "10", "Halcyon long name"] {
            assert!(plots["plot.svg"].contains(shown), "{shown}");
        }
        assert!(page(json!({})).files(record).is_err());
    }
}
