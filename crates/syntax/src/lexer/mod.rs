//! CQL text cut into tokens.
//!
//! 1. Blanks (space, tab, line feed, carriage return: no other character) and the three kinds of comment (`--`, `//`, `/* */`) separate
//!    tokens and vanish.
//! 2. Cassandra's generated lexer decides for a token as soon as only one can follow, and does not come back: `1AND` is the beginning of a
//!    uuid and no number, `10SET` a duration of ten seconds and a name (`number.rs`).
//! 3. Nothing is refused here.  A character that begins no token, the beginning of a token that does not follow, or a quote that never
//!    closes, becomes an `Unknown`, `Broken` or `Unterminated` token: the parser complains when it meets one, and steps over it inside a
//!    statement that it skips.
//!
//! A token borrows its text; `Token::value` unquotes.  Invariant: tokens are in order, do not overlap, and the
//! last one is `End`.

mod number;
mod token;

pub use self::token::{Expected, Location, Token, TokenKind};

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
                self.take(rest.find(['\n', '\r']).unwrap_or(rest.len()));
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
    matches!(c, ' ' | '\t' | '\n' | '\r')
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
        '$' => (TokenKind::Broken(Expected::Char('$')), 1),
        '!' if !rest.starts_with("!=") => (TokenKind::Broken(Expected::Char('=')), 1),
        c if c.is_ascii_digit() => number::number(rest),
        c if c.is_ascii_alphabetic() => word(rest),
        '-' if digits_follow => number::number(rest),
        '-' if rest.starts_with("-P") => match iso_duration(rest) {
            0 => (TokenKind::Broken(Expected::Other), 2 + number::digits(after(rest, 2))),
            length => (TokenKind::Duration, length),
        },
        '-' => negative(rest).unwrap_or_else(|| symbol(rest, first)),
        _ => symbol(rest, first),
    }
}

/// `-NaN` and `-Infinity`. The generated lexer decides for them by one letter: `k-n` is an error, and `k - n` is not.
fn negative(rest: &str) -> Option<(TokenKind, usize)> {
    let behind = after(rest, 1);
    let name = ["infinity", "nan"]
        .into_iter()
        .find(|name| behind.get(..1).is_some_and(|first| name[..1].eq_ignore_ascii_case(first)))?;
    let alike =
        behind.bytes().zip(name.bytes()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    let kind =
        if alike == name.len() { TokenKind::Float } else { TokenKind::Broken(Expected::Set) };
    Some((kind, 1 + alike))
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

/// A name, an ISO duration, or a uuid that begins with a letter.
fn word(rest: &str) -> (TokenKind, usize) {
    let (name, duration) = (name(rest), iso_duration(rest));
    if duration > 0 && duration >= name {
        return (TokenKind::Duration, duration);
    }
    // A dash behind eight hexadecimal digits decides for a uuid: `deadbeef-1` is an error, and `deadbeef - 1` is not.
    if name == 8 && after(rest, name).starts_with('-') && number::hexadecimal(rest) == name {
        return number::number(rest);
    }
    (TokenKind::Word, name)
}

fn after(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

fn name(rest: &str) -> usize {
    if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return 0;
    }
    number::run(rest, |b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `P1Y2M3DT4H5M6S`, `P3W` and `P0001-02-03T04:05:06`. Small letters make a name: `p1y`.
fn iso_duration(rest: &str) -> usize {
    let sign = usize::from(rest.starts_with('-'));
    let body = after(rest, sign);
    if !body.starts_with('P') {
        return 0;
    }
    let length = number::run(body, |b| b.is_ascii_digit() || b"PYMDTHSW-:".contains(&b));
    let text = after(body, 1).get(..length - 1).unwrap_or_default();
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let alternative = date.len() == 10
        && date.split('-').map(|part| number::digits(part) == part.len()).eq([true, true, true])
        && time
            .is_some_and(|t| t.split(':').map(|p| number::digits(p) == 2).eq([true, true, true]));
    let units = (!date.is_empty() || time.is_some())
        && (unit_run(date, b"YMD") || (time.is_none() && unit_run(date, b"W")))
        && time.is_none_or(|time| !time.is_empty() && unit_run(time, b"HMS"));
    if alternative || units { sign + length } else { 0 }
}

/// Whether a text is numbers, each followed by one of the units, the units in order and each at most once.
fn unit_run(mut text: &str, mut units: &[u8]) -> bool {
    while !text.is_empty() {
        let number = number::digits(text);
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
