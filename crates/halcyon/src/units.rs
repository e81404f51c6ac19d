//! Sizes, rates, durations and instants: read in the syntax of cassandra.yaml (`256KiB`, `128MiB/s`, `10s`), written for people.

use std::time::Duration;

use halcyon_model::value::date_string;

const SIZES: [(&str, u64); 5] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

const DURATIONS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

fn number_with_unit(text: &str, units: &[(&str, u64)], example: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    let wrong =
        || format!("a number and a unit ({}) expected, such as {example}", names.join(", "));
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let factor = factor.ok_or_else(wrong)?;
    number.checked_mul(factor).ok_or_else(|| format!("{text} is too large"))
}

/// `256KiB`
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    number_with_unit(text, &SIZES, "256KiB")
}

/// `128MiB/s`; `0MiB/s` means without limit, as `compaction_throughput` does.
pub(crate) fn parse_rate(text: &str) -> Result<u64, String> {
    let Some(size) = text.strip_suffix("/s") else {
        return Err("a rate in bytes per second expected, such as 128MiB/s".to_owned());
    };
    number_with_unit(size, &SIZES, "128MiB/s")
}

/// `10s`, or a plain number of seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    number_with_unit(text, &DURATIONS, "10s or 4h").map(Duration::from_nanos)
}

/// Seconds since 1970, or `2026-11-20T23:33:40Z`, or a date.
pub(crate) fn parse_instant(text: &str) -> Result<u32, String> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(seconds);
    }
    parse_iso(text).ok_or_else(|| {
        "seconds since 1970 or an instant in UTC expected, such as 1795217396 or 2026-11-20T23:33:40Z"
            .to_owned()
    })
}

fn parse_iso(text: &str) -> Option<u32> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, time.strip_suffix('Z').unwrap_or(time)),
        None => (text, "00:00:00"),
    };
    let numbers = |text: &str, separator: char| -> Option<[i64; 3]> {
        let parts: Option<Vec<i64>> = text
            .split(separator)
            .map(|p| p.bytes().all(|b| b.is_ascii_digit()).then(|| p.parse().ok()).flatten())
            .collect();
        parts?.try_into().ok()
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let sound = (1970..=2106).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !sound {
        return None;
    }
    let days = days_since_1970(year, month, day);
    // A 31st of a month of thirty days would have become the 1st of the next.
    let spelled = date_string(u32::try_from(days + (1 << 31)).ok()?);
    if spelled != format!("{year:04}-{month:02}-{day:02}") {
        return None;
    }
    u32::try_from(days * 86_400 + hour * 3600 + minute * 60 + second).ok()
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March: the leap day is then the last.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

/// `java.time.Instant.toString`: seconds since 1970 and nanoseconds, with as many groups of three digits as are needed.
pub(crate) fn instant(seconds: i64, nanos: u32) -> String {
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
pub(crate) fn seconds_as_instant(seconds: u32) -> String {
    instant(i64::from(seconds), 0)
}

/// A write timestamp (µs) as an instant, if it can be one.
pub(crate) fn micros_as_instant(micros: i64) -> String {
    let nanos = micros.rem_euclid(1_000_000) as u32 * 1000;
    instant(micros.div_euclid(1_000_000), nanos)
}

/// `1.5 MiB`
pub(crate) fn bytes(n: u64) -> String {
    let (unit, factor) =
        SIZES.iter().rev().find(|(_, factor)| n >= *factor).copied().unwrap_or(("B", 1));
    if factor == 1 {
        return format!("{n} B");
    }
    let value = n as f64 / factor as f64;
    if value >= 100.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

/// `1,234,567`
pub(crate) fn count(n: u64) -> String {
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
pub(crate) fn nanos(n: u64) -> String {
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
pub(crate) fn duration(d: Duration) -> String {
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

    #[test]
    fn sizes_rates_and_durations_have_cassandras_syntax() {
        assert_eq!(parse_size("256KiB"), Ok(256 << 10));
        assert_eq!(parse_size("0B"), Ok(0));
        assert_eq!(parse_rate("128MiB/s"), Ok(128 << 20));
        assert_eq!(parse_duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("4h"), Ok(Duration::from_secs(14_400)));
        for bad in ["", "KiB", "256", "256kb", "1.5MiB", "-1KiB", "99999999999TiB", "1 MiB", "½B"]
        {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        for bad in ["128MiB", "128", "MiB/s", "128MB/s"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
        for bad in ["", "s", "10 s", "1y", "-5s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn instants_are_read_as_they_are_written() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-20T23:33:40Z", 1_795_217_620),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2106-02-07T06:28:15Z", u32::MAX),
        ] {
            assert_eq!(parse_instant(text), Ok(seconds), "{text}");
            assert_eq!(seconds_as_instant(seconds), text);
        }
        assert_eq!(parse_instant("951825600"), Ok(951_825_600));
        assert_eq!(parse_instant("2000-02-29"), Ok(951_782_400));
        for bad in [
            "2001-02-29",
            "yesterday",
            "2000-13-01",
            "2107-01-01",
            "2000-01-01T24:00:00Z",
            "+1-1-1",
        ] {
            assert!(parse_instant(bad).is_err(), "{bad}");
        }
    }

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
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
        assert_eq!(nanos(64_000), "64.0 µs");
        assert_eq!(nanos(900), "900 ns");
        assert_eq!(duration(Duration::from_secs(125)), "2m 5s");
    }
}
