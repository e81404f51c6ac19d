//! Tokens: kind, text, location, value.

use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A keyword or an unquoted name: its location decides.
    Word,
    /// `"Name"`, in which `""` stands for one quote.
    QuotedName,
    /// `'text'` (in which `''` stands for one quote) or `$$text$$`.
    String,
    Integer,
    Float,
    /// `0x` and hexadecimal digits.
    Blob,
    Uuid,
    Duration,
    /// Punctuation and operators.
    Symbol,
    /// A character that begins no token.
    Unknown,
    /// The beginning of a token that is not what follows.
    Broken(Expected),
    /// A quote or a comment that never closes; the token reaches to the end of the text.
    Unterminated,
    End,
}

/// What a token has behind its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Char(char),
    /// One of several characters: a hexadecimal digit, the next letter of a name in either case.
    Set,
    /// A digit of an exponent.
    Digit,
    /// The next part of a duration, or another token.
    Other,
}

/// A location in the text, counted as Cassandra's messages do: lines from 1, columns (characters) from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    pub line: u32,
    pub column: u32,
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: TokenKind,
    /// As written, quotes included.
    pub text: &'a str,
    pub location: Location,
}

impl<'a> Token<'a> {
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.text == symbol
    }

    /// The token's value: a name without quotes (in lower case if it had none), a string without quotes.
    pub fn value(&self) -> Cow<'a, str> {
        match self.kind {
            TokenKind::Word => Cow::Owned(self.text.to_ascii_lowercase()),
            TokenKind::QuotedName => unquote(self.text, "\""),
            TokenKind::String => match self.text.strip_prefix("$$") {
                Some(rest) => Cow::Borrowed(rest.strip_suffix("$$").unwrap_or(rest)),
                None => unquote(self.text, "'"),
            },
            _ => Cow::Borrowed(self.text),
        }
    }
}

fn unquote<'a>(text: &'a str, quote: &str) -> Cow<'a, str> {
    let inner = text.strip_prefix(quote).unwrap_or(text);
    let inner = inner.strip_suffix(quote).unwrap_or(inner);
    let doubled = quote.repeat(2);
    if inner.contains(&doubled) {
        Cow::Owned(inner.replace(&doubled, quote))
    } else {
        Cow::Borrowed(inner)
    }
}
