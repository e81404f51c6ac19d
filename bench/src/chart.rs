//! Rows of bar charts, drawn as SVG.
//!
//! ```text
//!              MiB/s of raw rows      CPU s/GiB        peak memory
//!   lz4-4
//!      Halcyon ██████████┊ ├┤         ██               █
//!    Cassandra ███                    ███████          ████████
//! ```
//! Whiskers go from the least to the most; dashed lines, in the first column, are bounds.

use std::fmt::Write;

use super::contender::Spread;

const LABELS: f64 = 200.0;
const PANEL: f64 = 270.0;
const BAR_SPACE: f64 = 22.0;
const BAR: f64 = 14.0;
const TOP: f64 = 64.0;
const SECTION_HEAD: f64 = 34.0;
/// Of a panel, for bars; the rest is for the number behind the longest one.
const BARS_SHARE: f64 = 0.68;
const HALCYON: &str = "#0b7285";
const CASSANDRA: &str = "#adb5bd";
const INK: &str = "#212529";

pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) sections: Vec<Section>,
}

pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) decimals: usize,
    pub(super) unit: &'static str,
}

pub(super) struct Section {
    pub(super) title: String,
    pub(super) rows: Vec<Row>,
    pub(super) bounds: Vec<(&'static str, f64)>,
}

pub(super) struct Row {
    pub(super) label: String,
    pub(super) is_halcyon: bool,
    /// One for each column.
    pub(super) spreads: Vec<Spread>,
}

impl Chart {
    pub(super) fn svg(&self) -> String {
        let width = LABELS + PANEL * self.columns.len() as f64 + 20.0;
        let mut body = String::new();
        let mut y = TOP;
        for section in &self.sections {
            text(&mut body, (10.0, y + 4.0), "start", "bold", &section.title);
            let top = y + SECTION_HEAD - 20.0;
            for (i, row) in section.rows.iter().enumerate() {
                let y = top + BAR_SPACE * (i as f64 + 0.5) + 4.0;
                text(&mut body, (LABELS - 12.0, y), "end", "normal", &row.label);
            }
            for (i, column) in self.columns.iter().enumerate() {
                panel(&mut body, column, i, section, (LABELS + PANEL * i as f64, top));
            }
            y = top + BAR_SPACE * section.rows.len() as f64 + SECTION_HEAD;
        }
        for (i, column) in self.columns.iter().enumerate() {
            text(&mut body, (LABELS + PANEL * i as f64, 44.0), "start", "bold", column.title);
        }
        text(&mut body, (10.0, 22.0), "start", "bold", self.title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {y}\" width=\"{width}\" height=\"{y}\" \
             font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
        )
    }
}

fn text(to: &mut String, (x, y): (f64, f64), anchor: &str, weight: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        to,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-weight=\"{weight}\" fill=\"{INK}\">{words}</text>"
    );
}

fn panel(
    to: &mut String,
    column: &Column,
    number: usize,
    section: &Section,
    (left, top): (f64, f64),
) {
    let spread = |row: &Row| row.spreads.get(number).copied().unwrap_or_default();
    let longest = section.rows.iter().map(|row| spread(row).max).fold(1e-9, f64::max);
    // A bound far away is left out rather than let it press the bars flat.
    let bounds = section.bounds.iter().filter(|(_, at)| number == 0 && *at < 2.0 * longest);
    let bounds: Vec<&(&str, f64)> = bounds.collect();
    let most = bounds.iter().map(|(_, at)| *at).fold(longest, f64::max);
    let scale = PANEL * BARS_SHARE / most;
    for (i, row) in section.rows.iter().enumerate() {
        let spread = spread(row);
        let middle = top + BAR_SPACE * (i as f64 + 0.5);
        let color = if row.is_halcyon { HALCYON } else { CASSANDRA };
        let (length, from, until) =
            (spread.median * scale, left + spread.min * scale, left + spread.max * scale);
        let _ = writeln!(
            to,
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{color}\"/>\n\
             <path d=\"M{from:.1} {middle:.1}H{until:.1}\" stroke=\"{INK}\" stroke-width=\"1.5\"/>",
            middle - BAR / 2.0,
            length.max(0.8),
        );
        let shown = format!("{:.*}{}", column.decimals, spread.median, column.unit);
        text(to, (until.max(left + length) + 6.0, middle + 4.0), "start", "normal", &shown);
    }
    let bottom = top + BAR_SPACE * section.rows.len() as f64;
    for (name, at) in bounds {
        let x = left + at * scale;
        let _ = writeln!(
            to,
            "<path d=\"M{x:.1} {top:.1}V{bottom:.1}\" stroke=\"#c92a2a\" stroke-dasharray=\"4 3\"/>"
        );
        text(to, (x + 3.0, bottom + 9.0), "middle", "normal", name);
    }
}
