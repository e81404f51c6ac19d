//! Cassandra's value syntax: `256KiB`, `10s`, `64MiB/s`, `true`.

use std::time::Duration;

/// What a value may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Bool,
    Int,
    Float,
    List,
    Map,
    /// Bytes; the index of the smallest unit that is allowed.
    Size(usize),
    /// Nanoseconds; the index of the smallest unit that is allowed.
    Time(usize),
    Rate,
    OneOf(Vec<&'static str>),
}

const SIZES: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
const TIMES: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
const RATES: [(&str, u64); 3] = [("B/s", 1), ("KiB/s", 1 << 10), ("MiB/s", 1 << 20)];

impl Kind {
    pub(crate) fn of(word: &'static str) -> Kind {
        match word {
            "text" => Kind::Text,
            "bool" => Kind::Bool,
            "int" => Kind::Int,
            "float" => Kind::Float,
            "list" => Kind::List,
            "map" => Kind::Map,
            "B/s" => Kind::Rate,
            _ => match (position(&SIZES, word), position(&TIMES, word)) {
                (Some(unit), _) => Kind::Size(unit),
                (_, Some(unit)) => Kind::Time(unit),
                _ => Kind::OneOf(word.split('|').collect()),
            },
        }
    }

    /// Whether a scalar is of this kind; if not, what is allowed.
    pub(crate) fn check(&self, text: &str) -> Result<(), String> {
        let good = match self {
            Kind::Text | Kind::List | Kind::Map => true,
            Kind::Bool => boolean(text).is_some(),
            Kind::Int => text.parse::<i64>().is_ok(),
            Kind::Float => text.parse::<f64>().is_ok(),
            Kind::Size(unit) => size(text, *unit).is_some(),
            Kind::Time(unit) => nanoseconds(text, *unit).is_some(),
            Kind::Rate => rate(text).is_some(),
            Kind::OneOf(words) => words.iter().any(|word| word.eq_ignore_ascii_case(text)),
        };
        if good { Ok(()) } else { Err(self.allowed()) }
    }

    pub(crate) fn allowed(&self) -> String {
        match self {
            Kind::Text => "text".to_owned(),
            Kind::Bool => "true or false".to_owned(),
            Kind::Int => "a whole number".to_owned(),
            Kind::Float => "a number".to_owned(),
            Kind::List => "a list".to_owned(),
            Kind::Map => "a mapping".to_owned(),
            Kind::Size(unit) => format!("a size with a unit: {}", units(&SIZES[*unit..])),
            Kind::Time(unit) => format!("a duration with a unit: {}", units(&TIMES[*unit..])),
            Kind::Rate => format!("a rate with a unit: {}", units(&RATES)),
            Kind::OneOf(words) => words.join(", "),
        }
    }
}

fn units(table: &[(&str, u64)]) -> String {
    table.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn position(table: &[(&str, u64)], word: &str) -> Option<usize> {
    table.iter().position(|(name, _)| *name == word)
}

fn quantity(text: &str, table: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let factor = table.iter().find(|(name, _)| *name == unit)?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn size(text: &str, smallest: usize) -> Option<u64> {
    quantity(text, SIZES.get(smallest..)?)
}

fn nanoseconds(text: &str, smallest: usize) -> Option<u64> {
    quantity(text, TIMES.get(smallest..)?)
}

/// Bytes.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    size(text, 0)
}

pub(crate) fn duration(text: &str) -> Option<Duration> {
    nanoseconds(text, 0).map(Duration::from_nanos)
}

/// Bytes per second.
pub(crate) fn rate(text: &str) -> Option<u64> {
    quantity(text, &RATES)
}

/// A number as it was written before units: the unit is in the older name. A negative one meant "off", which is null now.
pub(crate) fn with_unit(text: &str, unit: &str) -> Option<String> {
    if text.starts_with('-') {
        return None;
    }
    match (unit, text.parse::<f64>()) {
        // Not the older form after all.
        (_, Err(_)) => Some(text.to_owned()),
        // One megabit is 125,000 bytes.
        ("Mbit/s", Ok(megabits)) => Some(format!("{}B/s", (megabits * 125_000.0) as u64)),
        (_, Ok(_)) => Some(format!("{text}{unit}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the syntax: units where case matters, no fractions, no unit below the smallest, no overflow.
    #[test]
    fn values() {
        assert_eq!(bytes("256KiB"), Some(256 << 10));
        assert_eq!(duration("10s"), Some(Duration::from_secs(10)));
        assert_eq!(rate("64MiB/s"), Some(64 << 20));
        for wrong in ["256kib", "1.5MiB", "-1B", "12", "", "KiB", "99999999999999999999B"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        assert_eq!(Kind::of("MiB").check("4KiB"), Err("a size with a unit: MiB, GiB".to_owned()));
        assert_eq!(Kind::of("ms").check("1d"), Ok(()));
        assert!(Kind::of("ms").check("5us").is_err());
        assert_eq!(Kind::of("periodic|batch|group").check("BATCH"), Ok(()));
    }

    /// Proves that numbers under older names get the unit of the name.
    #[test]
    fn older_values() {
        assert_eq!(with_unit("32", "MiB").as_deref(), Some("32MiB"));
        assert_eq!(with_unit("200", "Mbit/s").as_deref(), Some("25000000B/s"));
        assert_eq!(with_unit("4h", "s").as_deref(), Some("4h"));
        assert_eq!(with_unit("-1", "ms"), None);
    }
}
