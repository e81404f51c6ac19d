//! Instants, dates and times of day as Java's formatters write them, in UTC.

/// Year, month and day of a number of days since 1970-01-01 (proleptic Gregorian calendar).
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
    // Count from 0000-03-01, so that the leap day is the last of its year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Four digits at least; a sign where there are more, or below zero.
fn year_string(year: i64) -> String {
    match year {
        ..0 => format!("-{:04}", year.unsigned_abs()),
        0..=9999 => format!("{year:04}"),
        _ => format!("+{year}"),
    }
}

/// `date`: unsigned days, 2³¹ being 1970-01-01.
pub fn date_string(days: u32) -> String {
    let (year, month, day) = civil(i64::from(days) - (1 << 31));
    format!("{}-{month:02}-{day:02}", year_string(year))
}

/// The pattern's year is that of the era: 1 BC is 0001, as is AD 1.
fn timestamp(millis: i64, separator: char) -> String {
    const DAY: i64 = 86_400_000;
    let (year, month, day) = civil(millis.div_euclid(DAY));
    let year_of_era = if year > 0 { year } else { 1 - year };
    let of_day = millis.rem_euclid(DAY);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1000 % 60, of_day % 1000);
    format!(
        "{}-{month:02}-{day:02}{separator}{hour:02}:{minute:02}:{second:02}.{milli:03}Z",
        year_string(year_of_era)
    )
}

/// `yyyy-MM-dd HH:mm:ss.SSSX`
pub fn timestamp_json_string(millis: i64) -> String {
    timestamp(millis, ' ')
}

/// `yyyy-MM-dd'T'HH:mm:ss.SSSX`
pub fn timestamp_iso_string(millis: i64) -> String {
    timestamp(millis, 'T')
}

/// Nanoseconds of the day. Beyond a day the hours wrap; below zero each part keeps its sign, as in Cassandra.
pub(super) fn time_string(nanos: i64) -> String {
    let parts = [
        (nanos / 3_600_000_000_000 % 24, 2, ":"),
        (nanos / 60_000_000_000 % 60, 2, ":"),
        (nanos / 1_000_000_000 % 60, 2, "."),
        (nanos / 1_000_000 % 1000, 3, ""),
        (nanos / 1000 % 1000, 3, ""),
        (nanos % 1000, 3, ""),
    ];
    let mut out = String::new();
    for (part, digits, after) in parts {
        let zeros = [10, 100].iter().take(digits - 1).filter(|power| part < **power).count();
        out.push_str(&format!("{}{part}{after}", "0".repeat(zeros)));
    }
    out
}

/// `1y2mo3d4h5m6s7ms8us9ns`
pub(super) fn duration_string(months: i32, days: i32, nanos: i64) -> String {
    fn push(out: &mut String, mut rest: u64, units: &[(u64, &str)]) {
        for (size, unit) in units {
            if rest >= *size {
                out.push_str(&format!("{}{unit}", rest / size));
                rest %= size;
            }
        }
    }
    let mut out = String::new();
    if months < 0 || days < 0 || nanos < 0 {
        out.push('-');
    }
    push(&mut out, u64::from(months.unsigned_abs()), &[(12, "y"), (1, "mo")]);
    push(&mut out, u64::from(days.unsigned_abs()), &[(1, "d")]);
    let units = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1000, "us"),
        (1, "ns"),
    ];
    push(&mut out, nanos.unsigned_abs(), &units);
    out
}
