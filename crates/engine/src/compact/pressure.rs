//! What a backlog calls for.
//!
//! Idle priority and a latency target must not mean that SSTables pile up until reads drown in them. What counts is by how many
//! SSTables a read may meet too many: those that tasks which are due would take out of its way.
//!
//! ```text
//!  excess    8                        64                      128
//!   ────────┼─────────────────────────┼───────────────────────┼──────────────────────────▶
//!   idle    │ the floor under the     │ no target any more,   │ writes to the table wait,
//!           │ latency target rises    │ threads not idle      │ longer the further it is
//! ```

use std::time::Duration;

pub(super) const CALM: f64 = 8.0;
pub(super) const URGENT: f64 = 64.0;
const DROWNING: f64 = 128.0;
/// How long a write waits at twice the excess at which waiting begins; more is not waited.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// The reaction to a backlog.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Pressure {
    /// For `LatencyController::set_floor`.
    pub(super) floor: f64,
    /// Compaction threads get their share of the processor.
    pub(super) urgent: bool,
}

/// The reaction to the worst table's excess of SSTables.
pub(super) fn pressure(excess: usize) -> Pressure {
    let excess = excess as f64;
    let floor = ((excess - CALM) / (URGENT - CALM)).clamp(0.0, 1.0);
    Pressure { floor, urgent: excess >= URGENT }
}

/// How long each write to a table waits.
pub(super) fn write_wait(excess: usize) -> Duration {
    let beyond = ((excess as f64 - DROWNING) / DROWNING).clamp(0.0, 1.0);
    WAIT_MAX.mul_f64(beyond * beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the stages: nothing, a rising floor, urgency, waits that grow and end at their most.
    #[test]
    fn stages() {
        let cases = [
            (0, 0.0, false, 0),
            (8, 0.0, false, 0),
            (36, 0.5, false, 0),
            (64, 1.0, true, 0),
            (128, 1.0, true, 0),
            (192, 1.0, true, 25_000),
            (256, 1.0, true, 100_000),
            (10_000, 1.0, true, 100_000),
        ];
        for (excess, floor, urgent, wait_us) in cases {
            assert_eq!(pressure(excess), Pressure { floor, urgent }, "{excess}");
            assert_eq!(write_wait(excess).as_micros(), wait_us, "{excess}");
        }
    }
}
