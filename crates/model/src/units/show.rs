//! Quantities and instants as people read them.

use std::time::Duration;

use crate::value::date_string;

const SIZES: [(&str, u64); 5] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// `java.time.Instant.toString`: seconds since 1970 and nanoseconds, with as many groups of three digits as are needed.
pub fn instant(seconds: i64, nanos: u32) -> String {
    let days = seconds.div_euclid(86_400);
    let of_day = seconds.rem_euclid(86_400);
    let date = match u32::try_from(days + (1 << 31)) {
        Ok(days) => date_string(days),
        Err(_) => format!("day {days}"),
    };
    let fraction = match nanos {
        0 => String::new(),
        n if n % 1_000_000 == 0 => format!(".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => format!(".{:06}", n / 1_000),
        n => format!(".{n:09}"),
    };
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{date}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// An instant in seconds since 1970.
pub fn seconds_as_instant(seconds: u32) -> String {
    instant(i64::from(seconds), 0)
}

/// A write timestamp (µs) as an instant, if it can be one.
pub fn micros_as_instant(micros: i64) -> String {
    let nanos = micros.rem_euclid(1_000_000) as u32 * 1000;
    instant(micros.div_euclid(1_000_000), nanos)
}

/// `1.5 MiB`
pub fn bytes(n: u64) -> String {
    let (unit, factor) =
        SIZES.iter().rev().find(|(_, factor)| n >= *factor).copied().unwrap_or(("B", 1));
    if factor == 1 {
        return format!("{n} B");
    }
    let value = n as f64 / factor as f64;
    if value >= 100.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

/// `1,234,567`
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `64 µs`
pub fn nanos(n: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let (unit, factor) =
        UNITS.iter().rev().find(|(_, factor)| n >= *factor).copied().unwrap_or(("ns", 1));
    let value = n as f64 / factor as f64;
    if factor == 1 || value >= 100.0 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

/// `2m 5s`
pub fn duration(d: Duration) -> String {
    let seconds = d.as_secs();
    match seconds {
        0..10 => format!("{:.2} s", d.as_secs_f64()),
        10..60 => format!("{:.1} s", d.as_secs_f64()),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that Java's `Instant.toString` gives.
    #[test]
    fn instants_are_written_as_java_does() {
        assert_eq!(instant(0, 1_000_000), "1970-01-01T00:00:00.001Z");
        assert_eq!(instant(1_700_000_000, 643_000), "2023-11-14T22:13:20.000643Z");
        assert_eq!(instant(-1, 999_999_999), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(instant(9_223_372_036_854, 775_807_000), "+294247-01-10T04:00:54.775807Z");
        assert_eq!(instant(-9_223_372_036_855, 0), "-290308-12-21T19:59:05Z");
    }

    #[test]
    fn people_read_this() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(300 << 20), "300 MiB");
        assert_eq!(count(12), "12");
        let counts = [0, 999, 1_000, 12_345, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!(nanos(64_000), "64.0 µs");
        assert_eq!(nanos(900), "900 ns");
        assert_eq!(duration(Duration::from_secs(125)), "2m 5s");
    }
}
