//! The rows of a small result, and the values in them by their columns' names.

use std::net::IpAddr;

use halcyon_protocol::client::Page;

/// Rows with column names.
#[derive(Debug, Default)]
pub struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Option<Vec<u8>>>>,
}

/// One row.
pub struct Row<'a> {
    columns: &'a [String],
    values: &'a [Option<Vec<u8>>],
}

impl Rows {
    /// Rows that did not come from a server: names of columns, and as many values in each row.
    pub fn of(columns: Vec<String>, rows: Vec<Vec<Option<Vec<u8>>>>) -> Rows {
        Rows { columns, rows }
    }

    /// Appends a page. Returns the state with which the next one is asked for.
    pub(crate) fn append(&mut self, page: Page) -> Option<Vec<u8>> {
        self.columns = page.columns;
        self.rows.extend(page.rows);
        page.paging_state
    }

    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|values| Row { columns: &self.columns, values })
    }
}

impl Row<'_> {
    pub fn bytes(&self, column: &str) -> Option<&[u8]> {
        let at = self.columns.iter().position(|name| name == column)?;
        self.values.get(at)?.as_deref()
    }

    pub fn text(&self, column: &str) -> String {
        self.bytes(column).map(String::from_utf8_lossy).unwrap_or_default().into_owned()
    }

    /// A bigint or int; 0 if it is negative or missing.
    pub fn count(&self, column: &str) -> u64 {
        let number = match self.bytes(column) {
            Some(&[a, b, c, d]) => i64::from(i32::from_be_bytes([a, b, c, d])),
            Some(bytes) => bytes.first_chunk::<8>().map_or(0, |bytes| i64::from_be_bytes(*bytes)),
            None => 0,
        };
        u64::try_from(number).unwrap_or(0)
    }

    pub fn is_true(&self, column: &str) -> bool {
        self.bytes(column) == Some(&[1])
    }

    /// An inet.
    pub fn address(&self, column: &str) -> Option<IpAddr> {
        let bytes = self.bytes(column)?;
        let short = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
        short.or(<[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
    }

    /// The elements of a set or list of text.
    pub fn texts(&self, column: &str) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.elements(column).into_iter().map(text).collect()
    }

    /// The elements of a set or list; the keys and values of a map, one after the other.
    pub fn elements(&self, column: &str) -> Vec<&[u8]> {
        let mut rest = self.bytes(column).and_then(|bytes| bytes.get(4..)).unwrap_or_default();
        let mut elements = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>()
            && let Ok(length) = usize::try_from(i32::from_be_bytes(*length))
            && let Some((element, after)) = after.split_at_checked(length)
        {
            elements.push(element);
            rest = after;
        }
        elements
    }

    /// The elements of a list of bigint.
    pub fn counts(&self, column: &str) -> Vec<u64> {
        let elements = self.bytes(column).and_then(|bytes| bytes.get(4..)).unwrap_or_default();
        let count = |element: &[u8]| {
            let number = element.last_chunk::<8>().map_or(0, |bytes| i64::from_be_bytes(*bytes));
            u64::try_from(number).unwrap_or(0)
        };
        elements.chunks_exact(4 + size_of::<i64>()).map(count).collect()
    }

    /// A double; 0 if it is missing or not a number.
    pub fn double(&self, column: &str) -> f64 {
        let bytes = self.bytes(column).and_then(|bytes| bytes.first_chunk::<8>());
        bytes.map(|bytes| f64::from_be_bytes(*bytes)).filter(|n| n.is_finite()).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the decoding of values: one that is missing or not a number is zero.
    #[test]
    fn values() {
        let columns = ["a", "b", "c", "d"].map(str::to_owned);
        let values = [
            Some(7i32.to_be_bytes().to_vec()),
            Some((-1i64).to_be_bytes().to_vec()),
            Some(f64::NAN.to_be_bytes().to_vec()),
            None,
        ];
        let row = Row { columns: &columns, values: &values };
        assert_eq!((row.count("a"), row.count("b"), row.count("d")), (7, 0, 0));
        assert_eq!((row.double("c"), row.double("a"), row.double("z")), (0.0, 0.0, 0.0));
        let element = |n: i64| [&8i32.to_be_bytes()[..], &n.to_be_bytes()[..]].concat();
        let list = [2i32.to_be_bytes().to_vec(), element(7), element(-1)].concat();
        let row = Row { columns: &["l".to_owned()], values: &[Some(list)] };
        assert_eq!((row.counts("l"), row.counts("z")), (vec![7, 0], Vec::new()));
    }
}
