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

/// What a duration may be: the smallest unit, and what is too many of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationBound {
    IntSeconds,
    LongSeconds,
    LongNanoseconds,
}

/// A duration that keeps the unit in which it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundedDuration {
    quantity: u64,
    unit: &'static str,
    /// Nanoseconds.
    factor: u64,
}

impl BoundedDuration {
    pub fn as_seconds(self) -> u64 {
        let nanos = u128::from(self.quantity) * u128::from(self.factor);
        u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX)
    }
}

impl std::fmt::Display for BoundedDuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.quantity, self.unit)
    }
}

/// Reads what an operator gives nodetool; a wrong one is refused in Cassandra's words.
pub fn bounded_duration(text: &str, bound: DurationBound) -> Result<BoundedDuration, String> {
    let (smallest, most) = match bound {
        DurationBound::IntSeconds => ("s", i64::from(i32::MAX)),
        DurationBound::LongSeconds => ("s", i64::MAX),
        DurationBound::LongNanoseconds => ("ns", i64::MAX),
    };
    let least = DURATIONS.0.iter().position(|(name, _)| *name == smallest).unwrap_or(0);
    let accepted = LONG_NAMES.get(least..).unwrap_or_default();
    let units = format!("Invalid duration: {text} Accepted units:[{}]", accepted.join(", "));
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, name) = text.split_at(digits);
    let name = if name == "µs" { "us" } else { name };
    let found = DURATIONS.0.iter().enumerate().find(|(_, (known, _))| *known == name);
    let Some((at, (unit, factor))) = found.filter(|_| digits > 0) else {
        return Err(format!("{units} where case matters and only non-negative values."));
    };
    let Some(quantity) = number.parse::<i64>().ok().and_then(|n| u64::try_from(n).ok()) else {
        return Err(format!("For input string: \"{number}\""));
    };
    if at < least {
        return Err(units);
    }
    let divisor = DURATIONS.0.get(least).map_or(1, |(_, factor)| *factor);
    let smallest_units = u128::from(quantity) * u128::from(factor / divisor);
    if smallest_units >= u128::from(most.unsigned_abs()) {
        let long_name = accepted.first().copied().unwrap_or_default().to_lowercase();
        return Err(format!(
            "Invalid duration: {text}. It shouldn't be more than {} in {long_name}",
            most - 1
        ));
    }
    Ok(BoundedDuration { quantity, unit, factor: *factor })
}

/// Java's names of [`DURATIONS`].
const LONG_NAMES: [&str; 7] =
    ["NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"];

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
        // The older count had those of the system, too.
        (unit, Ok(count)) if let Some(less) = unit.strip_prefix("less") => {
            let less: i64 = less.parse().ok()?;
            Some((count as i64 - less).to_string())
        }
        // Not the older form after all.
        (_, Err(_)) => Some(text.to_owned()),
        // One megabit is 125,000 bytes.
        ("Mbit/s", Ok(megabits)) => Some(format!("{}B/s", (megabits * 125_000.0) as u64)),
        (_, Ok(_)) => Some(format!("{text}{unit}")),
    }
}

/// The number that a setting's older name shows, whose unit is in the name: the other way round than [`with_unit`].
pub fn in_unit(text: &str, unit: &str) -> Option<String> {
    if let Some(less) = unit.strip_prefix("less") {
        return Some((text.parse::<i64>().ok()? + less.parse::<i64>().ok()?).to_string());
    }
    if unit == "Mbit/s" {
        return Some((rate(text)? as f64 / 125_000.0).round().to_string());
    }
    let (units, value) = [SIZES, DURATIONS, RATES]
        .into_iter()
        .find_map(|units| Some((units, units.parse(text)?)))?;
    let (_, factor) = units.0.iter().find(|(name, _)| *name == unit)?;
    Some((value / factor).to_string())
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

    /// Proves bounds, and the texts of refusals, as Cassandra 5.0.9's nodetool printed them.
    #[test]
    fn bounded_durations() {
        use DurationBound::{IntSeconds, LongNanoseconds, LongSeconds};
        let read =
            |text, bound| bounded_duration(text, bound).map(|of| (of.to_string(), of.as_seconds()));
        assert_eq!(read("0060s", LongNanoseconds), Ok(("60s".to_owned(), 60)));
        assert_eq!(read("7µs", LongNanoseconds), Ok(("7us".to_owned(), 0)));
        assert_eq!(read("2h", IntSeconds), Ok(("2h".to_owned(), 7200)));
        assert_eq!(read("0s", LongSeconds), Ok(("0s".to_owned(), 0)));
        let refusals = [
            (
                "x",
                LongSeconds,
                "Invalid duration: x Accepted units:[SECONDS, MINUTES, HOURS, DAYS] where case matters and only non-negative values.",
            ),
            (
                "-1s",
                LongSeconds,
                "Invalid duration: -1s Accepted units:[SECONDS, MINUTES, HOURS, DAYS] where case matters and only non-negative values.",
            ),
            (
                "60000ms",
                IntSeconds,
                "Invalid duration: 60000ms Accepted units:[SECONDS, MINUTES, HOURS, DAYS]",
            ),
            (
                "99999d",
                IntSeconds,
                "Invalid duration: 99999d. It shouldn't be more than 2147483646 in seconds",
            ),
            (
                "99999999999d",
                LongNanoseconds,
                "Invalid duration: 99999999999d. It shouldn't be more than 9223372036854775806 in nanoseconds",
            ),
            (
                "106751991167301d",
                LongSeconds,
                "Invalid duration: 106751991167301d. It shouldn't be more than 9223372036854775806 in seconds",
            ),
            ("99999999999999999999s", LongSeconds, "For input string: \"99999999999999999999\""),
        ];
        for (text, bound, refusal) in refusals {
            assert_eq!(read(text, bound), Err(refusal.to_owned()));
        }
    }

    /// Proves that numbers under older names get the unit of the name.
    #[test]
    fn older_values() {
        assert_eq!(with_unit("32", "MiB").as_deref(), Some("32MiB"));
        assert_eq!(with_unit("200", "Mbit/s").as_deref(), Some("25000000B/s"));
        assert_eq!(with_unit("4h", "s").as_deref(), Some("4h"));
        assert_eq!(with_unit("-1", "ms"), None);
        assert_eq!(with_unit("40", "less5").as_deref(), Some("35"));
    }

    /// Proves what Cassandra 5.0.9 shows under older names.
    #[test]
    fn in_older_units() {
        let shown = [
            ("32MiB", "MiB", "32"),
            ("2h", "s", "7200"),
            ("24MiB/s", "Mbit/s", "201"),
            ("10MiB/s", "Mbit/s", "84"),
            ("12500000B/s", "Mbit/s", "100"),
            ("64MiB/s", "MiB/s", "64"),
            ("-1", "less5", "4"),
        ];
        for (text, unit, number) in shown {
            assert_eq!(in_unit(text, unit).as_deref(), Some(number), "{text} in {unit}");
        }
        assert_eq!(in_unit("many", "MiB"), None);
    }
}
