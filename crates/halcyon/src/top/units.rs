//! Figures as a narrow column shows them.

/// Nothing to show.
pub(super) const NOTHING: &str = "-";

/// A latency; 0 without any request.
pub(super) fn latency(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0 => NOTHING.to_owned(),
        1..1_000_000 => format!("{:.0} µs", (value / 1e3).ceil()),
        1_000_000..100_000_000 => format!("{:.2} ms", value / 1e6),
        100_000_000..1_000_000_000 => format!("{:.0} ms", value / 1e6),
        _ => format!("{:.1} s", value / 1e9),
    }
}

/// What happens in a second; `None` until there are two samples.
pub(super) fn rate(per_second: Option<f64>) -> String {
    match per_second {
        None => NOTHING.to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(few) if few < 10.0 => format!("{few:.1}"),
        Some(some) if some < 1e5 => format!("{some:.0}"),
        Some(many) if many < 1e8 => format!("{:.0}k", many / 1e3),
        Some(most) => format!("{:.0}M", most / 1e6),
    }
}

pub(super) fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (minutes, hours, days) {
        (0, ..) => format!("{seconds} s"),
        (_, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (.., 0) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves each unit at its bounds.
    #[test]
    fn units() {
        let latencies = [0, 1, 999_000, 1_234_000, 99_990_000, 123_000_000, 2_500_000_000];
        let shown = ["-", "1 µs", "999 µs", "1.23 ms", "99.99 ms", "123 ms", "2.5 s"];
        assert_eq!(latencies.map(latency), shown);
        let rates = [None, Some(0.0), Some(0.5), Some(12.4), Some(123_456.0), Some(2.5e8)];
        assert_eq!(rates.map(rate), ["-", "0", "0.5", "12", "123k", "250M"]);
        let spans = [5, 65, 3_725, 90_000].map(span);
        assert_eq!(spans, ["5 s", "1 min 5 s", "1 h 2 min", "1 d 1 h"]);
    }
}
