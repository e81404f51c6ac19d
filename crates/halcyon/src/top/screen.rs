//! What is known and what is shown of it; keys change that.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier, Style};

use super::options::Options;
use super::sample::{Client, Io, Sample, Slow, Table};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Overview,
    Tables,
    Slow,
    Clients,
}

impl Page {
    pub(super) const ALL: [Page; 4] = [Page::Overview, Page::Tables, Page::Slow, Page::Clients];

    pub(super) fn title(self) -> &'static str {
        match self {
            Page::Overview => "Overview",
            Page::Tables => "Tables",
            Page::Slow => "Slow requests",
            Page::Clients => "Clients",
        }
    }

    /// The columns by which its list can be sorted, by their position. Of the first the greatest comes first.
    fn keys(self) -> &'static [usize] {
        match self {
            Page::Overview => &[0],
            Page::Tables => &[1, 2, 3, 4, 5, 6, 7, 8, 0],
            Page::Slow => &[0, 1, 2, 3, 4, 5, 6],
            Page::Clients => &[4, 5, 0, 1],
        }
    }

    fn moved(self, by: usize) -> Page {
        let at = Page::ALL.iter().position(|page| *page == self).unwrap_or(0);
        Page::ALL.get((at + by) % Page::ALL.len()).copied().unwrap_or(self)
    }
}

/// How a page's list is sorted.
#[derive(Debug, Clone, Copy, Default)]
struct Sort {
    /// An index into [`Page::keys`].
    key: usize,
    is_reversed: bool,
}

/// What the lines over time show of one look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) reads_p99: u64,
    pub(super) ranges_p99: u64,
    pub(super) writes_p99: u64,
    pub(super) is_compacting: bool,
}

/// More than a terminal is wide.
const MOMENTS_MAX: usize = 512;

/// What a text is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Title,
    Chosen,
    Warning,
    /// A time at which a compaction ran.
    Compacting,
}

pub(super) struct Screen {
    pub(super) server: String,
    pub(super) interval: std::time::Duration,
    pub(super) now: Option<Sample>,
    before: Option<Sample>,
    /// Oldest first; `None`: there was no connection.
    pub(super) moments: VecDeque<Option<Look>>,
    /// The reason why the connection failed; `None` while it stands.
    pub(super) lost: Option<String>,
    pub(super) page: Page,
    sorts: [Sort; Page::ALL.len()],
    /// Lines of the page above those that are shown.
    pub(super) scrolled: usize,
    /// Lines of the page that are shown.
    pub(super) room: usize,
    pub(super) shows_help: bool,
    is_colored: bool,
}

impl Screen {
    pub(super) fn new(options: &Options) -> Screen {
        let to = &options.destination;
        // https://no-color.org
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Screen {
            server: format!("{}:{}", to.host, to.port),
            interval: options.interval,
            now: None,
            before: None,
            moments: VecDeque::new(),
            lost: None,
            page: Page::Overview,
            sorts: Default::default(),
            scrolled: 0,
            room: 0,
            shows_help: false,
            is_colored: !no_color,
        }
    }

    #[cfg(test)]
    pub(super) fn color(&mut self, is_colored: bool) {
        self.is_colored = is_colored;
    }

    pub(super) fn take(&mut self, sample: Sample) {
        self.remember(Some(Look {
            reads_p99: sample.reads.p99,
            ranges_p99: sample.ranges.p99,
            writes_p99: sample.writes.p99,
            is_compacting: !sample.tasks.is_empty(),
        }));
        // A node that was away may have restarted its counters.
        self.before = self.now.take().filter(|_| self.lost.is_none());
        self.lost = None;
        self.now = Some(sample);
    }

    pub(super) fn lose(&mut self, why: String) {
        self.remember(None);
        self.lost = Some(why);
    }

    fn remember(&mut self, moment: Option<Look>) {
        if self.moments.len() == MOMENTS_MAX {
            self.moments.pop_front();
        }
        self.moments.push_back(moment);
    }

    pub(super) fn style(&self, role: Role) -> Style {
        let (style, color) = match role {
            Role::Title => (Style::new().add_modifier(Modifier::BOLD), Color::Cyan),
            Role::Chosen => (Style::new().add_modifier(Modifier::REVERSED), Color::Reset),
            Role::Warning => (Style::new().add_modifier(Modifier::BOLD), Color::Red),
            Role::Compacting => (Style::new(), Color::Yellow),
        };
        if self.is_colored { style.fg(color) } else { style }
    }

