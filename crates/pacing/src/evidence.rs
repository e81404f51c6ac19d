//! Whether something comes more often than it may.
//!
//! A sequential test (the cumulative sum of E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954): each event adds the
//! logarithm of how much likelier it is where events are too frequent than where they are as frequent as they may be; time without one
//! subtracts. A sum of `ENOUGH` is evidence. Events at rest are learned, and as many are allowed beside compaction, so a machine that
//! stalls by itself does not starve compaction.

/// Of the logarithm of a likelihood ratio.
const ENOUGH: f64 = 2.0;
/// Units of rest that count; what was before counts less and less.
const MEMORY: f64 = 200.0;

/// Events in units of time, which are the caller's.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    /// Events of a unit at rest.
    often: f64,
    /// Units of rest that say so.
    rested: f64,
    /// Events of a unit that may come beside those at rest.
    allowed: f64,
    /// Events of a unit, beside twice those at rest, that are too many.
    too_many: f64,
    sum: f64,
}

impl Evidence {
    /// Assumes that `rested` units of rest had `often` events each.
    pub(super) fn new((allowed, too_many): (f64, f64), (rested, often): (f64, f64)) -> Evidence {
        Evidence { often, rested, allowed, too_many, sum: 0.0 }
    }

    /// Takes in units of rest.
    pub(super) fn learn(&mut self, units: f64, events: f64) {
        self.rested = (self.rested + units).min(MEMORY);
        if self.rested > 0.0 {
            self.often += (events - self.often * units) / self.rested;
        }
    }

    /// Takes in units beside compaction; whether events are too frequent. Each further event says so at once, until time without events
    /// lowers the sum.
    pub(super) fn observe(&mut self, units: f64, events: f64) -> bool {
        let allowed = self.often + self.allowed;
        let too_many = 2.0 * self.often + self.too_many;
        let sum = self.sum + events * (too_many / allowed).ln() - units * (too_many - allowed);
        self.sum = sum.clamp(0.0, ENOUGH);
        events > 0.0 && self.sum >= ENOUGH
    }
}
