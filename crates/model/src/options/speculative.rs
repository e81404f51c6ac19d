//! `speculative_retry` and `additional_write_policy` (`SpeculativeRetryPolicy`), as Cassandra spells them. A single node has
//! no other replica to ask, so they are kept and printed.

use super::OptionError;

/// The text that Cassandra would print for the policy that `text` means.
pub(super) fn policy(text: &str) -> Result<String, OptionError> {
    let upper = text.to_ascii_uppercase();
    match upper.as_str() {
        "ALWAYS" => return Ok(upper),
        "NEVER" | "NONE" => return Ok("NEVER".to_owned()),
        _ => {}
    }
    for function in ["MIN", "MAX"] {
        let inside = upper.strip_prefix(function).and_then(|rest| rest.strip_prefix('('));
        if let Some(inside) = inside.and_then(|rest| rest.strip_suffix(')')) {
            return hybrid(text, function, inside);
        }
    }
    match simple(&upper).ok_or_else(|| invalid(text))? {
        Simple::Percentile(percentile) if !(percentile > 0.0 && percentile < 100.0) => {
            Err(OptionError::Configuration(format!(
                "Invalid value {text} for PERCENTILE option 'speculative_retry': must be between (0.0 and 100.0)"
            )))
        }
        simple => Ok(simple.show()),
    }
}

#[derive(Clone, Copy)]
enum Simple {
    Percentile(f64),
    Fixed(i32),
}

impl Simple {
    fn show(self) -> String {
        match self {
            Simple::Fixed(millis) => format!("{millis}ms"),
            // At most four digits after the point.
            Simple::Percentile(percentile) => {
                let text = format!("{percentile:.4}");
                format!("{}p", text.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}

fn invalid(text: &str) -> OptionError {
    OptionError::Configuration(format!("Invalid value {text} for option 'speculative_retry'"))
}

/// `99P`, `99PERCENTILE`, `50MS`.
fn simple(upper: &str) -> Option<Simple> {
    let number = |text: &str| {
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        text.parse::<f64>().ok().filter(|_| plain)
    };
    if let Some(millis) = upper.strip_suffix("MS") {
        return number(millis).map(|millis| Simple::Fixed(millis as i32));
    }
    let percent = upper.strip_suffix("PERCENTILE").or_else(|| upper.strip_suffix('P'));
    percent.and_then(number).map(Simple::Percentile)
}

/// A percentile and a time, in either order, of which the percentile is printed first. Spaces stand around the comma only.
fn hybrid(text: &str, function: &str, inside: &str) -> Result<String, OptionError> {
    let (left, right) = inside.split_once(',').ok_or_else(|| invalid(text))?;
    let of = |part: &str| simple(part).ok_or_else(|| invalid(text));
    let (percentile, fixed) = match (of(left.trim_end())?, of(right.trim_start())?) {
        (percentile @ Simple::Percentile(_), fixed @ Simple::Fixed(_))
        | (fixed @ Simple::Fixed(_), percentile @ Simple::Percentile(_)) => (percentile, fixed),
        (same, _) => {
            let kind = if matches!(same, Simple::Fixed(_)) { "FIXED" } else { "PERCENTILE" };
            return Err(OptionError::Configuration(format!(
                "Invalid value {text} for option 'speculative_retry': MIN()/MAX() arguments should be of different types, but both are of type {kind}"
            )));
        }
    };
    Ok(format!("{function}({},{})", percentile.show(), fixed.show()))
}
