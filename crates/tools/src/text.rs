//! Tables of text as Cassandra's tools print them.

/// Columns as wide as their widest cell.
pub fn table(rows: &[Vec<String>], delimiter: &str) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cell = |(column, width): (usize, &usize)| {
            let text = row.get(column).map_or("", String::as_str);
            format!("{text:width$}")
        };
        let cells: Vec<String> = widths.iter().enumerate().map(cell).collect();
        out += &cells.join(delimiter);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that every cell but the last is padded, and the last one too.
    #[test]
    fn tables_are_aligned() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [row(["a", "bcd"]), row(["efg", "h"])];
        assert_eq!(table(&rows, " "), "a   bcd\nefg h  \n");
    }
}
