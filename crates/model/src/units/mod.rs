//! Sizes, rates, durations and instants. Each dialect is exact and differs from the others, so each has a module:
//!
//! | module | reads | as |
//! |---|---|---|
//! | `settings` | cassandra.yaml | `256KiB`, `10s`, `64MiB/s`: no fraction, no space, case counts |
//! | `arguments` | the command line | as `settings`, and `TiB`, `µs`, plain seconds, instants |
//! | `human` | table options of UnifiedCompactionStrategy | `1.5GiB`, `10 MB`, `33%`: fractions, decimal and binary prefixes |
//! | `show` | nothing: it prints | `1.5 MiB`, `64 µs`, `2m 5s` |

pub mod arguments;
pub mod human;
pub mod settings;
mod show;

pub use show::{bytes, count, duration, instant, micros_as_instant, nanos, seconds_as_instant};

/// Names of units with their factors, from the smallest up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units(&'static [(&'static str, u64)]);

impl Units {
    /// Without the units below `smallest`; `None` if it is not one of them.
    pub fn starting_at(self, smallest: &str) -> Option<Units> {
        let at = self.0.iter().position(|(name, _)| *name == smallest)?;
        self.0.get(at..).map(Units)
    }

    /// `B, KiB, MiB`
    pub fn names(self) -> String {
        self.0.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// A whole number directly followed by a unit, in the smallest unit of the whole table.
    pub fn parse(self, text: &str) -> Option<u64> {
        let digits = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at(digits);
        let (_, factor) = self.0.iter().find(|(name, _)| *name == unit)?;
        number.parse::<u64>().ok()?.checked_mul(*factor)
    }
}
