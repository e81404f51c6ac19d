//! Who runs, and what is made of several runs.

/// A program in one of its modes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Contender {
    /// `halcyon`, `postgresql`, `device`, or a release of Cassandra.
    pub(super) peer: String,
    pub(super) mode: String,
}

impl Contender {
    pub(super) fn new(peer: &str, mode: &str) -> Contender {
        Contender { peer: peer.to_owned(), mode: mode.to_owned() }
    }

    pub(super) fn is_halcyon(&self) -> bool {
        self.peer == "halcyon"
    }

    pub(super) fn name(&self) -> String {
        let peer = match self.peer.as_str() {
            "halcyon" => "Halcyon".to_owned(),
            "postgresql" => "PostgreSQL".to_owned(),
            "device" => "Device".to_owned(),
            release => format!("Cassandra {release}"),
        };
        format!("{peer} {}", self.mode)
    }
}

/// Median, least and most.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return Spread::default();
        };
        let (upper, lower) = (sorted.len() / 2, (sorted.len() - 1) / 2);
        Spread { median: (sorted[upper] + sorted[lower]) / 2.0, min: *min, max: *max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        let spread = Spread { median: 2.5, min: 1.0, max: 9.0 };
        assert_eq!(Spread::of([9.0, 2.0, 1.0, 3.0]), spread);
        assert_eq!(Spread::of([7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
        assert_eq!(Spread::of([]), Spread::default());
    }
}
