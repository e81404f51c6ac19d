//! Numbers as Cassandra reads and shows them.

/// As Java's `Double.parseDouble`, for what people write.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.strip_suffix(['f', 'F', 'd', 'D'])?.parse().ok())
}

/// `0.333` or `33%`.
pub(super) fn parse_percent(text: &str) -> Option<f64> {
    match text.trim().strip_suffix('%') {
        Some(percent) => parse_float(percent).map(|percent| percent / 100.0),
        None => parse_float(text),
    }
}

/// `1.5GiB`, `10MB`, `100B`: a number, perhaps a space, a decimal or binary prefix, and `B`.
pub(super) fn parse_bytes(text: &str) -> Result<f64, String> {
    let Some(number) = text.strip_suffix('B') else {
        return Err(format!("{text} does not end in unit B"));
    };
    let (number, binary) = match number.strip_suffix('i') {
        Some(number) => (number, true),
        None => (number, false),
    };
    let prefixes = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];
    let power = |last: char| prefixes.iter().position(|p| p.eq_ignore_ascii_case(&last));
    let (number, exponent) = match number.chars().last().and_then(power) {
        Some(at) => (&number[..number.len() - 1], at as i32 + 1),
        None => (number, 0),
    };
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    match number.trim_end().parse::<f64>() {
        Ok(value) if !binary || exponent > 0 => Ok(value * base.powi(exponent)),
        _ => Err(format!("Invalid number in {text}")),
    }
}

/// `800.000MiB`.
pub(super) fn pretty_bytes(bytes: f64) -> String {
    let prefixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut value = bytes;
    let mut at = 0;
    while value >= 1024.0 && at + 1 < prefixes.len() {
        value /= 1024.0;
        at += 1;
    }
    format!("{value:.3}{}B", prefixes[at])
}

/// As Java shows a double of ordinary size.
pub(super) fn java_double(value: f64) -> String {
    format!("{value:?}")
}

/// The order in which a Java `HashMap`, made as a copy of one with `entries`, gives keys of it.
pub(super) fn java_hash_order(keys: &mut [&str], entries: usize) {
    let capacity = (entries * 4 / 3 + 1).next_power_of_two() as u32;
    let hash = |key: &str| {
        key.encode_utf16().fold(0u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()))
    };
    let slot = |key: &str| (hash(key) ^ hash(key) >> 16) & (capacity - 1);
    keys.sort_by_key(|key| slot(key));
}
