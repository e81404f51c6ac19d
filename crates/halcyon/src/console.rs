//! Messages to the user, on standard error: standard output has only the result.

use std::fmt::Arguments;
use std::time::Duration;

use halcyon_tools::Notices;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Which messages are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    pub(crate) verbosity: Verbosity,
}

impl Notices for Console {
    fn warn(&self, text: Arguments<'_>) {
        Console::warn(self, text);
    }

    fn detail(&self, text: Arguments<'_>) {
        Console::detail(self, text);
    }
}

impl Console {
    /// Prints a warning, at every verbosity.
    pub(crate) fn warn(&self, text: impl std::fmt::Display) {
        if self.verbosity > Verbosity::Quiet {
            eprintln!("warning: {text}");
        }
    }

    /// Prints a detail, with `--verbose` only.
    pub(crate) fn detail(&self, text: impl std::fmt::Display) {
        if self.verbosity == Verbosity::Verbose {
            eprintln!("{text}");
        }
    }

    /// A progress bar with rate and ETA; drawn only on a terminal, and only if `wanted`.
    pub(crate) fn progress(&self, what: &str, bytes: u64, wanted: bool) -> ProgressBar {
        let target = if wanted && self.verbosity > Verbosity::Quiet {
            // Draws nothing unless standard error is a terminal.
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(bytes), target);
        let template = "{prefix:.bold} {wide_bar} {percent:>3}% {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} eta {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸ "));
        }
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}
