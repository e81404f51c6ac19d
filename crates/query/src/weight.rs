//! How much memory a statement takes, told from its text before it is parsed.
//!
//! A parsed statement is larger than its text, most of all a list of short literals: `1,1,1` has a term for two bytes. So what counts are
//! tokens. They are counted in one pass that allocates nothing, and a little too high: a test compares the weights with the count of an
//! allocator.

use halcyon_model::CqlType;

use halcyon_scan::SMALL;

/// Of a text that is parsed and planned, while both are held: tokens, syntax tree, plan.
const PARSED_TOKEN: u64 = 420;
/// Of a prepared statement: its plan.
const PREPARED_TOKEN: u64 = 110;
/// Of a literal collection's token in a prepared modification: the collection is one value.
const FOLDED_TOKEN: u64 = 16;
/// Of a byte in a quoted text, which may be JSON: one element of a list of numbers has two.
const QUOTED_BYTE: u64 = 6;
/// Of a byte of JSON that is executed: one element of a list of numbers has two.
const JSON_BYTE: u64 = 130;
/// Of a variable or a column of its result.
const COLUMN: u64 = 180;
/// Of a prepared statement with few tokens.
const PREPARED_BASE: u64 = 4 << 10;

/// Bytes that parsing, planning and executing a statement take at most.
pub fn parsing(text: &str) -> u64 {
    let Tokens { count, quoted, .. } = count(text);
    let json = if quoted > SMALL && mentions_json(text) { JSON_BYTE * quoted } else { 0 };
    4 * text.len() as u64 + PARSED_TOKEN * count + json
}

/// `INSERT … JSON '…'` and `fromJson('…')`.
fn mentions_json(text: &str) -> bool {
    text.as_bytes().windows(4).any(|word| word.eq_ignore_ascii_case(b"json"))
}

/// Bytes that the parts of a bound value take while it is executed: parsed, bound, in a mutation and in its record. `receiver` names what
/// the marker stands for.
pub fn value(cql_type: &CqlType, receiver: &str, len: usize) -> u64 {
    let each_byte = match cql_type.thawed() {
        CqlType::Text if receiver == "[json]" || receiver.contains("json)") => JSON_BYTE,
        CqlType::List(_)
        | CqlType::Set(_)
        | CqlType::Map(..)
        | CqlType::Vector(..)
        | CqlType::Tuple(_)
        | CqlType::Udt(_) => 32,
        // Counted with the request.
        _ => 0,
    };
    each_byte * len as u64
}

/// Bytes that a prepared statement takes.
pub fn prepared(text: &str, columns: usize) -> u64 {
    let Tokens { count, folded, quoted } = count(text);
    let folded = if is_select(text) { 0 } else { folded };
    PREPARED_BASE
        + 2 * text.len() as u64
        + PREPARED_TOKEN * (count - folded)
        + FOLDED_TOKEN * folded
        + QUOTED_BYTE * quoted
        + COLUMN * columns as u64
}

/// In a select clause, a collection has a selector for each element.
fn is_select(text: &str) -> bool {
    let first = text.trim_start().get(..6);
    !first.is_some_and(|word| {
        ["insert", "update", "delete", "begin "].iter().any(|of| word.eq_ignore_ascii_case(of))
    })
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Tokens {
    /// Words and symbols outside of quotes; a quoted text is one.
    count: u64,
    /// Those of collections of nothing but constants.
    folded: u64,
    /// Bytes in quotes.
    quoted: u64,
}

fn count(text: &str) -> Tokens {
    let Tokens { mut count, mut folded, mut quoted } = Tokens::default();
    let mut quote = None;
    let mut in_word = false;
    let mut last = 0;
    // Of the outermost open collection: the tokens before it, and how many brackets are open.
    let mut collection: Option<(u64, u64)> = None;
    for byte in text.bytes() {
        if let Some(open) = quote {
            quote = Some(open).filter(|open| *open != byte);
            quoted += 1;
            continue;
        }
        collection = match (byte, collection) {
            (b'[' | b'{', None) => Some((count, 1)),
            (b'[' | b'{', Some((before, open))) => Some((before, open + 1)),
            (b']' | b'}', Some((before, 1))) => {
                folded += count - before;
                None
            }
            (b']' | b'}', Some((before, open))) => Some((before, open - 1)),
            // A marker or a call: the elements stay as they are.
            (b'?' | b'(', Some(_)) => None,
            (b':', Some(_)) if matches!(last, b':' | b',' | b'[' | b'{') => None,
            (_, collection) => collection,
        };
        if !byte.is_ascii_whitespace() {
            last = byte;
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
    Tokens { count, folded, quoted }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that collections of constants, which become one value, count differently from those with markers and calls, and selectors.
    #[test]
    fn literal_collections_are_light() {
        let folded = |text, expected| assert_eq!(count(text).folded, expected, "{text}");
        folded("VALUES ([1, 2, 3])", 6);
        folded("VALUES ({'a': [1], 'b': [2]}, 'x')", 12);
        folded("VALUES ([1, ?], {a: :b}, [now()], {:a, 1})", 0);
        folded("VALUES ((1, [2]))", 2);
        let lists = |first| prepared(&format!("{first} [{}]", "1,".repeat(1000)), 0);
        assert!(10 * lists("INSERT") < 4 * lists("SELECT"));
    }

    /// Proves that values of many parts are weighed by them, and others not again.
    #[test]
    fn values_of_many_parts_are_heavy() {
        let list = CqlType::List(Box::new(CqlType::Int));
        assert_eq!(value(&list, "l", 1000), 32_000);
        assert_eq!(value(&CqlType::Text, "[json]", 1000), 130_000);
        assert_eq!(value(&CqlType::Text, "arg0(system.from_json)", 1000), 130_000);
        assert_eq!(value(&CqlType::Text, "v", 1000) + value(&CqlType::Blob, "v", 1000), 0);
    }

    /// Proves that words, symbols and quoted texts are counted, however many bytes they have.
    #[test]
    fn tokens_are_counted() {
        let of = |text| count(text).count;
        let count = |text, expected| assert_eq!(of(text), expected, "{text}");
        count("", 0);
        count("SELECT * FROM t", 4);
        count("a IN (1, 2,3)", 9);
        count("v = 'a, b, (c)' AND w = \"x y\"", 7);
        count("'it''s'", 2);
        count(&"1,".repeat(1000), 2000);
    }
}
