//! Timestamps, dates and times of day as text.
//!
//! A timestamp is a number of milliseconds, or `yyyy-mm-dd`, then perhaps `hh:mm[:ss[.fffffffff]]` after a blank or `T`,
//! then perhaps a zone: `Z`, `UTC`, `GMT`, `±hh`, `±hhmm`, `±hh:mm`, with or without a blank in front, or behind a blank a
//! name that `zones` knows. Without a zone it is UTC. Days beyond the end of a month mean its last day. Beside a time of
//! day numbers may have as many digits as one likes, and years are those after Christ; without one they are two digits,
//! and a year is `yyyy`, `-yyyy…` or `+yyyyy…`, as in a date.

use super::zones;

const DAY_MILLIS: i64 = 86_400_000;
const DAY_NANOS: i64 = 86_400_000_000_000;
const MAX_YEAR: i64 = 999_999_999;
const MAX_DIGITS: usize = 18;

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number of `min` to `max` digits.
fn digits(text: &str, min: usize, max: usize) -> Option<i64> {
    let sound = (min..=max).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if sound { text.parse().ok() } else { None }
}

/// Milliseconds since 1970.
pub(super) fn parse_timestamp(text: &str) -> Result<i64, String> {
    if is_number(text) {
        return text.parse().map_err(|_| format!("Unable to make long (for date) from: '{text}'"));
    }
    timestamp(text).ok_or_else(|| format!("Unable to parse a date/time from '{text}'"))
}

