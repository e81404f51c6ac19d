//! Whole frames as text. `HALCYON_ACCEPT=1 cargo test -p halcyon top::` rewrites them.

use std::path::PathBuf;
use std::time::Duration;

use halcyon_io::clock;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::frame;
use super::options::{self, Asked, Options};
use super::sample::*;
use super::screen::{Page, Screen};

fn options() -> Options {
    match options::read(&["--interval".to_owned(), "2".to_owned()]) {
        Ok(Asked::Watch(options)) => options,
        _ => panic!("the options are refused"),
    }
}

fn screen() -> Screen {
    let mut screen = Screen::new(&options());
    screen.take(sample(0));
    screen.take(sample(1));
    screen
}

fn percentiles(count: u64, p50: u64) -> Percentiles {
    Percentiles { count, p50, p99: p50 * 3, p999: p50 * 9, max: p50 * 20 }
}

fn table(name: &str, reads: u64, writes: u64) -> Table {
    Table {
        name: name.to_owned(),
        disk_space: 1 << 30,
        sstables: 7,
        memtable: 5 << 20,
        reads,
        writes,
        read_p99: reads * 100,
        write_p99: writes * 100,
        tombstones_per_read: 1.25,
    }
}

/// The samples of a node that compacts are two seconds apart.
fn sample(look: u64) -> Sample {
    let task = |table: &str, progress| Task {
        table: table.to_owned(),
        kind: "compaction".to_owned(),
        progress,
        total: 400 << 20,
        unit: "bytes".to_owned(),
    };
    let io = |purpose: &str, operations: u64| Io {
        purpose: purpose.to_owned(),
        operations,
        bytes: operations << 16,
        errors: 0,
        queue_depth: 3,
        p50: 90_000,
        p99: 1_100_000,
        p999: 9_000_000,
    };
    let client = |address: &str, user: &str, requests| Client {
        address: address.to_owned(),
        user: user.to_owned(),
        keyspace: "shop".to_owned(),
        driver: "DataStax Python Driver 3.29".to_owned(),
        is_encrypted: user == "ann",
        requests,
    };
    let slow = |ended_ms, waited_us, executed_us| Slow {
        ended_ms,
        waited_us,
        executed_us,
        log_us: executed_us / 10,
        device_us: executed_us / 2,
        sstables: 4,
        table: "shop.orders".to_owned(),
        client: "10.0.0.7".to_owned(),
        query: "SELECT * FROM shop.orders WHERE customer = 7 ALLOW FILTERING".to_owned(),
    };
    Sample {
        at: START.with(|start| *start) + Duration::from_secs(2 * look),
        node: Node {
            mode: "NORMAL".to_owned(),
            load: 3 << 30,
            memory: 700 << 20,
            memory_max: 4 << 30,
            uptime_seconds: 11_520,
            requests_in_flight: 5,
        },
        reads: percentiles(1000 + 4000 * look, 120_000 * (1 + look)),
        ranges: percentiles(0, 0),
        writes: percentiles(500 + 9 * look, 310_000),
        sstables_per_read: percentiles(10, 1),
        tombstones_per_read: percentiles(0, 0),
        tasks: vec![task("shop.orders", 300 << 20), task("shop.a_table_with_a_long_name", 1 << 20)],
        pace: Pace {
            bytes_per_second: Some(64 << 20),
            throughput: None,
            latency_target_us: Some(450),
            read_p99_us: Some(720),
            waiting: 3,
            urgent: true,
        },
        backlog: Backlog { tasks: 5, bytes: 12 << 30, excess_sstables: 4, write_wait_us: 17 },
        io: vec![io("user_read", 100 + 500 * look), io("scan", 0), io("compaction_write", 7)],
        caches: vec![
            Cache {
                name: "chunks".to_owned(),
                capacity: 64 << 20,
                size: 60 << 20,
                hit_ratio: 0.987,
                requests_per_second: 2100,
            },
            Cache {
                name: "rows".to_owned(),
                capacity: 0,
                size: 0,
                hit_ratio: 0.0,
                requests_per_second: 0,
            },
        ],
        tables: vec![
            table("shop.orders", 1000 + 4000 * look, 10),
            table("shop.a_table_with_a_long_name", 7, 10 + 30 * look),
            table("system.local", 3, 0),
        ],
        slow: vec![slow(1_777_896_000_000, 15, 612_000), slow(1_777_896_061_000, 900_000, 2_000)],
        clients: vec![
            client("10.0.0.7:40122", "ann", 3000 + 40 * look),
            client("10.0.0.8:51234", "anonymous", 10),
        ],
    }
}

thread_local! {
    static START: clock::Instant = clock::now();
}

fn frame_of(screen: &mut Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|area| frame::draw(area, screen)).expect("a frame");
    let buffer = terminal.backend().buffer();
    let line = |y| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
    (0..height).map(|y| format!("{}\n", line(y).trim_end())).collect()
}

fn is_as_accepted(name: &str, text: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/top/frames");
    let file = folder.join(name).with_extension("txt");
    if std::env::var_os("HALCYON_ACCEPT").is_some() {
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(&file, text).expect("a file");
    }
    let accepted = std::fs::read_to_string(&file).expect("an accepted frame");
    assert!(text == accepted, "{name} is now:\n{text}\nand was:\n{accepted}");
}

