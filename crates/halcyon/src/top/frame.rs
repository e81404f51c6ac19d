//! What a terminal shows: the node, the pages' titles, the lines of one page, the keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Wrap};

use super::pages;
use super::sample::Sample;
use super::screen::{Page, Role, Screen};
use super::units::span;
use crate::nodetool::file_size;

/// What a page is wide without a terminal. Chosen: what a ticket or an e-mail shows unbroken.
const PLAIN_WIDTH: usize = 120;

const KEYS: &str = "q quit  ←→ page  ↑↓ scroll  s sort  r reverse  ? help";

const HELP: &str = "\
q, Esc, Ctrl-C     quit
→ ←, Tab           next page, the one before; 1 to 4 open one
↑ ↓, PgUp, PgDn    scroll; Home, End
s                  sort the list by the next column (underlined)
r                  reverse the order
?                  this help; any key closes it

Overview goes from the symptom to its causes: a read is slow when it meets
many SSTables or tombstones; these stay when compaction is behind; it is
behind when its pace is held, or when the device is slow or busy.
Percentiles are of the last minutes. Bars show the p99 at each look, each
line by its own scale; where a compaction or an index build ran they have
another colour and a mark below.
A rate is the growth of a counter between the last two looks.
Slow requests: waited for their core, then executed, and of this for the
commit log and the device; of the last requests above
slow_query_log_timeout. Times are in UTC.";

pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(if screen.lost.is_some() { 2 } else { 0 }),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ]);
    let [node, lost, titles, page, keys] = rows.areas(frame.area());
    frame.render_widget(node_line(screen), node);
    frame.render_widget(Paragraph::new(lost_line(screen)).wrap(Wrap { trim: true }), lost);
    frame.render_widget(titles_line(screen), titles);
    frame.render_widget(Line::styled(KEYS, screen.style(Role::Chosen)), keys);
    if screen.shows_help {
        frame.render_widget(Paragraph::new(HELP).wrap(Wrap { trim: false }), page);
    } else {
        draw_page(frame, screen, page);
    }
}

fn draw_page(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect) {
    let lines = match &screen.now {
        Some(now) => pages::lines(screen, now, screen.page, usize::from(area.width)),
        None if screen.lost.is_some() => Vec::new(),
        None => vec![Line::raw(format!("connecting to {} …", screen.server))],
    };
    screen.room = usize::from(area.height);
    screen.scrolled = screen.scrolled.min(lines.len().saturating_sub(screen.room));
    let shown: Vec<Line<'_>> = lines.into_iter().skip(screen.scrolled).take(screen.room).collect();
    frame.render_widget(Text::from(shown), area);
}

fn node_line(screen: &Screen) -> Line<'static> {
    let mut spans =
        vec![Span::styled(format!("halcyon {}", screen.server), screen.style(Role::Title))];
    if let Some(Sample { node, clients, .. }) = &screen.now {
        if node.mode != "NORMAL" {
            spans.push(Span::styled(format!("  {}", node.mode), screen.style(Role::Warning)));
        }
        spans.push(Span::raw(format!(
            "  up {}, {} on disk, {} connected, {} in flight",
            span(node.uptime_seconds),
            file_size(node.load),
            clients.len(),
            node.requests_in_flight
        )));
    }
    Line::from(spans)
}

fn lost_line(screen: &Screen) -> Line<'static> {
    let Some(why) = &screen.lost else { return Line::default() };
    Line::styled(format!("No connection, tried again: {why}"), screen.style(Role::Warning))
}

fn titles_line(screen: &Screen) -> Line<'static> {
    let mut spans = Vec::new();
    for page in Page::ALL {
        let title = format!(" {} ", page.title());
        spans.push(match page == screen.page {
            true => Span::styled(title, screen.style(Role::Chosen)),
            false => Span::raw(title),
        });
    }
    Line::from(spans)
}

/// All pages, one below the other.
pub(super) fn plain(screen: &Screen) -> String {
    let Some(now) = &screen.now else { return String::new() };
    let mut lines = vec![node_line(screen)];
    for page in Page::ALL {
        lines.extend([Line::default(), Line::raw(format!("== {} ==", page.title()))]);
        lines.extend(pages::lines(screen, now, page, PLAIN_WIDTH));
    }
    lines.iter().map(|line| format!("{}\n", line.to_string().trim_end())).collect()
}
