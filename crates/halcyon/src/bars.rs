//! Histograms drawn in text, the way `biolatency` does.
//!
//! ```text
//!   latency               : count      distribution
//!   32.8 µs -> 65.5 µs    : 1,204     |@@@@@@@@@@@@                            |
//! ```

use halcyon_model::units;

const WIDTH: usize = 40;

/// One bucket: its label and its count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) label: String,
    pub(crate) count: u64,
}

/// Draws the buckets from the first to the last that is not empty; nothing if all are empty.
pub(crate) fn draw(what: &str, buckets: &[Bucket]) -> String {
    let filled = |bucket: &Bucket| bucket.count > 0;
    let Some(first) = buckets.iter().position(filled) else { return String::new() };
    let last = buckets.iter().rposition(filled).unwrap_or(first);
    let shown = buckets.get(first..=last).unwrap_or_default();
    let most = shown.iter().map(|b| b.count).max().unwrap_or(1).max(1);
    let label_width =
        shown.iter().map(|b| b.label.chars().count()).chain([what.chars().count(), 12]).max();
    let label_width = label_width.unwrap_or(12);
    let mut out = format!("  {what:<label_width$} : {:<12} distribution\n", "count");
    for bucket in shown {
        let stars = bar_length(bucket.count, most);
        out.push_str(&format!(
            "  {:<label_width$} : {:<11} |{:<WIDTH$}|\n",
            bucket.label,
            units::count(bucket.count),
            "@".repeat(stars)
        ));
    }
    out
}

/// The length of a bar: at least one character if the bucket is not empty, so that rare long latencies are visible.
fn bar_length(count: u64, most: u64) -> usize {
    if count == 0 {
        return 0;
    }
    let exact = u128::from(count) * WIDTH as u128 / u128::from(most.max(1));
    usize::try_from(exact).unwrap_or(WIDTH).clamp(1, WIDTH)
}

/// The latencies of one I/O purpose, headed by count and quantiles.
pub(crate) fn io_latency(stats: &halcyon_io::PurposeStats) -> String {
    let buckets: Vec<Bucket> = stats
        .latency
        .buckets()
        .map(|(bucket, count)| Bucket {
            label: format!("{} -> {}", units::nanos(bucket.from), units::nanos(bucket.below)),
            count,
        })
        .collect();
    let mut out = format!(
        "{}: {} operations, {}, {} errors, deepest queue {}",
        stats.purpose,
        units::count(stats.operations),
        units::bytes(stats.bytes),
        stats.errors,
        stats.queue_depth_max
    );
    if stats.overlapped > 0 {
        out.push_str(&format!(
            ", {} done before anyone waited (not in the histogram)",
            units::count(stats.overlapped)
        ));
    }
    out.push('\n');
    let quantiles: Vec<String> = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)]
        .into_iter()
        .filter_map(|(name, q)| Some(format!("{name} ≤ {}", units::nanos(stats.quantile_ns(q)?))))
        .collect();
    if !quantiles.is_empty() {
        out.push_str(&format!("  {}\n", quantiles.join("  ")));
    }
    out.push_str(&draw("latency", &buckets));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(counts: &[u64]) -> Vec<Bucket> {
        counts
            .iter()
            .enumerate()
            .map(|(i, c)| Bucket { label: format!("b{i}"), count: *c })
            .collect()
    }

    #[test]
    fn only_the_filled_part_is_drawn() {
        let drawn = draw("n", &buckets(&[0, 1, 0, 4000, 0]));
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines.len(), 4, "{drawn}");
        assert!(lines[1].starts_with("  b1 ") && lines[3].starts_with("  b3 "), "{drawn}");
        assert_eq!(lines[1].matches('@').count(), 1, "one is seen beside four thousand");
        assert_eq!(lines[2].matches('@').count(), 0);
        assert_eq!(lines[3].matches('@').count(), WIDTH);
        assert_eq!(draw("n", &buckets(&[0, 0])), "");
    }

    #[test]
    fn the_largest_counts_do_not_overflow() {
        assert_eq!(bar_length(u64::MAX, u64::MAX), WIDTH);
        assert_eq!(bar_length(u64::MAX / 2, u64::MAX), WIDTH / 2 - 1);
    }
}
