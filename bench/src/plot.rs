//! The plots, as SVG: bars by contender, and grids of small panels with the same axes.
//!
//! ```text
//!              MiB/s of raw rows      CPU s/GiB            Cassandra 6 direct            Halcyon direct
//!   LZ4, 4 KiB chunks                                      100 ms ┤    ▒▒▒╱╲▒▒           ┤    ▒▒▒
//!      Halcyon ██████████  ├┤         ██                    10 ms ┤    ▒╱▒▒▒╲▒           ┤    ▒▒▒
//!    Cassandra ███                    ███████                1 ms ┤───╱▒▒▒▒▒▒╲──         ┤────▒▒▒────
//! ```
//! Whiskers go from the least to the most.
//!
//! Every label gets the room that its letters take by a generous estimate: the reader's font is not known here.

use halcyon_oracle::Result;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::column::Column;
use crate::record::{Contender, Record};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(crate) const HALCYON: RGBColor = RGBColor(11, 114, 133);
pub(crate) const OTHER: RGBColor = RGBColor(173, 181, 189);
const INK: RGBColor = RGBColor(33, 37, 41);
const FAINT: RGBColor = RGBColor(222, 226, 230);
const BOUND: RGBColor = RGBColor(201, 42, 42);

const FONT: f64 = 12.0;
/// Pixels of a letter, on average.
const LETTER: f64 = 7.0;
const MARGIN: i32 = 12;
const TITLE: i32 = 30;

pub(crate) fn color_of(who: &Contender) -> RGBColor {
    if who.is_halcyon() { HALCYON } else { OTHER }
}

fn drawn(size: (i32, i32), draw: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<String> {
    let mut svg = String::new();
    {
        let size = (u32::try_from(size.0)?, u32::try_from(size.1)?);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        draw(&root)?;
        root.present()?;
    }
    Ok(svg)
}

fn width_of(text: &str) -> i32 {
    (text.chars().count() as f64 * LETTER).ceil() as i32
}

fn longest<'a>(texts: impl IntoIterator<Item = &'a str>) -> i32 {
    texts.into_iter().map(width_of).max().unwrap_or(0)
}

fn style(is_bold: bool, horizontal: HPos) -> TextStyle<'static> {
    let weight = if is_bold { FontStyle::Bold } else { FontStyle::Normal };
    let font = ("sans-serif", FONT, weight).into_font();
    TextStyle::from(font).color(&INK).pos(Pos::new(horizontal, VPos::Center))
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), is_bold: bool, anchor: HPos) -> Result<()> {
    Ok(area.draw_text(text, &style(is_bold, anchor), at)?)
}

/// Rows of bars: a section for each heading, a column for each figure.
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) sections: Vec<Section>,
}

pub(crate) struct Section {
    pub(crate) heading: String,
    pub(crate) title: String,
}

const BAR_SPACE: i32 = 22;
const BARS: i32 = 190;
const SECTION_HEAD: i32 = 24;
const SECTION_FOOT: i32 = 18;

impl Bars {
    pub(crate) fn svg(&self, record: &Record) -> Result<String> {
        let rows = |section: &Section| record.contenders(&section.heading).len() as i32;
        let names = self.sections.iter().flat_map(|section| record.contenders(&section.heading));
        let names: Vec<String> = names.map(|who| who.name()).collect();
        let labels = longest(names.iter().map(String::as_str)) + 2 * MARGIN;
        let numbers = 9 * LETTER as i32;
        let titles = longest(self.columns.iter().map(|column| column.title.as_str()));
        let panel = (BARS + numbers).max(titles) + MARGIN;
        let width = labels + panel * self.columns.len() as i32 + MARGIN;
        let width = width.max(width_of(&self.title) + 2 * MARGIN);
        let of_section = |s: &Section| SECTION_HEAD + BAR_SPACE * rows(s) + SECTION_FOOT;
        let height = 2 * TITLE + self.sections.iter().map(of_section).sum::<i32>();
        drawn((width, height), |root| {
            write(root, &self.title, (MARGIN, TITLE / 2), true, HPos::Left)?;
            for (number, column) in (0..).zip(&self.columns) {
                let left = labels + panel * number;
                write(root, &column.title, (left, TITLE + TITLE / 2), true, HPos::Left)?;
            }
            let mut top = 2 * TITLE;
            for section in &self.sections {
                write(root, &section.title, (MARGIN, top + SECTION_HEAD / 2), true, HPos::Left)?;
                for (row, who) in (0..).zip(record.contenders(&section.heading)) {
                    let at =
                        (labels - MARGIN, top + SECTION_HEAD + BAR_SPACE * row + BAR_SPACE / 2);
                    write(root, &who.name(), at, false, HPos::Right)?;
                }
                for (number, column) in (0..).zip(&self.columns) {
                    let corner = (labels + panel * number, top + SECTION_HEAD);
                    let size = (BARS + numbers, BAR_SPACE * rows(section));
                    let area = root.clone().shrink(corner, size);
                    bars(&area, record, &section.heading, column)?;
                }
                top += of_section(section);
            }
            Ok(())
        })
    }
}

