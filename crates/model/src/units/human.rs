//! Quantities of table options (`FBUtilities.parseHumanReadable`, `parsePercent`, `prettyPrintMemory`).

use crate::value::parse_double;

/// Powers of a thousand on both sides of one, which is the space.
const PREFIXES: &str = "qryzafpnum KMGTPEZYRQ";
const NO_PREFIX: usize = 10;

/// `0.333` or `33%`. The error is that of Java's `Double.parseDouble`.
pub fn percent(text: &str) -> Result<f64, String> {
    let (number, divisor) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    match parse_double(number) {
        Some(value) => Ok(value / divisor),
        None if number.is_empty() => Err("empty String".to_owned()),
        None => Err(format!("For input string: \"{number}\"")),
    }
}

/// Bytes: `1.5GiB`, `10 MB`, `100B`, `3*2^20B`. The error is that of Cassandra's NumberFormatException.
pub fn size(text: &str) -> Result<f64, String> {
    let Some(body) = text.strip_suffix('B') else {
        return Err(format!("{text} does not end in unit B"));
    };
    let number = number_length(body).ok_or("null")?;
    let (digits, mut rest) = body.split_at(number);
    let mut value: f64 = digits.parse().map_err(|_| "null".to_owned())?;
    if let Some((power, length)) = binary_exponent(rest) {
        value *= f64::from(power).exp2();
        rest = rest.get(length..).unwrap_or_default();
    }
    let mut unread = rest.trim_start();
    let prefix = unread.chars().next().and_then(|first| PREFIXES.find(first));
    if let Some(at) = prefix {
        let power = at as i32 - NO_PREFIX as i32;
        unread = unread.get(1..).unwrap_or_default();
        match unread.strip_prefix('i') {
            Some(behind) => {
                unread = behind;
                value *= f64::from(power * 10).exp2();
            }
            None => value *= 1000f64.powi(power),
        }
    }
    if unread.is_empty() {
        return Ok(value);
    }
    let (from, to) = (body.len() - unread.len(), body.len());
    Err(format!("Unexpected characters between pos {from} and {to} in {text}"))
}

/// The length of a number at the start: a fraction needs digits on both sides of its point.
fn number_length(text: &str) -> Option<usize> {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.bytes().take_while(u8::is_ascii_digit).count()
    };
    let sign = usize::from(text.starts_with(['+', '-']));
    if text.starts_with("NaN") {
        return Some(3);
    }
    if text.get(sign..)?.starts_with("Infinity") {
        return Some(sign + 8);
    }
    let mut end = sign + digits(sign);
    if end == sign {
        return None;
    }
    if text.get(end..)?.starts_with('.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if text.get(end..)?.starts_with(['e', 'E']) {
        let sign = usize::from(text.get(end + 1..)?.starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    Some(end)
}

/// `*2^20`: the power, and how long its text is.
fn binary_exponent(text: &str) -> Option<(i32, usize)> {
    let behind = text.strip_prefix("*2^")?;
    let sign = usize::from(behind.starts_with(['+', '-']));
    let digits = behind.get(sign..)?.bytes().take_while(u8::is_ascii_digit).count();
    let power = behind.get(..sign + digits)?.parse().ok()?;
    Some((power, 3 + sign + digits))
}

/// `800.000MiB`
pub fn show_size(bytes: f64) -> String {
    let mut value = bytes;
    for prefix in ["", "Ki", "Mi", "Gi", "Ti", "Pi"] {
        if value < 1024.0 {
            return format!("{value:.3}{prefix}B");
        }
        value /= 1024.0;
    }
    format!("{value:.3}EiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves values and errors that Apache Cassandra 5.0.9 gave.
    #[test]
    fn as_cassandra_reads() {
        let mib = 1_048_576.0;
        for (text, bytes) in [
            ("1 GiB", 1024.0 * mib),
            ("1e9B", 1e9),
            ("2000KB", 2e6),
            ("2*2^20 B", 2.0 * mib),
            ("+3MiB", 3.0 * mib),
            ("3TiB", 3.0 * mib * mib),
            ("1.5GiB", 1536.0 * mib),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for (text, error) in [
            ("1.GiB", "Unexpected characters between pos 1 and 4 in 1.GiB"),
            (".5GiB", "null"),
            ("100kB", "Unexpected characters between pos 3 and 4 in 100kB"),
            ("2M", "2M does not end in unit B"),
            ("3MiiB", "Unexpected characters between pos 3 and 4 in 3MiiB"),
            ("3 iB", "Unexpected characters between pos 2 and 3 in 3 iB"),
            (" 3MB", "null"),
            ("½B", "null"),
        ] {
            assert_eq!(size(text), Err(error.to_owned()), "{text}");
        }
        assert_eq!(percent("50 %"), Ok(0.5));
        assert_eq!(percent("0.3f"), Ok(f64::from(3) / 10.0));
        assert_eq!(percent(""), Err("empty String".to_owned()));
        assert_eq!(percent("x"), Err("For input string: \"x\"".to_owned()));
        assert_eq!(show_size(800.0 * mib), "800.000MiB");
    }
}
