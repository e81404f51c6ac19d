//! The terminal: keys, signals and resizes change what is shown. It is restored at the end, by ratatui also after a panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use halcyon_io::{ThreadPriority, block_on, clock, on_stop, spawn_thread};
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;

use super::feed::{self, Update};
use super::frame;
use super::options::Options;
use super::screen::Screen;
use crate::failure::{Failure, Result};

/// How long the loop may take to end after a signal.
const STUCK: Duration = Duration::from_secs(1);
/// How often samples and signals are looked for; keys wake the loop at once.
const LOOK: Duration = Duration::from_millis(100);

pub(super) fn show(options: Options) -> Result<()> {
    let stopped = Arc::new(AtomicBool::new(false));
    let by_signal = stopped.clone();
    let caught = on_stop(move || {
        by_signal.store(true, SeqCst);
        // The loop may be stuck: in a terminal that takes no more, or in one that has hung up, which crossterm reads for ever.
        block_on(clock::sleep(STUCK));
        // One that has hung up takes neither this nor a word about it.
        let _ = ratatui::try_restore();
        let _ = execute!(std::io::stdout(), Show);
        std::process::exit(0);
    });
    caught.map_err(|e| Failure::unreadable(format!("signal handler: {e}")))?;
    let mut screen = Screen::new(&options);
    let (sender, updates) = mpsc::channel();
    // The thread ends with the process.
    drop(spawn_thread("feed", ThreadPriority::Normal, move || {
        block_on(feed::watch(&options, &sender));
    }));
    let unusable = |e: std::io::Error| Failure::unreadable(format!("terminal: {e}"));
    let mut terminal = ratatui::try_init().map_err(unusable)?;
    let outcome = run(&mut terminal, &mut screen, &updates, &stopped);
    let restored = ratatui::try_restore();
    outcome.and(restored).map_err(unusable)
}

fn run(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    updates: &Receiver<Update>,
    stopped: &AtomicBool,
) -> std::io::Result<()> {
    let mut is_stale = true;
    while !stopped.load(SeqCst) {
        loop {
            match updates.try_recv() {
                Ok(Update::Sample(sample)) => screen.take(*sample),
                Ok(Update::Lost(why)) => screen.lose(why),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    return Err(std::io::Error::other("the thread that asks the node has ended"));
                }
            }
            is_stale = true;
        }
        if is_stale {
            terminal.draw(|area| frame::draw(area, screen))?;
        }
        is_stale = event::poll(LOOK)?;
        if is_stale
            && let Event::Key(key) = event::read()?
            && key.is_press()
            && screen.press(key)
        {
            return Ok(());
        }
    }
    Ok(())
}
