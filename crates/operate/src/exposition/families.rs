//! Lines of text by family: a scraper wants all series of a name together, whatever order they come in.

use std::collections::HashMap;

use halcyon_metrics::{Distribution, Metric};

use super::figure::Figure;
use super::format::Format;
use super::labels::LabelText;
pub(super) use super::labels::Pairs;
use super::quantiles::quantiles;
use super::recall::Recall;

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

/// Families in the order of their first series.
#[derive(Default)]
pub(super) struct Families {
    /// Most series are found by their metric, which needs no name.
    places: Recall<Part, usize>,
    by_name: HashMap<String, usize>,
    families: Vec<Family>,
    labels: LabelText,
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

impl Families {
    /// The lines of a part of a metric; `name` is called once. Metrics with one name share a family.
    pub(super) fn lines(
        &mut self,
        (metric, part): (&Metric, Part),
        of: Type,
        name: impl FnOnce() -> String,
    ) -> Lines<'_> {
        let Families { places, by_name, families, labels } = self;
        let place =
            places.of(metric, part, || family_at(by_name, families, name(), (of, metric.help)));
        Lines { family: &mut families[place], labels }
    }

    /// The lines of a family whose name depends on labels too.
    pub(super) fn named(&mut self, metric: &Metric, of: Type, name: String) -> Lines<'_> {
        let Families { by_name, families, labels, .. } = self;
        let place = family_at(by_name, families, name, (of, metric.help));
        Lines { family: &mut families[place], labels }
    }

    /// The text in parts, because it can have fifty megabytes.
    pub(super) fn text(self, format: Format) -> Vec<String> {
        let families = self.families.into_iter();
        let mut parts: Vec<String> =
            families.flat_map(|family| [family.head(format), family.lines]).collect();
        if format == Format::OpenMetrics {
            parts.push("# EOF\n".to_owned());
        }
        parts
    }
}

fn family_at(
    by_name: &mut HashMap<String, usize>,
    families: &mut Vec<Family>,
    name: String,
    (of, help): (Type, &'static str),
) -> usize {
    *by_name.entry(name).or_insert_with_key(|name| {
        families.push(Family { name: name.clone(), of, help, lines: String::new() });
        families.len() - 1
    })
}

impl Family {
    fn head(&self, format: Format) -> String {
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
        format!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {of}\n")
    }
}

/// Where the series of one family are written.
pub(super) struct Lines<'f> {
    family: &'f mut Family,
    labels: &'f mut LabelText,
}

impl Lines<'_> {
    /// A summary: quantiles of the last minutes, and what is known since the start. `shown` is in the unit of the family.
    pub(super) fn summary(
        &mut self,
        labels: &Pairs<'_>,
        values: &dyn Distribution,
        shown: impl Fn(u64) -> f64,
    ) {
        let found = quantiles(values, QUANTILES.map(|(quantile, _)| quantile));
        for ((_, label), value) in QUANTILES.iter().zip(found) {
            self.add("", labels, Some(("quantile", label.trim_end_matches('0'))), shown(value));
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
        more: Option<(&str, &str)>,
        value: impl Figure,
    ) {
        let Family { name, lines, .. } = &mut *self.family;
        lines.push_str(name);
        lines.push_str(suffix);
        self.labels.write(labels, more, lines);
        lines.push(' ');
        value.write(lines);
        lines.push('\n');
    }
}
