//! Role and password of a request (RFC 7617).

use base64ct::{Base64, Encoding};

/// Longer ones are not decoded: a password has at most 72 bytes in bcrypt's eyes.
const LENGTH_MAX: usize = 8 << 10;

/// The value of `Authorization`, in the Basic scheme.
pub(super) fn basic(value: &str) -> Option<(String, String)> {
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") || encoded.len() > LENGTH_MAX {
        return None;
    }
    let decoded = String::from_utf8(Base64::decode_vec(encoded.trim()).ok()?).ok()?;
    let (role, password) = decoded.split_once(':')?;
    (!role.is_empty() && !password.is_empty()).then(|| (role.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a role and a password are read, colons of the password included, and that other texts are refused.
    #[test]
    fn credentials_are_decoded() {
        let encoded = |text: &str| format!("Basic {}", Base64::encode_string(text.as_bytes()));
        let read = |text: &str| basic(&encoded(text));
        assert_eq!(read("a:b:c"), Some(("a".to_owned(), "b:c".to_owned())));
        assert_eq!(read("é:漢"), Some(("é".to_owned(), "漢".to_owned())));
        for text in ["", "a", ":b", "a:"] {
            assert_eq!(read(text), None, "{text}");
        }
        for value in ["", "Basic", "Basic !", "Bearer YTpi", "Basic /w=="] {
            assert_eq!(basic(value), None, "{value}");
        }
        assert_eq!(read(&"a:b".repeat(LENGTH_MAX)), None);
    }
}