fn press(screen: &mut Screen, code: KeyCode) -> bool {
    screen.press(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Proves what each page shows on the smallest usual terminal.
#[test]
fn pages_fit_80_columns() {
    let mut screen = screen();
    for page in Page::ALL {
        screen.page = page;
        let text = frame_of(&mut screen, 80, 24);
        is_as_accepted(&format!("{page:?}_80x24").to_lowercase(), &text);
    }
}

/// Proves that a wide terminal has room for the lines over time and for whole queries.
#[test]
fn wide_terminals_show_more() {
    let mut screen = screen();
    is_as_accepted("overview_140x30", &frame_of(&mut screen, 140, 30));
    screen.page = Page::Slow;
    is_as_accepted("slow_140x30", &frame_of(&mut screen, 140, 30));
}

/// Proves that no size panics, and that a small terminal scrolls to the end of a page and no further.
#[test]
fn small_terminals_scroll() {
    let mut screen = screen();
    for (width, height) in [(1, 1), (5, 2), (20, 3), (40, 10), (300, 100)] {
        for page in Page::ALL {
            screen.page = page;
            frame_of(&mut screen, width, height);
        }
    }
    screen.page = Page::Overview;
    press(&mut screen, KeyCode::End);
    is_as_accepted("overview_60x8_end", &frame_of(&mut screen, 60, 8));
    let end = screen.scrolled;
    press(&mut screen, KeyCode::PageDown);
    frame_of(&mut screen, 60, 8);
    assert_eq!(screen.scrolled, end);
    press(&mut screen, KeyCode::PageUp);
    assert_eq!(screen.scrolled, end - screen.room);
    press(&mut screen, KeyCode::Home);
    assert_eq!(screen.scrolled, 0);
}

/// Proves that a lost connection is shown with its reason above the last figures, and that rates restart after it.
#[test]
fn a_lost_connection_is_shown() {
    let mut screen = Screen::new(&options());
    is_as_accepted("connecting", &frame_of(&mut screen, 80, 6));
    screen.lose("127.0.0.1:9042: Connection refused".to_owned());
    is_as_accepted("never_connected", &frame_of(&mut screen, 80, 6));
    screen.take(sample(0));
    screen.take(sample(1));
    screen.lose("127.0.0.1:9042: the server closed the connection".to_owned());
    is_as_accepted("lost", &frame_of(&mut screen, 80, 12));
    screen.take(sample(1));
    assert_eq!(screen.rate(|sample| sample.reads.count), None);
    assert_eq!(screen.lost, None);
}

/// Proves that the help is shown until any key, which does nothing else, and that q ends.
#[test]
fn keys_help_and_end() {
    let mut screen = screen();
    press(&mut screen, KeyCode::Char('?'));
    is_as_accepted("help_80x24", &frame_of(&mut screen, 80, 24));
    assert!(!press(&mut screen, KeyCode::Tab) && screen.page == Page::Overview);
    assert!(!screen.shows_help);
    press(&mut screen, KeyCode::BackTab);
    assert_eq!(screen.page, Page::Clients);
    press(&mut screen, KeyCode::Right);
    assert_eq!(screen.page, Page::Overview);
    press(&mut screen, KeyCode::Char('3'));
    assert_eq!(screen.page, Page::Slow);
    assert!(press(&mut screen, KeyCode::Char('q')));
    assert!(screen.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
}

/// Proves that lists are sorted by each column in turn, and the other way round.
#[test]
fn lists_are_sorted() {
    let mut screen = screen();
    let now = screen.now.clone().expect("a sample");
    let first = |screen: &Screen| screen.tables(&now)[0].0.name.clone();
    screen.page = Page::Tables;
    assert_eq!(first(&screen), "shop.orders");
    press(&mut screen, KeyCode::Char('s'));
    assert_eq!(first(&screen), "shop.a_table_with_a_long_name");
    press(&mut screen, KeyCode::Char('r'));
    assert_eq!(first(&screen), "system.local");
    for _ in 0..8 {
        press(&mut screen, KeyCode::Char('s'));
    }
    assert_eq!(first(&screen), "shop.orders");
    screen.page = Page::Slow;
    assert_eq!(screen.slow(&now)[0].waited_us, 900_000);
    press(&mut screen, KeyCode::Char('s'));
    press(&mut screen, KeyCode::Char('r'));
    assert_eq!(screen.slow(&now)[0].waited_us, 15);
    screen.page = Page::Clients;
    assert_eq!(screen.clients(&now)[0].0.user, "ann");
}

/// Proves what is printed without a terminal: all pages.
#[test]
fn plain_text_has_all_pages() {
    is_as_accepted("plain", &frame::plain(&screen()));
}

/// Proves that without colours nothing is lost: a compaction has a mark, the chosen page is reversed.
#[test]
fn colours_can_be_refused() {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal");
    for is_colored in [true, false] {
        let mut screen = screen();
        screen.color(is_colored);
        terminal.draw(|area| frame::draw(area, &mut screen)).expect("a frame");
        let cells = &terminal.backend().buffer().content;
        assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset), is_colored);
    }
}
