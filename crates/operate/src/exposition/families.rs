//! Lines of text by family: a scraper wants all series of a name together, whatever order they come in.

use std::collections::HashMap;
use std::fmt::{Display, Write};

use halcyon_metrics::{Distribution, Metric, Origin};

use super::format::Format;
use super::quantiles::quantiles;

/// What a family has of its metric; a metric may become several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Value,
    Quantiles,
    Count,
    Sum,
    Mean,
    Buckets,
    Median,
    Percentile99,
    Percentile999,
    Max,
}

/// Prometheus' types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Counter,
    Gauge,
    Histogram,
    Summary,
    Untyped,
}

struct Family {
    /// Without the suffix `_total`, which OpenMetrics adds to counters.
    name: String,
    of: Type,
    help: &'static str,
    lines: String,
}

type Key = (Origin, &'static str, &'static str, Part);

/// Families in the order of their first series.
#[derive(Default)]
pub(super) struct Families {
    /// Most series are found by their metric, which needs no name.
    places: HashMap<Key, usize>,
    by_name: HashMap<String, usize>,
    families: Vec<Family>,
}

/// The quantiles that all exporters show, and the label of each as jmx_exporter writes it.
pub(super) const QUANTILES: [(f64, &str); 6] = [
    (0.5, "0.50"),
    (0.75, "0.75"),
    (0.95, "0.95"),
    (0.98, "0.98"),
    (0.99, "0.99"),
    (0.999, "0.999"),
];

/// Labels of a series: names are ours, values are anybody's.
pub(super) type Pairs<'a> = [(&'a str, Option<&'a str>)];

impl Families {
    /// The lines of a part of a metric; `name` is called once. Metrics with one name share a family.
    pub(super) fn lines(
        &mut self,
        (metric, part): (&Metric, Part),
        of: Type,
        name: impl FnOnce() -> String,
    ) -> Lines<'_> {
        let key = (metric.origin, metric.group, metric.name, part);
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => {
                let place = self.family(name(), of, metric.help);
                self.places.insert(key, place);
                place
            }
        };
        Lines(&mut self.families[place])
    }

    /// The lines of a family whose name depends on labels too.
    pub(super) fn named(&mut self, metric: &Metric, of: Type, name: String) -> Lines<'_> {
        let place = self.family(name, of, metric.help);
        Lines(&mut self.families[place])
    }

    fn family(&mut self, name: String, of: Type, help: &'static str) -> usize {
        let families = &mut self.families;
        *self.by_name.entry(name).or_insert_with_key(|name| {
            families.push(Family { name: name.clone(), of, help, lines: String::new() });
            families.len() - 1
        })
    }

    pub(super) fn text(&self, format: Format) -> String {
        let bytes: usize = self.families.iter().map(|family| family.lines.len() + 256).sum();
        let mut text = String::with_capacity(bytes);
        for family in &self.families {
            family.write(format, &mut text);
        }
        if format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

impl Family {
    fn write(&self, format: Format, to: &mut String) {
        let (name, help) = (&self.name, self.help);
        let suffix = match (self.of, format) {
            (Type::Counter, Format::Prometheus) => "_total",
            _ => "",
        };
        let of = match (self.of, format) {
            (Type::Counter, _) => "counter",
            (Type::Gauge, _) => "gauge",
            (Type::Histogram, _) => "histogram",
            (Type::Summary, _) => "summary",
            (Type::Untyped, Format::Prometheus) => "untyped",
            (Type::Untyped, Format::OpenMetrics) => "unknown",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(to, "# HELP {name}{suffix} {help}");
        let _ = writeln!(to, "# TYPE {name}{suffix} {of}");
        to.push_str(&self.lines);
    }
}

/// Where the series of one family are written.
pub(super) struct Lines<'f>(&'f mut Family);

impl Lines<'_> {
    /// A summary: quantiles of the last minutes, and what is known since the start. `shown` is in the unit of the family.
    pub(super) fn summary(
        &mut self,
        labels: &Pairs<'_>,
        values: &dyn Distribution,
        shown: impl Fn(u64) -> f64,
    ) {
        let found = quantiles(values, QUANTILES.map(|(quantile, _)| quantile));
        for ((quantile, _), value) in QUANTILES.iter().zip(found) {
            self.add("", labels, Some(("quantile", quantile)), shown(value));
        }
        self.add("_count", labels, None, values.count());
        if let Some(sum) = values.sum() {
            self.add("_sum", labels, None, shown(sum));
        }
    }

    /// `suffix`: behind the family's name. Labels without a value are left out.
    pub(super) fn add(
        &mut self,
        suffix: &str,
        labels: &Pairs<'_>,
        more: Option<(&str, &dyn Display)>,
        value: impl Display,
    ) {
        let Family { name, lines, .. } = &mut *self.0;
        lines.push_str(name);
        lines.push_str(suffix);
        let mut between = '{';
        let mut label = |label: &str, lines: &mut String| {
            lines.push(between);
            between = ',';
            lines.push_str(label);
            lines.push_str("=\"");
        };
        // A node with many tables has some 100,000 lines: texts are pushed, because formatting them takes twice as long.
        for (name, text) in labels.iter().filter_map(|(name, text)| Some((name, (*text)?))) {
            label(name, lines);
            escape(text, lines);
            lines.push('"');
        }
        if let Some((name, text)) = more {
            label(name, lines);
            // Writing to a string cannot fail.
            let _ = write!(lines, "{text}\"");
        }
        if between == ',' {
            lines.push('}');
        }
        let _ = writeln!(lines, " {value}");
    }
}

/// The value of a label, as it may stand between quotation marks.
fn escape(text: &str, to: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '"', '\n']) {
        let (before, from) = rest.split_at(at);
        to.push_str(before);
        to.push_str(match from.as_bytes().first() {
            Some(b'\\') => "\\\\",
            Some(b'"') => "\\\"",
            _ => "\\n",
        });
        rest = &from[1..];
    }
    to.push_str(rest);
}
