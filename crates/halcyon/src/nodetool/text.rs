//! Rows of tables and sizes as Cassandra's tools print them.

pub(super) use halcyon_tools::table;

pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

const UNITS: [(u64, &str); 4] =
    [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

/// `FileUtils.stringifyFileSize`: at most two decimals.
pub(crate) fn file_size(bytes: u64) -> String {
    let Some((factor, unit)) = UNITS.iter().find(|(factor, _)| bytes >= *factor) else {
        return format!("{bytes} bytes");
    };
    let text = format!("{:.2}", bytes as f64 / *factor as f64);
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// `FBUtilities.prettyPrintMemory`: three decimals.
pub(super) fn memory(bytes: u64) -> String {
    match UNITS.iter().find(|(factor, _)| bytes >= *factor) {
        Some((factor, unit)) => format!("{:.3}{unit}", bytes as f64 / *factor as f64),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves both spellings of sizes, with values that Cassandra printed.
    #[test]
    fn sizes() {
        let cases = [
            (0, "0 bytes"),
            (129, "129 bytes"),
            (6861, "6.7 KiB"),
            (5581, "5.45 KiB"),
            (18 << 20, "18 MiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(file_size(bytes), text);
        }
        assert_eq!(
            (memory(0), memory(1898), memory(7361)),
            ("0B".into(), "1.854KiB".into(), "7.188KiB".into())
        );
    }
}
