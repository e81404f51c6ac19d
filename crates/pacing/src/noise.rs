//! What happens without compaction too.
//!
//! A rule that takes each slow moment for compaction's doing is wrong as often as such moments come by themselves: on a machine where they
//! do, it starves compaction, and reads gain nothing. So their number is learned at rest, and as many are pardoned beside compaction.

use std::time::Duration;

/// Of rest; what was before counts less and less.
const MEMORY: f64 = 20.0;
/// Pardons that are saved up at least: a few moments in a row are an accident, more are not.
const SAVED: f64 = 3.0;

#[derive(Debug, Clone)]
pub(super) struct Noise {
    /// Slow moments in a second of rest.
    often: f64,
    /// Seconds of rest that say so.
    rested: f64,
    /// Not used yet.
    pardons: f64,
    margin: f64,
    saved_for: f64,
}

impl Noise {
    /// Pardons `margin` times as many as there are at rest; what is not used is saved up, for a few moments and so long.
    pub(super) fn unknown(margin: f64, saved_for: Duration) -> Noise {
        let saved_for = saved_for.as_secs_f64();
        Noise { often: 0.0, rested: 0.0, pardons: 0.0, margin, saved_for }
    }

    pub(super) fn forget(&mut self) {
        (self.often, self.rested, self.pardons) = Default::default();
    }

    /// Takes in so much time of rest.
    pub(super) fn learn(&mut self, elapsed: Duration, was_slow: bool) {
        let seconds = elapsed.as_secs_f64();
        self.rested = (self.rested + seconds).min(MEMORY);
        if self.rested > 0.0 {
            let moments = f64::from(u8::from(was_slow));
            self.often += (moments - self.often * seconds) / self.rested;
        }
    }

    /// Takes in so much time beside compaction; whether it was slow, and compaction is to blame.
    pub(super) fn blames(&mut self, elapsed: Duration, was_slow: bool) -> bool {
        let often = self.often * self.margin;
        let saved = SAVED + often * self.saved_for;
        self.pardons = (self.pardons + often * elapsed.as_secs_f64()).min(saved);
        let is_pardoned = was_slow && self.pardons >= 1.0;
        if is_pardoned {
            self.pardons -= 1.0;
        }
        was_slow && !is_pardoned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_millis(100);

    /// Proves that nothing is pardoned as long as rest is not known, or had no slow moment.
    #[test]
    fn without_noise() {
        let mut noise = Noise::unknown(1.0, Duration::ZERO);
        assert!(noise.blames(LOOK, true));
        (0..100).for_each(|_| noise.learn(LOOK, false));
        assert!(!noise.blames(LOOK, false));
        assert!(noise.blames(LOOK, true));
    }

    /// Proves that as many are pardoned as come at rest, more are blamed, of many in a row most, and that rest may change.
    #[test]
    fn as_often_as_at_rest() {
        let mut noise = Noise::unknown(1.1, Duration::ZERO);
        let learn = |noise: &mut Noise, each| {
            (0..1000).for_each(|look| noise.learn(LOOK, look % each == 0));
        };
        let blamed = |noise: &mut Noise, each| {
            (0..1000).filter(|look| noise.blames(LOOK, look % each == 0)).count()
        };
        learn(&mut noise, 10);
        assert!(blamed(&mut noise, 10) <= 1);
        assert_eq!(blamed(&mut noise, 20), 0);
        let of_200 = blamed(&mut noise, 5);
        assert!((80..=100).contains(&of_200), "{of_200}");
        let in_a_row = (0..20).filter(|_| noise.blames(LOOK, true)).count();
        assert!(in_a_row >= 16, "{in_a_row}");
        learn(&mut noise, 100);
        let of_100 = blamed(&mut noise, 10);
        assert!((85..=95).contains(&of_100), "{of_100}");
        noise.forget();
        assert!(noise.blames(LOOK, true));
    }
}
