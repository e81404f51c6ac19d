//! How much memory a statement takes, told from its text before it is parsed.
//!
//! A parsed statement is larger than its text, most of all a list of short literals: `1,1,1` has a term for two bytes. So what counts are
//! tokens. They are counted in one pass that allocates nothing, and a little too high: a test compares the weights with the count of an
//! allocator.

/// Of a text that is parsed and planned, while both are held: tokens, syntax tree, plan.
const PARSED_TOKEN: u64 = 420;
/// Of a prepared statement: its plan.
const PREPARED_TOKEN: u64 = 110;
/// Of a variable or a column of its result.
const COLUMN: u64 = 180;
/// Of a prepared statement with few tokens.
const PREPARED_BASE: u64 = 4 << 10;

/// Bytes that parsing, planning and executing a statement take at most.
pub fn parsing(text: &str) -> u64 {
    4 * text.len() as u64 + PARSED_TOKEN * tokens(text)
}

/// Bytes that a prepared statement takes.
pub fn prepared(text: &str, columns: usize) -> u64 {
    PREPARED_BASE + 2 * text.len() as u64 + PREPARED_TOKEN * tokens(text) + COLUMN * columns as u64
}

/// Words and symbols outside of quotes; a quoted text is one.
fn tokens(text: &str) -> u64 {
    let mut count = 0;
    let mut quote = None;
    let mut in_word = false;
    for byte in text.bytes() {
        if let Some(open) = quote {
            quote = Some(open).filter(|open| *open != byte);
            continue;
        }
        let is_word =
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-') || byte >= 0x80;
        match byte {
            b'\'' | b'"' => {
                quote = Some(byte);
                count += 1;
            }
            _ if byte.is_ascii_whitespace() => {}
            _ if is_word => count += u64::from(!in_word),
            _ => count += 1,
        }
        in_word = is_word;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that words, symbols and quoted texts are counted, however many bytes they have.
    #[test]
    fn tokens_are_counted() {
        let count = |text, expected| assert_eq!(tokens(text), expected, "{text}");
        count("", 0);
        count("SELECT * FROM t", 4);
        count("a IN (1, 2,3)", 9);
        count("v = 'a, b, (c)' AND w = \"x y\"", 7);
        count("'it''s'", 2);
        count(&"1,".repeat(1000), 2000);
    }
}
