//! Lines of text by family: a scraper wants all series of a name together, whatever order they come in.

use std::collections::HashMap;
use std::fmt::{self, Display, Write};

use halcyon_metrics::{Metric, Origin};

use super::format::Format;

/// What a family has of its metric; a metric may become several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Value,
    Quantiles,
    Count,
    Sum,
    Mean,
    Buckets,
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
    places: HashMap<Key, usize>,
    families: Vec<Family>,
}

/// Labels of a series: names are ours, values are anybody's.
pub(super) type Pairs<'a> = [(&'a str, Option<&'a str>)];

impl Families {
    /// The lines of a part of a metric; `name` is asked for once.
    pub(super) fn lines(
        &mut self,
        (metric, part): (&Metric, Part),
        of: Type,
        name: impl FnOnce() -> String,
    ) -> Lines<'_> {
        let key = (metric.origin, metric.group, metric.name, part);
        let families = &mut self.families;
        let place = *self.places.entry(key).or_insert_with(|| {
            let (name, help) = (name(), metric.help);
            families.push(Family { name, of, help, lines: String::new() });
            families.len() - 1
        });
        Lines(&mut families[place])
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
        for (label, text) in labels.iter().filter_map(|(label, text)| Some((label, (*text)?))) {
            // Writing to a string cannot fail.
            let _ = write!(lines, "{between}{label}=\"{}\"", Escaped(text));
            between = ',';
        }
        if let Some((label, text)) = more {
            let _ = write!(lines, "{between}{label}=\"{text}\"");
            between = ',';
        }
        if between == ',' {
            lines.push('}');
        }
        let _ = writeln!(lines, " {value}");
    }
}

/// The value of a label.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['\\', '"', '\n']) {
            let (before, from) = rest.split_at(at);
            f.write_str(before)?;
            f.write_str(match from.as_bytes().first() {
                Some(b'\\') => "\\\\",
                Some(b'"') => "\\\"",
                _ => "\\n",
            })?;
            rest = &from[1..];
        }
        f.write_str(rest)
    }
}
