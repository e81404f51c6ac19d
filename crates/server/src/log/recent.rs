//! The last lines, for `system_views.system_logs`.

use std::borrow::Cow;
use std::collections::VecDeque;

use halcyon_io::Mutex;
use halcyon_io::clock::unix_micros;

use super::level::Level;
use super::line::Line;

/// Chosen: a page of a browser, and with [`TEXT_MAX`] a megabyte.
const LINES_MAX: usize = 256;
const TEXT_MAX: usize = 4 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// Milliseconds since 1970; never less than those of the line before.
    pub(crate) at_ms: i64,
    pub(crate) level: Level,
    pub(crate) logger: Cow<'static, str>,
    pub(crate) text: String,
}

#[derive(Default)]
pub(super) struct Recent(Mutex<VecDeque<Said>>);

impl Recent {
    pub(super) fn keep(&self, line: &Line) {
        let end = line.text.floor_char_boundary(TEXT_MAX);
        let text = line.text.get(..end).unwrap_or_default().to_owned();
        let (level, logger) = (line.level, line.logger.clone());
        let mut lines = self.0.lock();
        let before = lines.back().map_or(0, |said| said.at_ms);
        let at_ms = (unix_micros() / 1000).max(before);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(Said { at_ms, level, logger, text });
    }

    /// In the order in which they were said.
    pub(super) fn lines(&self) -> Vec<Said> {
        self.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the last lines are kept in order, with times that do not go back, and long ones in part.
    #[test]
    fn the_last_lines_are_kept() {
        let recent = Recent::default();
        for number in 0..LINES_MAX + 3 {
            let text = format!("{number}{}", "é".repeat(TEXT_MAX));
            let logger = Cow::Borrowed("server.log");
            recent.keep(&Line { level: Level::Info, source: logger.clone(), logger, text });
        }
        let lines = recent.lines();
        assert_eq!(lines.len(), LINES_MAX);
        assert!(lines[0].text.starts_with('3') && lines.iter().all(|of| of.text.len() <= TEXT_MAX));
        assert!(lines.is_sorted_by_key(|said| said.at_ms));
    }
}
