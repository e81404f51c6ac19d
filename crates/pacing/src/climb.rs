//! How a rate grows, falls, and finds back to where it was too much.
//!
//! Until it was too much once, it grows by a part of itself (the slow start of TCP). Then it returns along a cubic to the rate that was too
//! much (the wall), stays near it for a while, and leaves it faster and faster, as CUBIC leaves its last maximum (RFC 9438): a wall
//! is tried again every half minute, not every second, and compaction has nine tenths of it in the mean.

/// Of the rate, in each step of the slow start.
const START_GROWTH: f64 = 1.0 / 4.0;

#[derive(Debug, Clone)]
pub(super) struct Climb {
    rate: f64,
    wall: Option<Wall>,
}

#[derive(Debug, Clone, Copy)]
struct Wall {
    rate: f64,
    /// Below it, in bytes per second, where the return began.
    depth: f64,
    /// Of the return, and how many it takes.
    seconds: f64,
    of: f64,
}

impl Climb {
    pub(super) fn from(rate: f64) -> Climb {
        Climb { rate, wall: None }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// The rate was used for `seconds`, and was not too much.
    pub(super) fn grow(&mut self, seconds: f64) {
        self.rate = match &mut self.wall {
            None => self.rate * (1.0 + START_GROWTH),
            Some(wall) => {
                wall.seconds += seconds;
                let cubed = (wall.seconds / wall.of - 1.0).powi(3);
                wall.rate + wall.depth * cubed
            }
        };
    }

    /// `used` bytes per second were too much: the rate falls to `part` of it and returns within `seconds`.
    pub(super) fn fall(&mut self, used: f64, part: f64, seconds: f64) {
        self.rate = used * part;
        self.wall = Some(Wall { rate: used, depth: used - self.rate, seconds: 0.0, of: seconds });
    }

    /// The wall was not there, or has gone: as if the rate had not fallen.
    pub(super) fn forget_the_wall(&mut self) {
        if let Some(wall) = self.wall.take() {
            self.rate = self.rate.max(wall.rate);
        }
    }

    pub(super) fn limit(&mut self, least: f64, most: f64) {
        self.rate = self.rate.max(least).min(most);
    }
}
