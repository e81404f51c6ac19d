//! Passwords in the texts of statements.

use std::borrow::Cow;

/// Hides all behind the word, as `PasswordObfuscator` does: traces and stored statements are readable by every client.
pub(crate) fn without_password(text: &str) -> Cow<'_, str> {
    const WORD: &str = "password";
    let found =
        text.as_bytes().windows(WORD.len()).position(|at| at.eq_ignore_ascii_case(WORD.as_bytes()));
    match found.and_then(|at| text.get(..at + WORD.len())) {
        Some(before) => Cow::Owned(format!("{before} *******")),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a password is hidden however the word is written, and that other texts stay.
    #[test]
    fn passwords_are_hidden() {
        let text = "CREATE ROLE r WITH PassWord = 'hush' AND LOGIN = true";
        assert_eq!(without_password(text), "CREATE ROLE r WITH PassWord *******");
        assert_eq!(without_password("SELECT é FROM t"), "SELECT é FROM t");
    }
}
