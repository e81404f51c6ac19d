//! Tokens that begin with a digit, or with a dash and a digit: integers, floats, blobs, uuids, durations; and uuids that begin with a
//! letter.
//!
//! 1. Each of them is a small machine that takes a character or is dead.
//! 2. All take the text, character by character, until one is left. That one takes the rest alone: what it cannot take ends it, or breaks
//!    it if it was not whole.
//! 3. Where the next character leaves none, the first that is whole wins.

use super::token::{Expected, TokenKind};

/// Nothing is longer but digits, of which two machines are left.
const UUID: usize = 36;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Machine {
    Integer,
    Float(Float),
    /// The number of characters it has taken.
    Uuid(usize),
    Duration(Duration),
    Blob(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Float {
    Whole,
    Fraction,
    /// Behind `e`, or its sign.
    Exponent(bool),
    Power,
}

/// Units: `y mo w d h m s ms us µs ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duration {
    Number,
    /// Behind a letter that needs an `s`.
    Small,
    /// Behind `m`: `mo`, `ms`, or minutes.
    Minutes,
    Unit,
}

impl Machine {
    /// `None` if it cannot take the character; `rest` begins with it.
    fn take(self, c: char, rest: &str) -> Option<Machine> {
        match self {
            Machine::Integer => c.is_ascii_digit().then_some(self),
            Machine::Float(float) => float.take(c, rest).map(Machine::Float),
            Machine::Duration(duration) => duration.take(c).map(Machine::Duration),
            Machine::Blob(at) => {
                let fits = match at {
                    0 => c == '0',
                    1 => c.eq_ignore_ascii_case(&'x'),
                    _ => c.is_ascii_hexdigit(),
                };
                fits.then_some(Machine::Blob(at + 1))
            }
            Machine::Uuid(at) => {
                let fits = if is_dash(at) { c == '-' } else { c.is_ascii_hexdigit() };
                (fits && at < UUID).then_some(Machine::Uuid(at + 1))
            }
        }
    }

    fn whole(self) -> Option<TokenKind> {
        match self {
            Machine::Integer => Some(TokenKind::Integer),
            Machine::Float(Float::Fraction | Float::Power) => Some(TokenKind::Float),
            Machine::Duration(Duration::Minutes | Duration::Unit) => Some(TokenKind::Duration),
            Machine::Blob(2..) => Some(TokenKind::Blob),
            Machine::Uuid(UUID) => Some(TokenKind::Uuid),
            _ => None,
        }
    }

    fn expected(self) -> Expected {
        match self {
            Machine::Uuid(at) if is_dash(at) => Expected::Char('-'),
            Machine::Uuid(_) => Expected::Set,
            Machine::Float(Float::Exponent(_)) => Expected::Digit,
            Machine::Duration(Duration::Small) => Expected::Set,
            _ => Expected::Other,
        }
    }
}

impl Float {
    fn take(self, c: char, rest: &str) -> Option<Float> {
        // Two dots are a range, behind a whole number or behind one with its dot.
        let is_range = rest.starts_with("..") && !rest.starts_with("...");
        match (self, c) {
            (Float::Whole, '.') if !is_range => Some(Float::Fraction),
            (Float::Whole | Float::Fraction, 'e' | 'E') => Some(Float::Exponent(false)),
            (Float::Whole | Float::Fraction, '0'..='9') => Some(self),
            (Float::Exponent(false), '+' | '-') => Some(Float::Exponent(true)),
            (Float::Exponent(_) | Float::Power, '0'..='9') => Some(Float::Power),
            _ => None,
        }
    }
}

impl Duration {
    fn take(self, c: char) -> Option<Duration> {
        match (self, c.to_ascii_lowercase()) {
            (_, '0'..='9') if self != Duration::Small => Some(Duration::Number),
            (Duration::Number, 'y' | 'w' | 'd' | 'h' | 's') => Some(Duration::Unit),
            (Duration::Number, 'm') => Some(Duration::Minutes),
            (Duration::Number, 'u' | 'n' | 'µ' | 'μ') => Some(Duration::Small),
            (Duration::Minutes, 'o' | 's') | (Duration::Small, 's') => Some(Duration::Unit),
            _ => None,
        }
    }
}

fn is_dash(at: usize) -> bool {
    matches!(at, 8 | 13 | 18 | 23)
}

/// The machines that take the text so far: an array, because a number may have a million digits and each of them makes a new one.
type Alive = [Option<Machine>; 5];

/// Kind and length of the token.
pub(super) fn number(rest: &str) -> (TokenKind, usize) {
    let signed = rest.starts_with('-');
    let numeric = !rest.starts_with(|c: char| c.is_ascii_alphabetic());
    let mut alive: Alive = [
        numeric.then_some(Machine::Integer),
        numeric.then_some(Machine::Float(Float::Whole)),
        numeric.then_some(Machine::Duration(Duration::Number)),
        (!signed).then_some(Machine::Uuid(0)),
        (numeric && !signed).then_some(Machine::Blob(0)),
    ];
    for (at, c) in rest.char_indices().skip(usize::from(signed)) {
        let behind = rest.get(at..).unwrap_or_default();
        let next = alive.map(|machine| machine?.take(c, behind));
        if next.iter().all(Option::is_none) {
            return end(&alive, at);
        }
        alive = next;
    }
    end(&alive, rest.len())
}

fn end(alive: &Alive, length: usize) -> (TokenKind, usize) {
    let mut left = alive.iter().flatten();
    let whole = left.clone().find_map(|machine| machine.whole());
    let broken = match (left.next(), left.next()) {
        (Some(only), None) => only.expected(),
        _ => Expected::Other,
    };
    (whole.unwrap_or(TokenKind::Broken(broken)), length)
}

pub(super) fn run(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|b| belongs(*b)).count()
}

pub(super) fn digits(text: &str) -> usize {
    run(text, |b| b.is_ascii_digit())
}

pub(super) fn hexadecimal(text: &str) -> usize {
    run(text, |b| b.is_ascii_hexdigit())
}
