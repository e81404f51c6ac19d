//! What kind of value a setting takes: `256KiB`, `10s`, `64MiB/s`, `true`.

use halcyon_engine::LatencyTarget;
use halcyon_model::units::Units;
use halcyon_model::units::settings::{self, DURATIONS, RATES, SIZES};

/// What a value may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Bool,
    Int,
    Float,
    List,
    Map,
    /// A number with one of these units.
    Size(Units),
    Time(Units),
    Rate,
    OneOf(Vec<&'static str>),
    /// One of these words, or a duration with one of these units.
    OneOfOrTime(Vec<&'static str>, Units),
}

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
            _ => match (SIZES.starting_at(word), DURATIONS.starting_at(word)) {
                (Some(units), _) => Kind::Size(units),
                (_, Some(units)) => Kind::Time(units),
                _ => Kind::words(word.split('|').collect()),
            },
        }
    }

    fn words(mut words: Vec<&'static str>) -> Kind {
        match words.last().and_then(|last| DURATIONS.starting_at(last)) {
            Some(units) => {
                words.pop();
                Kind::OneOfOrTime(words, units)
            }
            None => Kind::OneOf(words),
        }
    }

    /// Whether a scalar is of this kind; if not, what is allowed.
    pub(crate) fn check(&self, text: &str) -> Result<(), String> {
        let good = match self {
            Kind::Text | Kind::List | Kind::Map => true,
            Kind::Bool => boolean(text).is_some(),
            Kind::Int => text.parse::<i64>().is_ok(),
            Kind::Float => text.parse::<f64>().is_ok(),
            Kind::Size(units) | Kind::Time(units) => units.parse(text).is_some(),
            Kind::Rate => RATES.parse(text).is_some(),
            Kind::OneOf(words) => is_one_of(text, words),
            Kind::OneOfOrTime(words, units) => {
                is_one_of(text, words) || units.parse(text).is_some()
            }
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
            Kind::Size(units) => format!("a size with a unit: {}", units.names()),
            Kind::Time(units) => format!("a duration with a unit: {}", units.names()),
            Kind::Rate => format!("a rate with a unit: {}", RATES.names()),
            Kind::OneOf(words) => words.join(", "),
            Kind::OneOfOrTime(words, units) => {
                format!("{}, or a duration with a unit: {}", words.join(", "), units.names())
            }
        }
    }
}

fn is_one_of(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// `auto`, or a duration; none is `0us`.
pub(crate) fn latency_target(text: &str) -> Option<LatencyTarget> {
    if text.eq_ignore_ascii_case("auto") {
        return Some(LatencyTarget::Auto);
    }
    let target = settings::duration(text)?;
    Some(if target.is_zero() { LatencyTarget::Off } else { LatencyTarget::Fixed(target) })
}

pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a kind accepts its units from the smallest up, and says which these are.
    #[test]
    fn kinds() {
        assert_eq!(Kind::of("MiB").check("4KiB"), Err("a size with a unit: MiB, GiB".to_owned()));
        assert_eq!(Kind::of("ms").check("1d"), Ok(()));
        assert!(Kind::of("ms").check("5us").is_err());
        assert_eq!(Kind::of("periodic|batch|group").check("BATCH"), Ok(()));
        let target = Kind::of("auto|us");
        assert_eq!((target.check("Auto"), target.check("2ms")), (Ok(()), Ok(())));
        let wrong = target.check("2").unwrap_err();
        assert!(wrong.starts_with("auto, or a duration with a unit: us, "), "{wrong}");
    }
}
