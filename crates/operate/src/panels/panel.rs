//! What a panel consists of.

/// Seconds between two looks at a chart.
pub(crate) const LOOK: u64 = 2;

/// How the rows of a panel are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `below` and `count` of a histogram since the start: lines of p50, p99 and p99.9 between two moments.
    Quantiles,
    /// The same as a heat map.
    Heat,
    /// Each number is a point of a line.
    Lines,
    /// Each number counts since the start: a line of its growth per second.
    Rates,
    /// As rates, drawn behind the charts of the section.
    Backdrop,
    /// Rows as they are.
    Rows,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Quantiles => "quantiles",
            Kind::Heat => "heat",
            Kind::Lines => "lines",
            Kind::Rates => "rates",
            Kind::Backdrop => "backdrop",
            Kind::Rows => "rows",
        }
    }
}

/// What the numbers of a panel are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    Microseconds,
    Bytes,
    BytesPerSecond,
    Count,
    /// From 0 to 1.
    Ratio,
    /// The columns of a list have units of their own.
    Mixed,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "us",
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes/s",
            Unit::Count => "count",
            Unit::Ratio => "ratio",
            Unit::Mixed => "",
        }
    }
}

#[derive(Debug)]
pub struct Panel {
    pub name: &'static str,
    pub section: &'static str,
    pub title: &'static str,
    /// What the panel answers.
    pub question: &'static str,
    pub unit: Unit,
    pub kind: Kind,
    /// In CQL; its rows are JSON.
    pub query: &'static str,
    /// Legends and expressions of PromQL over the default names of `/metrics`; empty if no metric has it.
    pub expressions: &'static [(&'static str, &'static str)],
    /// Seconds between two looks of the page.
    pub every: u64,
}
