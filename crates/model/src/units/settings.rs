//! The syntax of cassandra.yaml (`DataStorageSpec`, `DurationSpec`, `DataRateSpec`).

use std::time::Duration;

use super::Units;

pub const SIZES: Units = Units(&[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)]);

pub const DURATIONS: Units = Units(&[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
]);

pub const RATES: Units = Units(&[("B/s", 1), ("KiB/s", 1 << 10), ("MiB/s", 1 << 20)]);

pub fn size(text: &str) -> Option<u64> {
    SIZES.parse(text)
}

pub fn duration(text: &str) -> Option<Duration> {
    DURATIONS.parse(text).map(Duration::from_nanos)
}

/// Bytes per second.
pub fn rate(text: &str) -> Option<u64> {
    RATES.parse(text)
}

/// A number as it was written before units: the unit is in the older name. A negative one meant "off", which is null now.
pub fn with_unit(text: &str, unit: &str) -> Option<String> {
    if text.starts_with('-') {
        return None;
    }
    match (unit, text.parse::<f64>()) {
        // Not the older form after all.
        (_, Err(_)) => Some(text.to_owned()),
        // One megabit is 125,000 bytes.
        ("Mbit/s", Ok(megabits)) => Some(format!("{}B/s", (megabits * 125_000.0) as u64)),
        (_, Ok(_)) => Some(format!("{text}{unit}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the syntax: units where case matters, no fractions, no unit below the smallest, no overflow.
    #[test]
    fn values() {
        assert_eq!(size("256KiB"), Some(256 << 10));
        assert_eq!(duration("10s"), Some(Duration::from_secs(10)));
        assert_eq!(rate("64MiB/s"), Some(64 << 20));
        for wrong in ["256kib", "1.5MiB", "-1B", "12", "", "KiB", "99999999999999999999B"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
        let from_ms = DURATIONS.starting_at("ms").expect("a unit");
        assert_eq!((from_ms.parse("1d"), from_ms.parse("5us")), (Some(86_400_000_000_000), None));
    }

    /// Proves that numbers under older names get the unit of the name.
    #[test]
    fn older_values() {
        assert_eq!(with_unit("32", "MiB").as_deref(), Some("32MiB"));
        assert_eq!(with_unit("200", "Mbit/s").as_deref(), Some("25000000B/s"));
        assert_eq!(with_unit("4h", "s").as_deref(), Some("4h"));
        assert_eq!(with_unit("-1", "ms"), None);
    }
}
