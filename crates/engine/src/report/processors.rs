//! Whether the node gets its processors, or who withholds them.
//!
//! A host gives a virtual machine so much time of its cores in a slice of time, often with the work of its disks counted in, and a limit
//! of a control group does the same to a container: who has used it up waits for the next slice, with all threads. That is 10 to 100 ms
//! for every request, and nothing in the node shows it.

use std::time::Duration;

use halcyon_io::Disk;
use halcyon_io::clock::Instant;

use crate::reporter::{Event, Reporter};

const WINDOW: Duration = Duration::from_secs(60);
/// A fiftieth of all processors: requests at the 99th percentile notice that.
const MUCH: f64 = 0.02;

/// What had been withheld at the last look.
pub(crate) struct Seen {
    at: Instant,
    withheld: Duration,
}

impl Seen {
    pub(crate) fn at(disk: &Disk, at: Instant) -> Seen {
        Seen { at, withheld: disk.runtime().processors_withheld() }
    }

    /// Warns if much was withheld since the last look; to be called often.
    pub(crate) fn look(&mut self, disk: &Disk, now: Instant, reporter: &Reporter) {
        let elapsed = now - self.at;
        if elapsed < WINDOW {
            return;
        }
        let seen = Seen::at(disk, now);
        let withheld = seen.withheld.saturating_sub(self.withheld);
        *self = seen;
        if let Some(event) = event(withheld, elapsed, disk.runtime().core_count()) {
            reporter.report(event);
        }
    }
}

/// What is to be reported, if much was withheld.
fn event(withheld: Duration, elapsed: Duration, cores: usize) -> Option<Event> {
    // A group is throttled on cores of its machine, which may be more than it gets in the end.
    let share = (withheld.as_secs_f64() / elapsed.as_secs_f64() / cores as f64).min(1.0);
    let percent = (share * 100.0).round() as u32;
    (share >= MUCH).then_some(Event::ProcessorsWithheld { percent, window: elapsed })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what is withheld is compared with all cores' time, and that a little is not worth a line.
    #[test]
    fn much_is_told() {
        let minute = Duration::from_secs(60);
        let text = event(Duration::from_secs(12), minute, 2).unwrap().to_string();
        assert!(text.starts_with("10 % of the processors' time"), "{text}");
        assert_eq!(event(Duration::from_secs(12), minute, 16), None);
        assert!(event(10 * minute, minute, 2).unwrap().to_string().starts_with("100 %"));
    }
}