fn timestamp(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = unsigned.splitn(3, '-');
    let (year, month, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (day, rest) = rest.split_at_checked(rest.bytes().take_while(u8::is_ascii_digit).count())?;
    let has_time = rest.starts_with('T')
        || rest
            .strip_prefix(' ')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let (year, width) = if has_time {
        (digits(year, 1, MAX_DIGITS).filter(|year| *year > 0 && unsigned == text)?, 1..=MAX_DIGITS)
    } else {
        (exact_year(text, year)?, 2..=2)
    };
    let month = digits(month, *width.start(), *width.end())?;
    let day = digits(day, *width.start(), *width.end())?;
    if year > MAX_YEAR || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (time, zone) = if has_time { time_and_zone(rest.get(1..)?)? } else { (0, rest) };
    if year < 0 && zone.starts_with(' ') {
        return None;
    }
    let day = day.min(days_of_month(year, month));
    let millis = days_from_civil(year, month, day).checked_mul(DAY_MILLIS)?.checked_add(time)?;
    millis.checked_sub(zone_offset(zone, millis)?)
}

/// Milliseconds since 1970 of an instant as Java's `Instant.parse` reads it: `2022-12-03T10:15:30.123Z`, or an offset (`+01:00`) for `Z`.
pub fn parse_instant(text: &str) -> Option<i64> {
    let text = text.to_ascii_uppercase();
    let (date, time) = text.split_once('T')?;
    let (time, zone) = time.split_at_checked(time.find(['Z', '+', '-'])?)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let parts: Option<Vec<i64>> = time.split(':').map(|part| digits(part, 2, 2)).collect();
    let [hour, minute, second] = parts?.try_into().ok()?;
    let millis = digits(&format!("{fraction:0<9}"), 9, 9)? / 1_000_000;
    let of_day = ((hour * 60 + minute) * 60 + second) * 1000 + millis;
    let offset = match zone {
        "Z" => 0,
        zone if zone.contains(':') => numeric_offset(zone)?,
        _ => return None,
    };
    if minute > 59 || second > 59 || of_day > DAY_MILLIS {
        return None;
    }
    days(date)?.checked_mul(DAY_MILLIS)?.checked_add(of_day)?.checked_sub(offset)
}

/// The year of a date: more than four digits need a sign, and `+` needs more than four.
fn exact_year(text: &str, unsigned: &str) -> Option<i64> {
    match text.chars().next() {
        Some('-') => digits(unsigned, 4, 9).filter(|year| *year > 0).map(|year| -year),
        Some('+') => digits(unsigned, 5, 9),
        _ => digits(unsigned, 4, 4),
    }
}

/// One or more digits.
fn leading_number(text: &str) -> Option<(i64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(length)?;
    Some((digits(number, 1, MAX_DIGITS)?, rest))
}

/// Milliseconds of the day, and what follows.
fn time_and_zone(text: &str) -> Option<(i64, &str)> {
    let (hour, rest) = leading_number(text)?;
    let (minute, mut rest) = leading_number(rest.strip_prefix(':')?)?;
    let (mut second, mut milli) = (0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        (second, rest) = leading_number(after)?;
        if let Some(after) = rest.strip_prefix('.') {
            let length = after.bytes().take_while(u8::is_ascii_digit).count();
            let (fraction, after) = after.split_at_checked(length)?;
            let nanos = digits(&format!("{fraction:0<9}"), 9, 9).filter(|_| length > 0)?;
            (milli, rest) = (nanos / 1_000_000, after);
        }
    }
    if hour > 24 || minute > 59 || second > 59 {
        return None;
    }
    let of_day = ((hour * 60 + minute) * 60 + second) * 1000 + milli;
    // Midnight may be the end of a day.
    (of_day <= DAY_MILLIS).then_some((of_day, rest))
}

/// Milliseconds that a zone is ahead of UTC at a local time.
fn zone_offset(zone: &str, local_millis: i64) -> Option<i64> {
    let named = zone.strip_prefix(' ');
    let zone = named.unwrap_or(zone);
    if zone == "Z" || (zone.is_empty() && named.is_none()) {
        return Some(0);
    }
    // Names stand behind a blank.
    if named.is_some() {
        const NAMES: [&str; 8] =
            ["UTC", "GMT", "UT", "UCT", "GMT0", "Zulu", "Universal", "Greenwich"];
        if NAMES.contains(&zone) || matches!(zone, "Etc/UTC" | "Etc/GMT") {
            return Some(0);
        }
        let offset = ["UTC", "GMT", "UT"].iter().find_map(|name| zone.strip_prefix(name));
        if let Some(offset) = offset.filter(|offset| offset.contains(':')) {
            return numeric_offset(offset);
        }
        if let Some(offset) = zones::offset(zone, local_millis) {
            return Some(offset);
        }
    }
    numeric_offset(zone)
}

/// `±hh`, `±hhmm`, `±hh:mm`, `±hh:mm:ss` in milliseconds.
fn numeric_offset(zone: &str) -> Option<i64> {
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let offset = zone.strip_prefix(['-', '+'])?;
    let (hours, minutes) = match offset.split_once(':') {
        // Seconds count nothing, but must be some.
        Some((hours, minutes)) => match minutes.split_once(':') {
            Some((minutes, seconds)) => {
                digits(seconds, 2, 2).filter(|seconds| *seconds == 0)?;
                (hours, minutes)
            }
            None => (hours, minutes),
        },
        None if offset.len() == 4 => offset.split_at_checked(2)?,
        None => (offset, "00"),
    };
    let (hours, minutes) = (digits(hours, 2, 2)?, digits(minutes, 2, 2)?);
    let offset = hours * 60 + minutes;
    (offset <= 18 * 60 && minutes <= 59).then_some(sign * offset * 60_000)
}

/// Unsigned days, 2³¹ being 1970-01-01.
pub(super) fn parse_date(text: &str) -> Result<u32, String> {
    if is_number(text) && !text.starts_with('+') {
        let days = text.parse::<i64>().ok().and_then(|days| u32::try_from(days).ok());
        return days
            .ok_or_else(|| format!("Unable to make unsigned int (for date) from: '{text}'"));
    }
    let days = days(text)
        .ok_or_else(|| format!("Unable to coerce '{text}' to a formatted date (long)"))?;
    u32::try_from(days + (1 << 31)).map_err(|_| {
        let (how, limit) = if days < 0 {
            ("less than min", "-5877641-06-23")
        } else {
            ("greater than max", "+5881580-07-11")
        };
        format!("Input date {text} is {how} supported date {limit}T00:00Z")
    })
}

/// Days since 1970-01-01 of a date as text.
fn days(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = unsigned.split('-');
    let year = exact_year(text, parts.next()?)?;
    let (month, day) = (digits(parts.next()?, 2, 2)?, digits(parts.next()?, 2, 2)?);
    let last = days_of_month(year, month);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=last).contains(&day) {
        return None;
    }
    Some(days_from_civil(year, month, day))
}

/// Nanoseconds of the day.
pub(super) fn parse_time(text: &str) -> Result<i64, String> {
    if is_number(text) {
        return text
            .parse()
            .ok()
            .filter(|nanos| (0..DAY_NANOS).contains(nanos))
            .ok_or_else(|| format!("Unable to make long (for time) from: '{text}'"));
    }
    time(text)
        .ok_or_else(|| format!("(TimeType) Unable to coerce '{text}' to a formatted time (long)"))
}

fn time(text: &str) -> Option<i64> {
    let mut parts = text.trim_matches(|c| c <= ' ').splitn(3, ':');
    let (hour, minute, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (second, nanos) = match rest.split_once('.') {
        Some((second, fraction)) => {
            digits(fraction, 1, 9)?;
            (second, digits(&format!("{fraction:0<9}"), 9, 9)?)
        }
        None => (rest, 0),
    };
    let below = |part: &str, limit: i64| part.parse().ok().filter(|part| (0..limit).contains(part));
    let (hour, minute, second) = (below(hour, 24)?, below(minute, 60)?, below(second, 60)?);
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanos)
}