/// The bars of one figure under one heading; the area is as wide as the longest bar and a number behind it.
fn bars(area: &Area<'_>, record: &Record, heading: &str, column: &Column) -> Result<()> {
    let contenders = record.contenders(heading);
    let spread = |who| record.rounds(heading, who).spread(&column.key).unwrap_or_default();
    let most = contenders.iter().map(|who| spread(who).max).fold(1e-9, f64::max);
    let x = |value: f64| (value / most * f64::from(BARS)).round() as i32;
    for (row, who) in (0..).zip(contenders) {
        let spread = spread(who);
        let middle = BAR_SPACE * row + BAR_SPACE / 2;
        let corners = [(0, middle - 7), (x(spread.median).max(1), middle + 7)];
        area.draw(&Rectangle::new(corners, color_of(who).filled()))?;
        let (least, end) = (x(spread.min), x(spread.max));
        area.draw(&PathElement::new(vec![(least, middle), (end, middle)], INK.stroke_width(2)))?;
        let shown = column.shown(spread.median);
        write(area, &shown, (end.max(x(spread.median)) + 6, middle), false, HPos::Left)?;
    }
    Ok(())
}

/// Small panels with the same axes.
pub(crate) struct Grid {
    pub(crate) title: String,
    pub(crate) columns: usize,
    /// Of a panel's inside; it is made wider where a panel's title needs that.
    pub(crate) size: (i32, i32),
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) panels: Vec<Panel>,
}

#[derive(Clone)]
pub(crate) struct Axis {
    pub(crate) title: String,
    pub(crate) is_log: bool,
    pub(crate) from: f64,
    pub(crate) until: f64,
    pub(crate) ticks: Vec<(f64, String)>,
}

#[derive(Default)]
pub(crate) struct Panel {
    pub(crate) title: String,
    /// In the upper right corner.
    pub(crate) note: String,
    /// Stretches of x, each with a colour.
    pub(crate) shades: Vec<(f64, f64, RGBColor)>,
    /// At the top, each at an x.
    pub(crate) labels: Vec<(f64, String)>,
    pub(crate) lines: Vec<Line>,
    /// From the bottom: left, right, height, colour.
    pub(crate) bars: Vec<(f64, f64, f64, RGBColor)>,
    /// Dashed, at a height.
    pub(crate) rule: Option<(f64, String)>,
}

pub(crate) struct Line {
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) color: RGBColor,
    pub(crate) width: u32,
}

impl Axis {
    /// Decades of milliseconds.
    pub(crate) fn milliseconds(from: f64, until: f64) -> Axis {
        let decades = std::iter::successors(Some(from), |at| Some(at * 10.0));
        let decades = decades.take_while(|at| *at <= until * 1.001);
        let ticks = decades.map(|at| (at, format!("{at} ms"))).collect();
        Axis { title: String::new(), is_log: true, from, until, ticks }
    }

    pub(crate) fn linear(title: &str, from: f64, until: f64, step: f64, unit: &str) -> Axis {
        let first = (from / step).ceil() as i64;
        let steps = (first..).map(|number| number as f64 * step).take_while(|at| *at <= until);
        let decimals = if step >= 1.0 {
            0
        } else if step >= 0.1 {
            1
        } else {
            2
        };
        let ticks = steps.map(|at| (at, format!("{at:.decimals$}{unit}"))).collect();
        Axis { title: title.to_owned(), is_log: false, from, until, ticks }
    }

