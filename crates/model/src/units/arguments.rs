//! What people give our commands: `256KiB`, `128MiB/s`, `10s`, instants. The syntax is that of cassandra.yaml, with a
//! unit more of each kind, and wrong input is answered with an example.

use std::time::Duration;

use super::Units;
use crate::value::date_string;

const SIZES: Units =
    Units(&[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)]);

const DURATIONS: Units = Units(&[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
]);

fn quantity(text: &str, units: Units, example: &str) -> Result<u64, String> {
    units.parse(text).ok_or_else(|| {
        let names = units.names();
        format!(
            "a number and a unit ({names}) expected, such as {example}; the number must fit 64 bits"
        )
    })
}

/// `256KiB`
pub fn size(text: &str) -> Result<u64, String> {
    quantity(text, SIZES, "256KiB")
}

/// `128MiB/s`; `0MiB/s` means without limit, as `compaction_throughput` does.
pub fn rate(text: &str) -> Result<u64, String> {
    let Some(size) = text.strip_suffix("/s") else {
        return Err("a rate in bytes per second expected, such as 128MiB/s".to_owned());
    };
    quantity(size, SIZES, "128MiB/s")
}

/// `10s`, or a plain number of seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    quantity(text, DURATIONS, "10s or 4h").map(Duration::from_nanos)
}

/// Seconds since 1970, or `2026-11-20T23:33:40Z`, or a date.
pub fn instant(text: &str) -> Result<u32, String> {
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

#[cfg(test)]
mod tests {
    use super::super::seconds_as_instant;
    use super::*;

    #[test]
    fn sizes_rates_and_durations_have_cassandras_syntax() {
        assert_eq!(size("256KiB"), Ok(256 << 10));
        assert_eq!(size("0B"), Ok(0));
        assert_eq!(rate("128MiB/s"), Ok(128 << 20));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("4h"), Ok(Duration::from_secs(14_400)));
        for bad in ["", "KiB", "256", "256kb", "1.5MiB", "-1KiB", "99999999999TiB", "1 MiB", "½B"]
        {
            assert!(size(bad).is_err(), "{bad}");
        }
        for bad in ["128MiB", "128", "MiB/s", "128MB/s"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
        for bad in ["", "s", "10 s", "1y", "-5s"] {
            assert!(duration(bad).is_err(), "{bad}");
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
            assert_eq!(instant(text), Ok(seconds), "{text}");
            assert_eq!(seconds_as_instant(seconds), text);
        }
        assert_eq!(instant("951825600"), Ok(951_825_600));
        assert_eq!(instant("2000-02-29"), Ok(951_782_400));
        for bad in [
            "2001-02-29",
            "yesterday",
            "2000-13-01",
            "2107-01-01",
            "2000-01-01T24:00:00Z",
            "+1-1-1",
        ] {
            assert!(instant(bad).is_err(), "{bad}");
        }
    }
}
