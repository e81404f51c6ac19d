//! `halcyon top`: what an operator watches of a running node, on a terminal, over CQL.
//!
//! ```text
//!   feed (a thread): connection, one round of prepared statements per interval ──► Update ─┐
//!   terminal (the main thread): keys, signals, resizes ─────────────────────────► Screen ◄─┘ ──► frame
//! ```
//!
//! 1. `feed` connects, and again after an error. It reads virtual tables only. `sample` decodes them, and escapes what a terminal would
//!    obey: no text of a server reaches it raw.
//! 2. `screen` is the state: the last two samples, their history, the page, and how its lists are sorted. Rates are differences of the
//!    counters of two samples.
//! 3. `pages` makes the lines of each page, symptom first and causes below; `frame` draws those that fit.
//! 4. Without a terminal, and with `--once`, the lines of all pages are printed once.

mod feed;
mod frame;
mod grid;
mod options;
mod pages;
mod sample;
mod screen;
mod terminal;
#[cfg(test)]
mod tests;
mod units;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use halcyon_io::block_on;

use crate::failure::{Failure, Result};
use options::{Asked, Options};
use screen::Screen;

/// The arguments of `top`, if that is the first word.
pub(crate) fn asked(words: &[String]) -> Option<&[String]> {
    let (_, rest) = words.split_first()?;
    rest.split_first().filter(|(verb, _)| *verb == "top").map(|(_, rest)| rest)
}

pub(crate) fn run(words: &[String]) -> ExitCode {
    let outcome = match options::read(words) {
        Ok(Asked::Help(text)) => print(&text),
        Ok(Asked::Watch(options)) => watch(options),
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::OutputClosed) {
                eprintln!("halcyon: {failure}");
            }
            failure.exit_code()
        }
    }
}

fn watch(options: Options) -> Result<()> {
    if !options.once && std::io::stdout().is_terminal() {
        return terminal::show(options);
    }
    let (before, now) = block_on(feed::two_samples(&options))?;
    let mut screen = Screen::new(&options);
    screen.take(before);
    screen.take(now);
    print(&frame::plain(&screen))
}

fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
