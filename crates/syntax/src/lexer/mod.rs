//! CQL text cut into tokens.
//!
//! 1. Blanks and the three kinds of comment (`--`, `//`, `/* */`) separate tokens and vanish.
//! 2. At each place the longest token wins, as in Cassandra's grammar: `8-4-4-4-12` hexadecimal digits are a uuid
//!    before they are a number, `12h30m` and `P1Y2M` are durations before they are a number or a name.
//! 3. Nothing is refused here.  A character that begins no token, or a quote that never closes, becomes an `Unknown`
//!    or `Unterminated` token: the parser complains when it meets one, and steps over it inside a statement
//!    that it skips.
//!
//! A token borrows its text; `Token::value` unquotes.  Invariant: tokens are in order, do not overlap, and the
//! last one is `End`.

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
    /// A quote or a comment that never closes; the token reaches to the end of the text.
    Unterminated,
    End,
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

/// All tokens of a text; the last one is `End`.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { text, at: 0, location: Location { line: 1, column: 0 } };
    let mut tokens = Vec::new();
    loop {
        let unclosed = lexer.skip_blanks();
        let location = lexer.location;
        let (kind, length) = match unclosed {
            Some(length) => (TokenKind::Unterminated, length),
            None => measure(lexer.rest()),
        };
        let token = Token { kind, text: lexer.take(length), location };
        tokens.push(token);
        if kind == TokenKind::End {
            return tokens;
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    location: Location,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, length: usize) -> &'a str {
        let taken = self.rest().get(..length).unwrap_or_default();
        for c in taken.chars() {
            if c == '\n' {
                self.location.line = self.location.line.saturating_add(1);
                self.location.column = 0;
            } else {
                self.location.column = self.location.column.saturating_add(1);
            }
        }
        self.at += taken.len();
        taken
    }

    /// Skips blanks and comments. Gives the length of a comment that never closes.
    fn skip_blanks(&mut self) -> Option<usize> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches(is_blank).len();
            if blank > 0 {
                self.take(blank);
            } else if rest.starts_with("--") || rest.starts_with("//") {
                self.take(rest.find('\n').unwrap_or(rest.len()));
            } else if let Some(comment) = rest.strip_prefix("/*") {
                match comment.find("*/") {
                    Some(end) => self.take(end + 4),
                    None => return Some(rest.len()),
                };
            } else {
                return None;
            }
        }
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}' || c == '\0'
}

/// Kind and length of the token at the start of a text that does not begin with a blank or a comment.
fn measure(rest: &str) -> (TokenKind, usize) {
    let Some(first) = rest.chars().next() else {
        return (TokenKind::End, 0);
    };
    let digits_follow = rest.get(1..).is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()));
    match first {
        '\'' => quoted(rest, '\'', TokenKind::String),
        '"' => quoted(rest, '"', TokenKind::QuotedName),
        '$' if rest.starts_with("$$") => match rest.get(2..).and_then(|r| r.find("$$")) {
            Some(end) => (TokenKind::String, end + 4),
            None => (TokenKind::Unterminated, rest.len()),
        },
        c if c.is_ascii_alphanumeric() => word_or_number(rest),
        '-' if digits_follow || iso_duration(rest) > 0 => word_or_number(rest),
        _ => symbol(rest, first),
    }
}

fn quoted(rest: &str, quote: char, kind: TokenKind) -> (TokenKind, usize) {
    let mut from = 1;
    loop {
        let Some(end) = rest.get(from..).and_then(|r| r.find(quote)) else {
            return (TokenKind::Unterminated, rest.len());
        };
        from += end + 1;
        if !rest.get(from..).is_some_and(|r| r.starts_with(quote)) {
            return (kind, from);
        }
        from += 1;
    }
}

fn symbol(rest: &str, first: char) -> (TokenKind, usize) {
    const LONG: [&str; 7] = ["<=", ">=", "!=", "+=", "-=", "..", "->"];
    if let Some(long) = LONG.iter().find(|s| rest.starts_with(**s)) {
        return (TokenKind::Symbol, long.len());
    }
    let known = ";,.(){}[]<>=+-*/%?:|".contains(first);
    (if known { TokenKind::Symbol } else { TokenKind::Unknown }, first.len_utf8())
}

fn word_or_number(rest: &str) -> (TokenKind, usize) {
    let candidates = [
        (TokenKind::Uuid, uuid(rest)),
        (TokenKind::Duration, duration(rest).max(iso_duration(rest))),
        (TokenKind::Blob, blob(rest)),
        (TokenKind::Float, float(rest)),
        (TokenKind::Integer, integer(rest)),
        (TokenKind::Word, name(rest)),
    ];
    // The longest; of equally long ones, the first.
    let longest = candidates.iter().map(|(_, length)| *length).max().unwrap_or(0);
    match candidates.into_iter().find(|(_, length)| *length == longest && longest > 0) {
        Some(found) => found,
        None => (TokenKind::Unknown, rest.chars().next().map_or(0, char::len_utf8)),
    }
}

