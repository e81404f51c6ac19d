//! Passwords in texts, hidden as Cassandra's `PasswordObfuscator` hides them.
//!
//! 1. [`hidden`] is for any text, parsed or not: all behind the word `password` goes.
//! 2. [`literals_hidden`] is for statements about roles that were parsed: the password goes, the rest stays. Cassandra replaces the first
//!    text behind the word that equals the password, which can be another one (`PASSWORD = '='`); here it is the literal itself.

use std::borrow::Cow;

use crate::lexer::{TokenKind, tokens};

/// What stands in the place of a password.
pub const HIDDEN: &str = "*******";

const WORD: &str = "password";

fn position(text: &str) -> Option<usize> {
    text.as_bytes().windows(WORD.len()).position(|at| at.eq_ignore_ascii_case(WORD.as_bytes()))
}

/// Whether a text has the word.
pub fn is_mentioned(text: &str) -> bool {
    position(text).is_some()
}

/// Hides all behind the word (`PasswordObfuscator.obfuscate(String)`).
pub fn hidden(text: &str) -> Cow<'_, str> {
    match position(text).and_then(|at| text.get(..at + WORD.len())) {
        Some(before) => Cow::Owned(format!("{before} {HIDDEN}")),
        None => Cow::Borrowed(text),
    }
}

/// Hides the literals behind the word (`PasswordObfuscator.obfuscate(String, RoleOptions)`), also in `OPTIONS = {'password': '…'}`.
pub fn literals_hidden(text: &str) -> Cow<'_, str> {
    if !is_mentioned(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut follows) = (0, false);
    for token in tokens(text) {
        // A token borrows its text from the whole.
        let start = token.text.as_ptr().addr() - text.as_ptr().addr();
        if token.kind == TokenKind::String && follows {
            let quote = if token.text.starts_with('$') { "$$" } else { "'" };
            out.push_str(text.get(copied..start).unwrap_or_default());
            out.extend([quote, HIDDEN, quote]);
            copied = start + token.text.len();
            follows = false;
        } else if !matches!(token.text, "=" | ":") {
            follows = is_mentioned(token.text);
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that all behind the word is hidden however it is written, and that other texts stay.
    #[test]
    fn all_behind_the_word_is_hidden() {
        let text = "CREATE ROLE r WITH PassWord = 'hush' AND LOGIN = true";
        assert_eq!(hidden(text), "CREATE ROLE r WITH PassWord *******");
        let text = "ALTER USER u WITH HASHED PASSWORD 'x'; CREATE USER v WITH PASSWORD 'y'";
        assert_eq!(hidden(text), "ALTER USER u WITH HASHED PASSWORD *******");
        assert_eq!(hidden("SELECT é FROM t"), "SELECT é FROM t");
    }

    /// Proves that only the literal is hidden, whatever it is and however it is quoted.
    #[test]
    fn only_the_literal_is_hidden() {
        for (text, expected) in [
            ("CREATE ROLE r WITH PASSWORD = 'hush' AND LOGIN = true", "'*******' AND LOGIN = true"),
            ("create role r with login=true and password='a''b';", "='*******';"),
            ("CREATE USER u WITH PASSWORD 'x' SUPERUSER", "PASSWORD '*******' SUPERUSER"),
            ("ALTER ROLE r WITH HASHED PASSWORD = '$2a$10$x'", "PASSWORD = '*******'"),
            ("ALTER ROLE r WITH PASSWORD = $$it's$$", "PASSWORD = $$*******$$"),
            ("ALTER ROLE r WITH PASSWORD /* x */ = '='", "PASSWORD /* x */ = '*******'"),
            ("ALTER ROLE r WITH OPTIONS = {'a': 'b', 'Password': 'c'}", "'Password': '*******'}"),
        ] {
            let shown = literals_hidden(text);
            assert!(shown.ends_with(expected), "{shown}");
        }
        assert_eq!(literals_hidden("DROP ROLE 'password'"), "DROP ROLE 'password'");
        assert_eq!(literals_hidden("LIST ROLES"), "LIST ROLES");
    }
}
