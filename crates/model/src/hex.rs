//! Hexadecimal text of bytes.

/// In lower case, without a prefix.
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(*DIGITS.get(usize::from(nibble)).unwrap_or(&b'0'));
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// `None` if a character is not a digit or the last byte has only one.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves both directions, upper case, and what is refused.
    #[test]
    fn both_ways() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(encode(&[0, 0x1f, 0xff]), "001fff");
        assert_eq!(decode(&encode(&all)), Some(all));
        assert_eq!((decode("Ff"), decode("")), (Some(vec![0xff]), Some(Vec::new())));
        assert_eq!((decode("abc"), decode("0g"), decode("é")), (None, None, None));
    }
}