fn run(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|b| belongs(*b)).count()
}

fn digits(text: &str) -> usize {
    run(text, |b| b.is_ascii_digit())
}

fn after(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

fn name(rest: &str) -> usize {
    if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return 0;
    }
    run(rest, |b| b.is_ascii_alphanumeric() || b == b'_')
}

fn uuid(rest: &str) -> usize {
    let mut at = 0;
    for (i, group) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            if !after(rest, at).starts_with('-') {
                return 0;
            }
            at += 1;
        }
        if run(after(rest, at), |b| b.is_ascii_hexdigit()) < group {
            return 0;
        }
        at += group;
    }
    at
}

fn blob(rest: &str) -> usize {
    if rest.starts_with("0x") || rest.starts_with("0X") {
        2 + run(after(rest, 2), |b| b.is_ascii_hexdigit())
    } else {
        0
    }
}

fn integer(rest: &str) -> usize {
    let sign = usize::from(rest.starts_with('-'));
    match digits(after(rest, sign)) {
        0 => 0,
        found => sign + found,
    }
}

fn exponent(rest: &str) -> usize {
    if !rest.starts_with(['e', 'E']) {
        return 0;
    }
    let sign = usize::from(after(rest, 1).starts_with(['+', '-']));
    match digits(after(rest, 1 + sign)) {
        0 => 0,
        found => 1 + sign + found,
    }
}

fn float(rest: &str) -> usize {
    let whole = integer(rest);
    if whole == 0 {
        return 0;
    }
    let tail = after(rest, whole);
    if tail.starts_with('.') && !tail.starts_with("..") {
        let fraction = whole + 1 + digits(after(tail, 1));
        return fraction + exponent(after(rest, fraction));
    }
    match exponent(tail) {
        0 => 0,
        found => whole + found,
    }
}

/// `-1y2mo3w4d5h6m7s8ms9us10ns`: numbers with units.
fn duration(rest: &str) -> usize {
    const UNITS: [&str; 12] = ["mo", "ms", "us", "µs", "ns", "μs", "y", "w", "d", "h", "m", "s"];
    let mut at = usize::from(rest.starts_with('-'));
    let mut end = 0;
    loop {
        let number = digits(after(rest, at));
        let tail = after(rest, at + number);
        let unit = UNITS.iter().find(|unit| {
            tail.get(..unit.len()).is_some_and(|found| found.eq_ignore_ascii_case(unit))
        });
        match unit {
            Some(unit) if number > 0 => {
                at += number + unit.len();
                end = at;
            }
            _ => break,
        }
    }
    // `12days` is not a duration followed by `ays`.
    if after(rest, end).starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        0
    } else {
        end
    }
}

/// `P1Y2M3DT4H5M6S`, `P3W` and `P0001-02-03T04:05:06`. Small letters make a name: `p1y`.
fn iso_duration(rest: &str) -> usize {
    let sign = usize::from(rest.starts_with('-'));
    let body = after(rest, sign);
    if !body.starts_with('P') {
        return 0;
    }
    let length = run(body, |b| b.is_ascii_digit() || b"PYMDTHSW-:".contains(&b));
    let text = after(body, 1).get(..length - 1).unwrap_or_default();
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let alternative = date.len() == 10
        && date.split('-').map(|part| digits(part) == part.len()).eq([true, true, true])
        && time.is_some_and(|t| t.split(':').map(|p| digits(p) == 2).eq([true, true, true]));
    let units = (!date.is_empty() || time.is_some())
        && (unit_run(date, b"YMD") || (time.is_none() && unit_run(date, b"W")))
        && time.is_none_or(|time| !time.is_empty() && unit_run(time, b"HMS"));
    if alternative || units { sign + length } else { 0 }
}

/// Whether a text is numbers, each followed by one of the units, the units in order and each at most once.
fn unit_run(mut text: &str, mut units: &[u8]) -> bool {
    while !text.is_empty() {
        let number = digits(text);
        let unit = text.as_bytes().get(number);
        let Some(at) = units.iter().position(|known| Some(known) == unit) else {
            return false;
        };
        if number == 0 {
            return false;
        }
        units = units.get(at + 1..).unwrap_or_default();
        text = after(text, number + 1);
    }
    true
}

#[cfg(test)]
mod tests;