    /// 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let value = value.clamp(self.from, self.until);
        if self.is_log {
            (value / self.from).log10() / (self.until / self.from).log10()
        } else {
            (value - self.from) / (self.until - self.from)
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, until): (i32, i32)) -> i32 {
        from + (f64::from(until - from) * self.share(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(at, _)| *at).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.from..self.until
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|(at, _)| at == value);
        tick.map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

const PANEL_HEAD: i32 = 24;
const PANEL_GAP: i32 = 16;

impl Grid {
    pub(crate) fn svg(&self) -> Result<String> {
        let left = longest(self.y.ticks.iter().map(|(_, text)| text.as_str())) + MARGIN;
        let foot = if self.x.title.is_empty() { 22 } else { 40 };
        let inside = self.size.0.max(longest(self.panels.iter().map(|p| p.title.as_str())));
        let (step_x, step_y) =
            (left + inside + PANEL_GAP, PANEL_HEAD + self.size.1 + foot + PANEL_GAP);
        let columns = self.columns.max(1);
        let width = 2 * MARGIN + step_x * columns as i32;
        let width = width.max(width_of(&self.title) + 2 * MARGIN);
        let height = TITLE + step_y * self.panels.len().div_ceil(columns) as i32 + MARGIN;
        drawn((width, height), |root| {
            write(root, &self.title, (MARGIN, TITLE / 2), true, HPos::Left)?;
            for (number, panel) in self.panels.iter().enumerate() {
                let (column, row) = ((number % columns) as i32, (number / columns) as i32);
                let corner = (MARGIN + step_x * column, TITLE + step_y * row);
                let size = (left + inside + PANEL_GAP / 2, PANEL_HEAD + self.size.1 + foot);
                self.panel(&root.clone().shrink(corner, size), panel, left, foot)?;
            }
            Ok(())
        })
    }

    fn panel(&self, area: &Area<'_>, panel: &Panel, left: i32, foot: i32) -> Result<()> {
        let mut chart = ChartBuilder::on(area)
            .margin_top(PANEL_HEAD)
            .margin_right(PANEL_GAP / 2)
            .x_label_area_size(foot)
            .y_label_area_size(left)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        let stretches = panel.shades.iter().map(|(from, until, color)| {
            Rectangle::new([(*from, self.y.from), (*until, self.y.until)], color.filled())
        });
        chart.draw_series(stretches)?;
        let bars = panel.bars.iter().map(|(from, until, tall, color)| {
            Rectangle::new([(*from, self.y.from), (*until, *tall)], color.filled())
        });
        chart.draw_series(bars)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .axis_style(INK)
            .bold_line_style(FAINT)
            .light_line_style(TRANSPARENT)
            .label_style(style(false, HPos::Center))
            .x_desc(self.x.title.as_str())
            .draw()?;
        for line in &panel.lines {
            let points = line.points.iter().copied();
            chart.draw_series(LineSeries::new(points, line.color.stroke_width(line.width)))?;
        }
        let end = area.dim_in_pixel().0 as i32 - PANEL_GAP / 2 - 4;
        if let Some((at, name)) = &panel.rule {
            let ends = [(self.x.from, *at), (self.x.until, *at)];
            chart.draw_series(DashedLineSeries::new(ends, 4, 3, BOUND.stroke_width(1)))?;
            let height = chart.backend_coord(&ends[1]).1;
            let height = height - area.get_base_pixel().1 - 9;
            write(area, name, (end, height), false, HPos::Right)?;
        }
        for (at, text) in &panel.labels {
            let x = chart.backend_coord(&(*at, self.y.until)).0 - area.get_base_pixel().0;
            write(area, text, (x, PANEL_HEAD + 9), false, HPos::Left)?;
        }
        write(area, &panel.title, (left, PANEL_HEAD / 2), true, HPos::Left)?;
        write(area, &panel.note, (end, PANEL_HEAD + 11), false, HPos::Right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_on_axes() {
        let log = Axis::milliseconds(0.1, 100.0);
        assert_eq!(log.ticks.len(), 4);
        assert!((log.share(1.0) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!((log.share(0.0), log.share(1e9)), (0.0, 1.0));
        assert_eq!(log.ticks[2].1, "10 ms");
        let linear = Axis::linear("", -10.0, 30.0, 10.0, " s");
        assert_eq!(linear.ticks.len(), 5);
        assert_eq!(linear.ticks[0].1, "-10 s");
        assert_eq!(linear.share(0.0), 0.25);
    }
}
