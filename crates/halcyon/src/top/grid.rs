//! Rows of text in columns as wide as their widest cell. Where the terminal is too narrow, the widest texts are shortened; then the last
//! numbers are left out; then texts are shortened further.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

pub(super) enum Column {
    /// Text, which may be shortened.
    Text(&'static str),
    Number(&'static str),
}

/// Where numbers are left out rather than texts shortened more. Chosen: most names of tables fit.
const TEXT_GOOD: usize = 20;
const TEXT_MIN: usize = 6;

impl Column {
    fn title(&self) -> &'static str {
        match self {
            Column::Text(title) | Column::Number(title) => title,
        }
    }
}

pub(super) fn width_of(text: &str) -> usize {
    Span::raw(text).width()
}

/// As many characters as fit, with `…` in place of the others.
pub(super) fn shortened(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if width_of(&out) >= width {
            out.pop();
            break;
        }
    }
    out.push('…');
    out
}

/// The titles and the rows; the title of the column that sorts them is underlined.
pub(super) fn grid(
    columns: &[Column],
    rows: &[Vec<String>],
    width: usize,
    sorted: Option<usize>,
    title: Style,
) -> Vec<Line<'static>> {
    // Between two columns.
    let gap = if width < 100 { 1 } else { 2 };
    let widths = widths(columns, rows, width, gap);
    let columns = columns.get(..widths.len()).unwrap_or_default();
    let cell = |column: &Column, text: &str, width: usize, is_last: bool| match column {
        Column::Number(_) => pad(text, width, true),
        Column::Text(_) if is_last => shortened(text, width),
        Column::Text(_) => pad(&shortened(text, width), width, false),
    };
    let line = |texts: &[&str], style: &dyn Fn(usize) -> Style| {
        let mut spans = Vec::new();
        for (index, ((column, text), width)) in columns.iter().zip(texts).zip(&widths).enumerate() {
            if index > 0 {
                spans.push(Span::raw(" ".repeat(gap)));
            }
            let is_last = index + 1 == columns.len();
            spans.push(Span::styled(cell(column, text, *width, is_last), style(index)));
        }
        Line::from(spans)
    };
    let titles: Vec<&str> = columns.iter().map(Column::title).collect();
    let of_title = |index: usize| match sorted == Some(index) {
        true => title.add_modifier(Modifier::UNDERLINED),
        false => title,
    };
    let mut lines = vec![line(&titles, &of_title)];
    for row in rows {
        let texts: Vec<&str> = row.iter().map(String::as_str).collect();
        lines.push(line(&texts, &|_| Style::new()));
    }
    lines
}

fn pad(text: &str, width: usize, right: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(width_of(text)));
    if right { blanks + text } else { text.to_owned() + &blanks }
}

/// Of the columns that are shown.
fn widths(columns: &[Column], rows: &[Vec<String>], width: usize, gap: usize) -> Vec<usize> {
    let widest = |(index, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| width_of(cell));
        cells.chain([width_of(column.title())]).max().unwrap_or(0)
    };
    let natural: Vec<usize> = columns.iter().enumerate().map(widest).collect();
    let numbers = columns.iter().rev().take_while(|of| matches!(of, Column::Number(_))).count();
    let fewest = columns.len().saturating_sub(numbers).max(1);
    for count in (fewest..=columns.len()).rev() {
        let mut widths: Vec<usize> = natural.iter().take(count).copied().collect();
        let room = width.saturating_sub(gap * (count - 1));
        if shorten(&mut widths, columns, room, TEXT_GOOD) {
            return widths;
        }
        if count == fewest {
            shorten(&mut widths, columns, room, TEXT_MIN);
            return widths;
        }
    }
    natural
}

/// Makes texts narrower, the widest first and none below `least`, until all columns fit. Returns whether they do.
fn shorten(widths: &mut [usize], columns: &[Column], room: usize, least: usize) -> bool {
    loop {
        let excess = widths.iter().sum::<usize>().saturating_sub(room);
        let texts = widths.iter_mut().zip(columns);
        let texts = texts.filter(|(_, column)| matches!(column, Column::Text(_)));
        match texts.map(|(width, _)| width).max() {
            Some(widest) if excess > 0 && *widest > least => *widest -= 1,
            _ => return excess == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: usize) -> Vec<String> {
        let columns = [Column::Text("table"), Column::Number("rows"), Column::Text("query")];
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let query = "SELECT * FROM t WHERE k = 1";
        let rows = [row(["a_long_keyspace.with_t", "7", query]), row(["k.日本", "1234", ""])];
        let lines = grid(&columns, &rows, width, None, Style::new());
        lines.iter().map(Line::to_string).collect()
    }

    /// Proves that numbers align right, that wide characters take two columns, and that a narrow grid shortens texts.
    #[test]
    fn columns_fit_the_width() {
        assert_eq!(
            shown(100),
            [
                "table                   rows  query",
                "a_long_keyspace.with_t     7  SELECT * FROM t WHERE k = 1",
                "k.日本                  1234  ",
            ]
        );
        assert_eq!(shown(46)[1], "a_long_keyspace.wit…    7 SELECT * FROM t WHE…");
        assert_eq!(shown(26)[1], "a_long_ke…    7 SELECT * …");
        assert_eq!(shown(26).iter().map(|line| width_of(line)).max(), Some(26));
        assert_eq!(shown(1)[1], "a_lon…    7 SELEC…");
    }

    /// Proves that numbers at the end are left out before names are cut short.
    #[test]
    fn numbers_give_way_to_names() {
        let columns = [Column::Text("table"), Column::Number("reads"), Column::Number("writes")];
        let rows = [["keyspace.some_table", "1", "2"].map(str::to_owned).to_vec()];
        let line = |width| grid(&columns, &rows, width, None, Style::new())[1].to_string();
        assert_eq!(line(32), "keyspace.some_table     1      2");
        assert_eq!(line(31), "keyspace.some_table     1");
        assert_eq!(line(24), "keyspace.some_table");
        assert_eq!(line(10), "keyspace.…");
    }
}
