use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use super::writer::WAITING_MAX;
use super::*;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits before each write until its channel has a message or ends.
struct Stuck(std::sync::mpsc::Receiver<()>, Kept);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(root: Level, to: impl Write + Send + 'static) -> (Log, LogWriter) {
    let levels = Levels::new(root.into(), ByLogger::new());
    let sink = Sink { most: Level::Trace, to: Box::new(to), is_journal: false };
    Log::written(levels, Format::Text, vec![sink])
}

fn ends(written: &str) -> Vec<&str> {
    written.lines().map(|line| line.rsplit(' ').next().unwrap()).collect()
}

/// Proves that lines below the level are left out, that a change of level is obeyed, that an event has its own logger, and that all lines
/// are written when the writer is dropped.
#[test]
fn levels_are_obeyed() {
    let kept = Kept::default();
    let (log, writer) = written(Level::Warn, kept.clone());
    log.say(format_args!("quiet"));
    log.warning(format_args!("loud"));
    log.levels().set("server.log.tests", Some(Level::Debug.into()));
    log.debug(format_args!("louder"));
    log.event(Level::Info, "engine.compact", &"quiet");
    log.levels().set("engine", Some(Level::Info.into()));
    log.event(Level::Info, "engine.compact", &"heard");
    drop((log, writer));
    let text = kept.text();
    assert_eq!(ends(&text), ["loud", "louder", "heard"]);
    assert!(
        text.lines().all(|line| line.contains(" tests.rs:") || line.contains(" engine.compact - "))
    );
}

/// Proves that a text of a client cannot begin a line of its own.
#[test]
fn a_text_stays_in_its_line() {
    let kept = Kept::default();
    let (log, writer) = written(Level::Info, kept.clone());
    log.say(format_args!("snapshot a\nERROR [main] forged\r\u{1b}[2J"));
    log.event(Level::Info, "engine", &"b\nERROR");
    drop((log, writer));
    let text = kept.text();
    assert_eq!(text.lines().count(), 2);
    assert!(text.contains("snapshot a\\nERROR [main] forged\\r\\u{1b}[2J\n"), "{text}");
}

/// Proves that each item of a list is a line, and that its text cannot begin another one.
#[test]
fn lists_have_a_line_for_each_item() {
    let kept = Kept::default();
    let (log, writer) = written(Level::Debug, kept.clone());
    log.list(
        Level::Debug,
        "server.slow_queries",
        "2 operations:",
        vec!["<a\nb>".to_owned(), "<c>".to_owned()],
    );
    drop((log, writer));
    assert!(
        kept.text().ends_with(" server.slow_queries - 2 operations:\n<a\\nb>\n<c>\n"),
        "{}",
        kept.text()
    );
}

/// Proves that each sink gets the lines of its level and worse, and that one that cannot write has its lines counted as lost.
#[test]
fn sinks_have_levels() {
    let (worse, all) = (Kept::default(), Kept::default());
    let sinks = vec![
        Sink { most: Level::Info, to: Box::new(worse.clone()), is_journal: true },
        Sink { most: Level::Trace, to: Box::new(all.clone()), is_journal: false },
    ];
    let (log, writer) =
        Log::written(Levels::new(Level::Debug.into(), ByLogger::new()), Format::Text, sinks);
    log.debug(format_args!("detail"));
    log.say(format_args!("news"));
    drop((log, writer));
    assert_eq!((ends(&worse.text()), ends(&all.text())), (vec!["news"], vec!["detail", "news"]));
    assert!(worse.text().starts_with("<6>INFO  ["));
}

/// Proves that lost lines are counted, and that a later line says how many.
#[test]
fn lost_lines_are_counted() {
    let kept = Kept::default();
    let (go_on, stuck) = std::sync::mpsc::channel();
    let (log, writer) = written(Level::Info, Stuck(stuck, kept.clone()));
    let all = 3 + WAITING_MAX;
    for number in 0..all {
        log.say(format_args!("{number}"));
    }
    drop(go_on);
    for _ in 0..60_000 {
        if kept.text().lines().count() >= WAITING_MAX {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    log.say(format_args!("last"));
    drop((log, writer));
    let text = kept.text();
    let told = text.lines().rev().nth(1).unwrap();
    let lost = all - (text.lines().count() - 2);
    assert!(lost > 0 && told.contains(&format!("- {lost} lines of this log were lost")), "{told}");
}

/// Proves that lines that a device cannot take are counted as lost.
#[test]
fn lines_of_a_full_device_are_counted() {
    struct Full(Kept);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.ends_with(b" refused\n") {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let kept = Kept::default();
    let (log, writer) = written(Level::Info, Full(kept.clone()));
    log.say(format_args!("refused"));
    for _ in 0..60_000 {
        log.say(format_args!("next"));
        if kept.text().contains("1 lines of this log were lost") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop((log, writer));
    assert!(kept.text().contains(" server.log - 1 lines of this log were lost"), "{}", kept.text());
}

/// Proves that a reader that does not read loses lines, and delays no caller.
#[test]
fn a_slow_reader_delays_no_caller() {
    let (go_on, stuck) = std::sync::mpsc::channel();
    let (log, writer) = written(Level::Info, Stuck(stuck, Kept::default()));
    for number in 0..2 * WAITING_MAX {
        log.say(format_args!("{number}"));
    }
    drop(go_on);
    drop((log, writer));
}
