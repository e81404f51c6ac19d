//! Durations as text, in their four spellings: `1y2mo3w4d5h6m7s8ms9us10ns`, `P1Y2M3DT4H5M6S`, `P3W` and
//! `P0001-02-03T04:05:06`.

use crate::bytes::Put;

/// Units from the longest to the shortest: name, letters, and which part they add to with how much.
const UNITS: [(&str, &[&str], Part, i64); 10] = [
    ("years", &["y"], Part::Months, 12),
    ("months", &["mo"], Part::Months, 1),
    ("weeks", &["w"], Part::Days, 7),
    ("days", &["d"], Part::Days, 1),
    ("hours", &["h"], Part::Nanoseconds, 3_600_000_000_000),
    ("minutes", &["m"], Part::Nanoseconds, 60_000_000_000),
    ("seconds", &["s"], Part::Nanoseconds, 1_000_000_000),
    ("milliseconds", &["ms"], Part::Nanoseconds, 1_000_000),
    ("microseconds", &["us", "µs", "μs"], Part::Nanoseconds, 1000),
    ("nanoseconds", &["ns"], Part::Nanoseconds, 1),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Months,
    Days,
    Nanoseconds,
}

#[derive(Debug, Default)]
struct Builder {
    months: i64,
    days: i64,
    nanoseconds: i64,
    last_unit: Option<usize>,
}

impl Builder {
    fn add(&mut self, unit: usize, number: &str) -> Result<(), String> {
        let Some((name, _, part, factor)) = UNITS.get(unit) else { return Ok(()) };
        if let Some(last) = self.last_unit {
            if last == unit {
                return Err(format!("Invalid duration. The {name} are specified multiple times"));
            }
            if last > unit {
                let last = UNITS.get(last).map_or("", |(name, ..)| name);
                return Err(format!("Invalid duration. The {last} should be after {name}"));
            }
        }
        self.last_unit = Some(unit);
        let number: i64 = number.parse().map_err(|_| format!("For input string: \"{number}\""))?;
        let (total, limit, name) = match part {
            Part::Months => (&mut self.months, i64::from(i32::MAX), "months"),
            Part::Days => (&mut self.days, i64::from(i32::MAX), "days"),
            Part::Nanoseconds => (&mut self.nanoseconds, i64::MAX, "nanoseconds"),
        };
        if number > (limit - *total) / factor {
            return Err(format!(
                "Invalid duration. The total number of {name} must be less or equal to {}",
                i32::MAX
            ));
        }
        *total += number * factor;
        Ok(())
    }
}

/// The serialized duration.
pub fn parse_duration(text: &str) -> Result<Vec<u8>, String> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, text),
    };
    let unknown = || format!("Unable to convert '{body}' to a duration");
    let mut builder = Builder::default();
    match body.strip_prefix('P') {
        Some(iso) => iso_8601(iso, &mut builder).ok_or_else(unknown)??,
        None => standard(body, &mut builder).ok_or_else(unknown)??,
    }
    let sign = if negative { -1 } else { 1 };
    let mut out = Vec::new();
    for part in [builder.months, builder.days, builder.nanoseconds] {
        out.put_svint(sign * part);
    }
    Ok(out)
}

fn take_number(text: &str) -> Option<(&str, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(length).filter(|_| length > 0)
}

/// `None`: not of this form at all.
fn standard(text: &str, builder: &mut Builder) -> Option<Result<(), String>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (number, tail) = take_number(rest)?;
        let length = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (letters, tail) = tail.split_at_checked(length)?;
        let letters = letters.to_lowercase();
        parts.push((UNITS.iter().position(|unit| unit.1.contains(&letters.as_str()))?, number));
        rest = tail;
    }
    if parts.is_empty() {
        return None;
    }
    Some(parts.into_iter().try_for_each(|(unit, number)| builder.add(unit, number)))
}

/// What follows the `P`.
fn iso_8601(text: &str, builder: &mut Builder) -> Option<Result<(), String>> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts: Vec<(usize, &str)> = Vec::new();
    if date.contains('-') {
        if date.len() != 10 || time?.len() != 8 {
            return None;
        }
        parts.extend([0, 1, 3].into_iter().zip(date.split('-')));
        parts.extend([4, 5, 6].into_iter().zip(time?.split(':')));
        if parts.len() != 6 {
            return None;
        }
    } else {
        // Weeks stand alone, the other units in order.
        let of_date: &[(char, usize)] =
            if date.ends_with('W') { &[('W', 2)] } else { &[('Y', 0), ('M', 1), ('D', 3)] };
        let of_time: &[(char, usize)] = &[('H', 4), ('M', 5), ('S', 6)];
        for (mut rest, mut units) in [(date, of_date), (time.unwrap_or(""), of_time)] {
            while !rest.is_empty() {
                let (number, tail) = take_number(rest)?;
                let at = units.iter().position(|(letter, _)| tail.starts_with(*letter))?;
                parts.push((units.get(at)?.1, number));
                units = units.get(at + 1..)?;
                rest = tail.get(1..)?;
            }
        }
    }
    Some(parts.into_iter().try_for_each(|(unit, number)| builder.add(unit, number)))
}
