//! Functions of time: time UUIDs, timestamps, dates, times of day.

use halcyon_model::{CqlType, uuid};

use super::Function;
use super::calendar::{DAY_MILLIS, Duration, floor_days, floor_millis, floor_nanos};
use crate::plan::execution::Execution;
use crate::plan::value::number::to_long;
use halcyon_syntax::Result;

const TICKS_PER_MILLI: i64 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    CurrentTimestamp,
    CurrentDate,
    CurrentTime,
    MinTimeUuid,
    MaxTimeUuid,
    ToDate,
    ToTimestamp,
    /// Milliseconds since 1970.
    ToUnix,
    Floor,
}

/// Milliseconds since 1970 of a timestamp, a date or a time UUID.
fn millis(cql_type: &CqlType, value: &[u8]) -> i64 {
    match cql_type {
        CqlType::Date => days(value).saturating_mul(DAY_MILLIS),
        CqlType::TimeUuid => time_uuid_millis(value),
        _ => to_long(value),
    }
}

pub(super) fn days(value: &[u8]) -> i64 {
    i64::from(value.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))) - (1 << 31)
}

pub(super) fn date(days: i64) -> Vec<u8> {
    (days.wrapping_add(1 << 31) as u32).to_be_bytes().to_vec()
}

fn time_uuid_millis(value: &[u8]) -> i64 {
    let Some(bytes) = value.first_chunk::<8>() else { return 0 };
    let ticks = uuid::ticks(u64::from_be_bytes(*bytes));
    ticks.wrapping_sub(uuid::UNIX_EPOCH_TICKS).cast_signed().div_euclid(TICKS_PER_MILLI)
}

/// Ticks are since 1970 here.
fn bound_uuid(ticks: i64, low: u64) -> Vec<u8> {
    let ticks = ticks.cast_unsigned().wrapping_add(uuid::UNIX_EPOCH_TICKS);
    uuid::join(uuid::most_significant(ticks), low).to_vec()
}

impl Time {
    pub(super) fn call(
        self,
        function: &Function,
        arguments: &[Option<&[u8]>],
        execution: &Execution<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let now = execution.now_micros.div_euclid(1000);
        match self {
            Time::CurrentTimestamp => return Ok(Some(now.to_be_bytes().to_vec())),
            Time::CurrentDate => return Ok(Some(date(now.div_euclid(DAY_MILLIS)))),
            Time::CurrentTime => {
                let nanos = now.rem_euclid(DAY_MILLIS) * 1_000_000;
                return Ok(Some(nanos.to_be_bytes().to_vec()));
            }
            _ => {}
        }
        let (Some(Some(value)), Some(of)) = (arguments.first(), function.arguments.first()) else {
            return Ok(None);
        };
        if value.is_empty() {
            return Ok(None);
        }
        let at = || millis(of, value);
        Ok(Some(match self {
            Time::MinTimeUuid => {
                bound_uuid(at().wrapping_mul(TICKS_PER_MILLI), 0x8080_8080_8080_8080)
            }
            Time::MaxTimeUuid => {
                let ticks = at().wrapping_mul(TICKS_PER_MILLI).wrapping_add(TICKS_PER_MILLI - 1);
                bound_uuid(ticks, 0x7f7f_7f7f_7f7f_7f7f)
            }
            Time::ToDate => date(at().div_euclid(DAY_MILLIS)),
            Time::ToTimestamp | Time::ToUnix => at().to_be_bytes().to_vec(),
            _ => return floor(of, value, arguments),
        }))
    }
}

fn floor(of: &CqlType, value: &[u8], arguments: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>> {
    let Some(duration) = arguments.get(1).copied().flatten().and_then(Duration::parse) else {
        return Ok(None);
    };
    let start = match arguments.get(2) {
        None => None,
        Some(None) => return Ok(None),
        Some(Some(start)) => Some(*start),
    };
    Ok(Some(match of {
        CqlType::Date => date(floor_days(days(value), duration, start.map_or(0, days))?),
        CqlType::Time => floor_nanos(to_long(value), duration)?.to_be_bytes().to_vec(),
        _ => floor_millis(millis(of, value), duration, start.map_or(0, to_long))?
            .to_be_bytes()
            .to_vec(),
    }))
}
