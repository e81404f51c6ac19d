//! Calendar arithmetic in UTC: durations added to instants and dates, and instants rounded down to them.

use halcyon_model::Cursor;
use halcyon_model::bytes::Put;

use halcyon_syntax::{Error, Result};

pub(super) const DAY_MILLIS: i64 = 86_400_000;
const NANOS_PER_MILLI: i64 = 1_000_000;
const DAY_NANOS: i64 = DAY_MILLIS * NANOS_PER_MILLI;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Duration {
    pub months: i64,
    pub days: i64,
    pub nanos: i64,
}

impl Duration {
    pub(super) fn parse(bytes: &[u8]) -> Option<Duration> {
        let mut cursor = Cursor::new(bytes);
        let duration = Duration {
            months: cursor.svint().ok()?,
            days: cursor.svint().ok()?,
            nanos: cursor.svint().ok()?,
        };
        let fits = |value: i64| i32::try_from(value).is_ok();
        (fits(duration.months) && fits(duration.days)).then_some(duration)
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_svint(self.months);
        out.put_svint(self.days);
        out.put_svint(self.nanos);
        out
    }

    pub(super) fn negated(self) -> Duration {
        Duration { months: -self.months, days: -self.days, nanos: self.nanos.wrapping_neg() }
    }

    /// Whether it is a whole number of milliseconds.
    pub(super) fn has_milli_precision(self) -> bool {
        self.nanos % NANOS_PER_MILLI == 0
    }

    pub(super) fn text(self) -> String {
        halcyon_model::value::to_string(&halcyon_model::CqlType::Duration, &self.to_bytes())
    }

    fn millis(self) -> i64 {
        self.days.wrapping_mul(DAY_MILLIS).wrapping_add(self.nanos / NANOS_PER_MILLI)
    }

    fn times(self, factor: i64) -> Duration {
        Duration {
            months: self.months.saturating_mul(factor),
            days: self.days.saturating_mul(factor),
            nanos: self.nanos.saturating_mul(factor),
        }
    }
}

fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era.saturating_mul(146_097) + day_of_era - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    let days = days.saturating_add(719_468);
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// The same day of a later or earlier month, or the last one of that month.
fn add_months(days: i64, months: i64) -> i64 {
    let (year, month, day) = civil(days);
    let total = year.saturating_mul(12).saturating_add(month - 1).saturating_add(months);
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    let next = if month == 12 { days_of(year + 1, 1, 1) } else { days_of(year, month + 1, 1) };
    let first = days_of(year, month, 1);
    first + (day - 1).min(next - first - 1)
}

/// Milliseconds since 1970 after a duration.
pub(super) fn add_to_millis(millis: i64, duration: Duration) -> i64 {
    let days = add_months(millis.div_euclid(DAY_MILLIS), duration.months);
    let millis = if duration.months == 0 {
        millis
    } else {
        days.saturating_mul(DAY_MILLIS).saturating_add(millis.rem_euclid(DAY_MILLIS))
    };
    millis.wrapping_add(duration.millis())
}

/// Days since 1970 after a duration.
pub(super) fn add_to_days(days: i64, duration: Duration) -> i64 {
    add_months(days, duration.months).wrapping_add(duration.days)
}

/// The latest `start + n × duration` that is not after `millis`.
pub(super) fn floor_millis(millis: i64, duration: Duration, start: i64) -> Result<i64> {
    if !duration.has_milli_precision() {
        return Err(Error::InvalidRequest(format!(
            "The floor cannot be computed for the {} duration as precision is below 1 millisecond",
            duration.text()
        )));
    }
    if start > millis {
        return Err(Error::invalid_request(
            "The floor function starting time is greater than the provided time",
        ));
    }
    if duration.months < 0 || duration.days < 0 || duration.nanos < 0 {
        return Err(Error::invalid_request(
            "Negative durations are not supported by the floor function",
        ));
    }
    if duration.months == 0 {
        let step = duration.millis();
        return Ok(if step <= 0 { millis } else { millis - millis.wrapping_sub(start) % step });
    }
    let reached = |factor: i64| add_to_millis(start, duration.times(factor));
    // A month has 27 days at least, so this is too many.
    let (mut low, mut high) = (0, millis.saturating_sub(start) / (27 * DAY_MILLIS) + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if reached(middle) <= millis { low = middle } else { high = middle }
    }
    Ok(reached(low))
}

pub(super) fn floor_days(days: i64, duration: Duration, start: i64) -> Result<i64> {
    if duration.nanos != 0 {
        return Err(Error::InvalidRequest(format!(
            "The floor on date values cannot be computed for the {} duration as precision is below 1 day",
            duration.text()
        )));
    }
    let millis =
        floor_millis(days.saturating_mul(DAY_MILLIS), duration, start.saturating_mul(DAY_MILLIS))?;
    Ok(millis.div_euclid(DAY_MILLIS))
}

pub(super) fn floor_nanos(nanos: i64, duration: Duration) -> Result<i64> {
    if duration.months != 0 || duration.days != 0 || duration.nanos > DAY_NANOS {
        return Err(Error::invalid_request(
            "For time values, the floor can only be computed for durations smaller that a day",
        ));
    }
    if duration.nanos < 0 {
        return Err(Error::invalid_request(
            "Negative durations are not supported by the floor function",
        ));
    }
    Ok(if duration.nanos == 0 { nanos } else { nanos - nanos % duration.nanos })
}
