//! A grid of small panels with the same axes, drawn as SVG: lines over time, or bars by latency.
//!
//! ```text
//!   Cassandra 6 direct            Halcyon direct
//!   100 ms ┤    ▒▒▒╱╲▒▒           ┤    ▒▒▒
//!    10 ms ┤    ▒╱▒▒▒╲▒           ┤    ▒▒▒
//!     1 ms ┤───╱▒▒▒▒▒▒╲──         ┤────▒▒▒────         ▒ compaction runs
//!          └────┴────┴────        └────┴────┴────
//! ```

use std::fmt::Write;

const LEFT: f64 = 62.0;
const GAP: f64 = 26.0;
const TOP: f64 = 58.0;
const HEAD: f64 = 34.0;
const FOOT: f64 = 34.0;
const INK: &str = "#212529";
const FAINT: &str = "#dee2e6";

pub(super) struct Grid {
    pub(super) title: String,
    pub(super) columns: usize,
    /// Of a panel's inside.
    pub(super) size: (f64, f64),
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) panels: Vec<Panel>,
}

pub(super) struct Axis {
    pub(super) title: String,
    pub(super) is_log: bool,
    pub(super) from: f64,
    pub(super) until: f64,
    pub(super) ticks: Vec<(f64, String)>,
}

#[derive(Default)]
pub(super) struct Panel {
    pub(super) title: String,
    /// In the upper right corner.
    pub(super) note: String,
    /// Stretches of x with a colour.
    pub(super) shades: Vec<(f64, f64, &'static str)>,
    pub(super) lines: Vec<Line>,
    /// From the bottom: left, right, height, colour.
    pub(super) bars: Vec<(f64, f64, f64, &'static str)>,
    /// Dashed, at a height.
    pub(super) rules: Vec<(f64, String)>,
}

pub(super) struct Line {
    pub(super) points: Vec<(f64, f64)>,
    pub(super) color: &'static str,
    pub(super) width: f64,
}

impl Axis {
    /// Decades of milliseconds.
    pub(super) fn milliseconds(from: f64, until: f64) -> Axis {
        let mut ticks = Vec::new();
        let mut at = from;
        while at <= until * 1.001 {
            ticks.push((at, format!("{at} ms")));
            at *= 10.0;
        }
        Axis { title: String::new(), is_log: true, from, until, ticks }
    }

    pub(super) fn linear(title: &str, from: f64, until: f64, step: f64, unit: &str) -> Axis {
        let mut ticks = Vec::new();
        // Adding zero makes a negative one positive.
        let mut at = (from / step).ceil() * step + 0.0;
        while at <= until {
            ticks.push((at, format!("{at}{unit}")));
            at += step;
        }
        Axis { title: title.to_owned(), is_log: false, from, until, ticks }
    }

    /// 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let at = if self.is_log {
            (value.max(self.from) / self.from).log10() / (self.until / self.from).log10()
        } else {
            (value - self.from) / (self.until - self.from)
        };
        at.clamp(0.0, 1.0)
    }
}

impl Grid {
    pub(super) fn svg(&self) -> String {
        let (inside_width, inside_height) = self.size;
        let (step_x, step_y) = (inside_width + LEFT + GAP, inside_height + HEAD + FOOT);
        let rows = self.panels.len().div_ceil(self.columns.max(1));
        let width = step_x * self.columns as f64 + 10.0;
        let height = TOP + step_y * rows as f64;
        let mut body = String::new();
        text(&mut body, (10.0, 24.0), "start", "bold", &self.title);
        for (number, panel) in self.panels.iter().enumerate() {
            let (column, row) = (number % self.columns, number / self.columns);
            let corner = (LEFT + step_x * column as f64, TOP + HEAD - 20.0 + step_y * row as f64);
            self.panel(&mut body, panel, corner);
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
        )
    }

    fn panel(&self, to: &mut String, panel: &Panel, (left, top): (f64, f64)) {
        let (width, height) = self.size;
        let x = |value: f64| left + width * self.x.place(value);
        let y = |value: f64| top + height * (1.0 - self.y.place(value));
        for (from, until, color) in &panel.shades {
            let (from, until) = (x(*from), x(*until));
            rectangle(to, (from, top), (until - from, height), color);
        }
        self.frame(to, (left, top));
        for (from, until, tall, color) in &panel.bars {
            let (from, until, tip) = (x(*from), x(*until), y(*tall));
            rectangle(to, (from, tip), (until - from - 1.0, top + height - tip), color);
        }
        for (at, name) in &panel.rules {
            let at = y(*at);
            let _ = writeln!(
                to,
                "<path d=\"M{left:.1} {at:.1}h{width:.1}\" stroke=\"#c92a2a\" stroke-dasharray=\"4 3\"/>"
            );
            text(to, (left + width - 2.0, at - 4.0), "end", "normal", name);
        }
        for line in &panel.lines {
            let mut path = String::new();
            for (number, (at, value)) in line.points.iter().enumerate() {
                let step = if number == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{step}{:.1} {:.1}", x(*at), y(*value));
            }
            let _ = writeln!(
                to,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"/>",
                line.color, line.width
            );
        }
        text(to, (left, top - 8.0), "start", "bold", &panel.title);
        text(to, (left + width - 4.0, top + 13.0), "end", "normal", &panel.note);
    }

    fn frame(&self, to: &mut String, (left, top): (f64, f64)) {
        let (width, height) = self.size;
        for (at, name) in &self.y.ticks {
            let at = top + height * (1.0 - self.y.place(*at));
            let _ = writeln!(to, "<path d=\"M{left:.1} {at:.1}h{width:.1}\" stroke=\"{FAINT}\"/>");
            text(to, (left - 6.0, at + 4.0), "end", "normal", name);
        }
        for (at, name) in &self.x.ticks {
            let at = left + width * self.x.place(*at);
            text(to, (at, top + height + 15.0), "middle", "normal", name);
        }
        let _ = writeln!(
            to,
            "<path d=\"M{left:.1} {top:.1}v{height:.1}h{width:.1}\" fill=\"none\" stroke=\"{INK}\"/>"
        );
        text(to, (left + width, top + height + 28.0), "end", "normal", &self.x.title);
    }
}

fn rectangle(to: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), color: &str) {
    let width = width.max(0.5);
    let _ = writeln!(
        to,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{color}\"/>"
    );
}

fn text(to: &mut String, (x, y): (f64, f64), anchor: &str, weight: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        to,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-weight=\"{weight}\" fill=\"{INK}\">{words}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_on_axes() {
        let log = Axis::milliseconds(0.1, 100.0);
        assert_eq!(log.ticks.len(), 4);
        assert!((log.place(1.0) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!((log.place(0.0), log.place(1e9)), (0.0, 1.0));
        let linear = Axis::linear("", -10.0, 30.0, 10.0, " s");
        assert_eq!(linear.place(0.0), 0.25);
        assert_eq!(linear.ticks.len(), 5);
    }
}