    /// What a key does. Returns whether it ends the program.
    pub(super) fn press(&mut self, key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if is_control => return true,
            KeyCode::Char('q') => return true,
            _ if self.shows_help => self.shows_help = false,
            KeyCode::Esc => return true,
            KeyCode::Char('?' | 'h') => self.shows_help = true,
            KeyCode::Tab | KeyCode::Right => self.open(self.page.moved(1)),
            KeyCode::BackTab | KeyCode::Left => self.open(self.page.moved(Page::ALL.len() - 1)),
            KeyCode::Char(digit @ '1'..='4') => {
                let at = usize::from(digit as u8 - b'1');
                self.open(Page::ALL.get(at).copied().unwrap_or(self.page));
            }
            KeyCode::Char('s') => {
                let keys = self.page.keys().len();
                let sort = self.sort_mut();
                *sort = Sort { key: (sort.key + 1) % keys, is_reversed: false };
            }
            KeyCode::Char('r') => self.sort_mut().is_reversed ^= true,
            // The frame bounds it by the lines of the page.
            KeyCode::Down | KeyCode::Char('j') => self.scrolled += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled += self.room,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(self.room),
            KeyCode::Home => self.scrolled = 0,
            KeyCode::End => self.scrolled = usize::MAX / 2,
            _ => {}
        }
        false
    }

    fn open(&mut self, page: Page) {
        self.page = page;
        self.scrolled = 0;
    }

    fn sort(&self, page: Page) -> Sort {
        self.sorts.get(page as usize).copied().unwrap_or_default()
    }

    fn sort_mut(&mut self) -> &mut Sort {
        self.scrolled = 0;
        &mut self.sorts[self.page as usize]
    }

    /// The column by which a page's list is sorted.
    pub(super) fn sorted_by(&self, page: Page) -> usize {
        page.keys().get(self.sort(page).key).copied().unwrap_or(0)
    }

    /// Sorts rows, whose order by the page's columns is `by`: numbers from the greatest, texts from the least.
    fn sort_rows<T>(&self, page: Page, rows: &mut [T], by: impl Fn(usize, &T, &T) -> Ordering) {
        let (column, is_reversed) = (self.sorted_by(page), self.sort(page).is_reversed);
        rows.sort_by(|a, b| if is_reversed { by(column, b, a) } else { by(column, a, b) });
    }

    /// How much a counter grows in a second, by its values now and before.
    fn per_second(&self, now: u64, before: Option<u64>) -> Option<f64> {
        let seconds = (self.now.as_ref()?.at - self.before.as_ref()?.at).as_secs_f64();
        let grown = now.checked_sub(before?)?;
        (seconds > 0.0).then(|| grown as f64 / seconds)
    }

    /// The same, of a counter of the node.
    pub(super) fn rate(&self, counter: impl Fn(&Sample) -> u64) -> Option<f64> {
        self.per_second(counter(self.now.as_ref()?), self.before.as_ref().map(counter))
    }

    /// Operations and bytes in a second.
    pub(super) fn io_rates(&self, now: &Io) -> (Option<f64>, Option<f64>) {
        let before = self.before.iter().flat_map(|sample| &sample.io);
        let before = before.clone().find(|io| io.purpose == now.purpose);
        (
            self.per_second(now.operations, before.map(|io| io.operations)),
            self.per_second(now.bytes, before.map(|io| io.bytes)),
        )
    }

    /// Tables with their reads and writes in a second, sorted.
    pub(super) fn tables<'s>(&self, now: &'s Sample) -> Vec<(&'s Table, [Option<f64>; 2])> {
        let tables = self.before.iter().flat_map(|sample| &sample.tables);
        let before: BTreeMap<&str, (u64, u64)> =
            tables.map(|of| (of.name.as_str(), (of.reads, of.writes))).collect();
        let rates = |table: &'s Table| {
            let before = before.get(table.name.as_str());
            let reads = self.per_second(table.reads, before.map(|(reads, _)| *reads));
            (table, [reads, self.per_second(table.writes, before.map(|(_, writes)| *writes))])
        };
        let mut rows: Vec<_> = now.tables.iter().map(rates).collect();
        let floats = |a: Option<f64>, b: Option<f64>| b.unwrap_or(0.0).total_cmp(&a.unwrap_or(0.0));
        self.sort_rows(Page::Tables, &mut rows, |column, (a, of_a), (b, of_b)| {
            let order = match column {
                1 => floats(of_a[0], of_b[0]),
                2 => floats(of_a[1], of_b[1]),
                3 => b.read_p99.cmp(&a.read_p99),
                4 => b.write_p99.cmp(&a.write_p99),
                5 => b.sstables.cmp(&a.sstables),
                6 => b.tombstones_per_read.total_cmp(&a.tombstones_per_read),
                7 => b.disk_space.cmp(&a.disk_space),
                8 => b.memtable.cmp(&a.memtable),
                _ => Ordering::Equal,
            };
            order.then_with(|| a.name.cmp(&b.name))
        });
        rows
    }

    pub(super) fn slow<'s>(&self, now: &'s Sample) -> Vec<&'s Slow> {
        let mut rows: Vec<&Slow> = now.slow.iter().collect();
        let time = |of: &Slow| of.waited_us + of.executed_us;
        self.sort_rows(Page::Slow, &mut rows, |column, a, b| {
            let order = match column {
                1 => time(b).cmp(&time(a)),
                2 => b.waited_us.cmp(&a.waited_us),
                3 => b.executed_us.cmp(&a.executed_us),
                4 => b.log_us.cmp(&a.log_us),
                5 => b.device_us.cmp(&a.device_us),
                6 => b.sstables.cmp(&a.sstables),
                _ => Ordering::Equal,
            };
            order.then_with(|| b.ended_ms.cmp(&a.ended_ms))
        });
        rows
    }

    /// Clients with their requests in a second, sorted.
    pub(super) fn clients<'s>(&self, now: &'s Sample) -> Vec<(&'s Client, Option<f64>)> {
        let clients = self.before.iter().flat_map(|sample| &sample.clients);
        let before: BTreeMap<&str, u64> =
            clients.map(|of| (of.address.as_str(), of.requests)).collect();
        let rate = |client: &'s Client| {
            let before = before.get(client.address.as_str()).copied();
            (client, self.per_second(client.requests, before))
        };
        let mut rows: Vec<_> = now.clients.iter().map(rate).collect();
        self.sort_rows(Page::Clients, &mut rows, |column, (a, of_a), (b, of_b)| {
            let order = match column {
                1 => a.user.cmp(&b.user),
                4 => of_b.unwrap_or(0.0).total_cmp(&of_a.unwrap_or(0.0)),
                5 => b.requests.cmp(&a.requests),
                _ => Ordering::Equal,
            };
            order.then_with(|| a.address.cmp(&b.address))
        });
        rows
    }
}
