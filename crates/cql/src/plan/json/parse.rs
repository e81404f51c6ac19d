//! Reads JSON as Cassandra's parser (Jackson) does, and complains in its words: clients show them.
//!
//! Text after the first value is ignored. Of equal names in an object the last value counts, at the position of the
//! first.

use std::collections::HashMap;
use std::fmt;

use num_bigint::BigInt;

use halcyon_model::value::double_to_string;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Boolean(bool),
    Integer(BigInt),
    Double(f64),
    String(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

impl Json {
    /// The Java class of the value.
    pub(super) fn class(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Boolean(_) => "Boolean",
            Json::Integer(number) if i32::try_from(number).is_ok() => "Integer",
            Json::Integer(number) if i64::try_from(number).is_ok() => "Long",
            Json::Integer(_) => "BigInteger",
            Json::Double(_) => "Double",
            Json::String(_) => "String",
            Json::List(_) => "ArrayList",
            Json::Map(_) => "LinkedHashMap",
        }
    }

    pub(super) fn package(&self) -> &'static str {
        match self {
            Json::Integer(_) if self.class() == "BigInteger" => "java.math",
            Json::List(_) | Json::Map(_) => "java.util",
            _ => "java.lang",
        }
    }
}

/// As Java shows it.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Boolean(value) => write!(f, "{value}"),
            Json::Integer(number) => write!(f, "{number}"),
            Json::Double(number) => f.write_str(&double_to_string(*number)),
            Json::String(text) => f.write_str(text),
            Json::List(items) => {
                let items: Vec<String> = items.iter().map(Json::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Json::Map(members) => {
                let members: Vec<String> =
                    members.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "{{{}}}", members.join(", "))
            }
        }
    }
}

/// A syntax error in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Malformed {
    /// The Java class of the complaint.
    pub class: &'static str,
    pub message: String,
}

const MALFORMED: &str = "com.fasterxml.jackson.core.JsonParseException";
const ENDED: &str = "com.fasterxml.jackson.core.io.JsonEOFException";
const MISMATCHED: &str = "com.fasterxml.jackson.databind.exc.MismatchedInputException";
const SOURCE: &str =
    "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line:";
const WANTED: &str = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')";

const CONSTRAINED: &str = "com.fasterxml.jackson.core.exc.StreamConstraintsException";

/// Digits of the longest number that is read, its exponent's included.
const MAX_DIGITS: usize = 1000;

/// Deepest nesting that is read.
const MAX_NESTING: usize = 1000;

type Result<T> = std::result::Result<T, Malformed>;

struct Reader {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

/// The first value of a text.
pub(super) fn parse(text: &str) -> Result<Json> {
    let mut reader = Reader { chars: text.chars().collect(), at: 0, depth: 0 };
    reader.skip_blanks();
    let Some(first) = reader.peek() else {
        let lines = reader.chars.iter().filter(|c| **c == '\n').count() + 1;
        let message = format!("No content to map due to end-of-input\n at {SOURCE} {lines}]");
        return Err(Malformed { class: MISMATCHED, message });
    };
    if first == '}' || first == ']' {
        let what = if first == '}' { "Object" } else { "Array" };
        let message = format!("Unexpected close marker '{first}': no open {what} to close");
        return Err(reader.malformed(&message, reader.at));
    }
    let value = reader.value()?;
    if matches!(value, Json::Integer(_) | Json::Double(_))
        && let Some(next) = reader.peek().filter(|c| !is_blank(*c))
    {
        let why = format!("{}: Expected space separating root-level values", unexpected(next));
        return Err(reader.malformed(&why, reader.at));
    }
    Ok(value)
}

/// The members of the object that a text must be; `None` is null.
pub(super) fn parse_object(text: &str) -> Result<Option<Vec<(String, Json)>>> {
    let start = text.chars().take_while(|c| is_blank(*c)).count();
    let token = match parse(text)? {
        Json::Null => return Ok(None),
        Json::Map(members) => return Ok(Some(members)),
        Json::String(text) => {
            let why = format!(
                "Cannot construct instance of `java.util.LinkedHashMap` (although at least one Creator exists): no \
                 String-argument constructor/factory method to deserialize from String value ('{text}')"
            );
            return Err(mismatched(&why, start));
        }
        Json::Boolean(true) => ("Boolean", "VALUE_TRUE"),
        Json::Boolean(false) => ("Boolean", "VALUE_FALSE"),
        Json::Integer(_) => ("Integer", "VALUE_NUMBER_INT"),
        Json::Double(_) => ("Floating-point", "VALUE_NUMBER_FLOAT"),
        Json::List(_) => ("Array", "START_ARRAY"),
    };
    let why = format!(
        "Cannot deserialize value of type `java.util.LinkedHashMap<java.lang.Object,java.lang.Object>` from {} value \
         (token `JsonToken.{}`)",
        token.0, token.1
    );
    Err(mismatched(&why, start))
}

fn mismatched(why: &str, at: usize) -> Malformed {
    Malformed { class: MISMATCHED, message: format!("{why}\n at {SOURCE} 1, column: {}]", at + 1) }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn unexpected(c: char) -> String {
    let code = u32::from(c);
    match c {
        c if c < ' ' => format!("Unexpected character ((CTRL-CHAR, code {code}))"),
        c if code > 255 => format!("Unexpected character ('{c}' (code {code} / 0x{code:04x}))"),
        c => format!("Unexpected character ('{c}' (code {code}))"),
    }
}

/// The characters of an invalid word.
fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
    }

    fn location(&self, at: usize) -> String {
        let before = self.chars.get(..at).unwrap_or(&self.chars);
        let line = before.iter().filter(|c| **c == '\n').count() + 1;
        let column = before.iter().rev().take_while(|c| **c != '\n').count() + 1;
        format!("{SOURCE} {line}, column: {column}]")
    }

    fn malformed(&self, why: &str, at: usize) -> Malformed {
        Malformed { class: MALFORMED, message: format!("{why}\n at {}", self.location(at)) }
    }

    fn ended(&self, why: &str) -> Malformed {
        let place = self.location(self.chars.len());
        let message = format!("Unexpected end-of-input: {why}\n at {place}");
        Malformed { class: ENDED, message }
    }

    /// The end of the text within what began at `start`.
    fn ended_in(&self, what: &str, start: usize) -> Malformed {
        let start = self.location(start);
        self.ended(&format!("expected close marker for {what} (start marker at {start})"))
    }

    fn refuse<T>(&self, c: char, why: &str) -> Result<T> {
        Err(self.malformed(&format!("{}: {why}", unexpected(c)), self.at))
    }

    fn value(&mut self) -> Result<Json> {
        let Some(first) = self.peek() else { return Err(self.ended("expected a value")) };
        match first {
            '{' | '[' => self.nested(first),
            '"' => Ok(Json::String(self.string("string value")?)),
            '-' | '0'..='9' => self.number(),
            't' => self.word("true", Json::Boolean(true)),
            'f' => self.word("false", Json::Boolean(false)),
            'n' => self.word("null", Json::Null),
            '+' => {
                let next = self.chars.get(self.at + 1).copied();
                if !next.is_some_and(|next| next.is_ascii_digit()) {
                    return self.refuse(first, &format!("expected a valid value {WANTED}"));
                }
                let why = format!(
                    "{} in numeric value: JSON spec does not allow numbers to have plus signs: enable \
                     `JsonReadFeature.ALLOW_LEADING_PLUS_SIGN_FOR_NUMBERS` to allow",
                    unexpected('+')
                );
                Err(self.malformed(&why, self.at + 1))
            }
            '/' => self.refuse(
                first,
                "maybe a (non-standard) comment? (not recognized as one since Feature 'ALLOW_COMMENTS' not enabled for \
                 parser)",
            ),
            c if c.is_alphabetic() || c == '_' || c == '$' => Err(self.unknown_word(self.at)),
            c => self.refuse(c, &format!("expected a valid value {WANTED}")),
        }
    }

    fn nested(&mut self, first: char) -> Result<Json> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let why = format!(
                "Document nesting depth ({}) exceeds the maximum allowed ({MAX_NESTING}, from \
                 `StreamReadConstraints.getMaxNestingDepth()`)",
                self.depth
            );
            return Err(Malformed {
                class: "com.fasterxml.jackson.core.exc.StreamConstraintsException",
                message: why,
            });
        }
        let value = if first == '{' { self.object() } else { self.array() };
        self.depth -= 1;
        value
    }

    fn unknown_word(&self, start: usize) -> Malformed {
        let rest = self.chars.get(start..).unwrap_or_default();
        let word: String = rest.iter().take_while(|c| is_word_part(**c)).collect();
        let end = start + word.chars().count();
        if matches!(word.as_str(), "NaN" | "Infinity" | "INF") {
            let why = format!(
                "Non-standard token '{word}': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow"
            );
            return self.malformed(&why, end);
        }
        self.malformed(&format!("Unrecognized token '{word}': was expecting {WANTED}"), end)
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json> {
        let end = self.at + word.len();
        let found = self.chars.get(self.at..end).unwrap_or_default();
        let same = found.iter().copied().eq(word.chars());
        if !same || self.chars.get(end).copied().is_some_and(is_word_part) {
            return Err(self.unknown_word(self.at));
        }
        self.at = end;
        Ok(value)
    }

    fn array(&mut self) -> Result<Json> {
        let start = self.at;
        self.at += 1;
        let mut items = Vec::new();
        self.skip_blanks();
        if self.close(']', "Array", start)? {
            return Ok(Json::List(items));
        }
        loop {
            if self.peek().is_none() {
                return Err(self.ended_in("Array", start));
            }
            items.push(self.value()?);
            self.skip_blanks();
            if self.close(']', "Array", start)? {
                return Ok(Json::List(items));
            }
            self.comma("Array", start)?;
        }
    }

    fn object(&mut self) -> Result<Json> {
        let start = self.at;
        self.at += 1;
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut places = HashMap::new();
        self.skip_blanks();
        if self.close('}', "Object", start)? {
            return Ok(Json::Map(members));
        }
        loop {
            match self.peek() {
                None => return Err(self.ended_in("Object", start)),
                Some('"') => {}
                Some(c) => return self.refuse(c, "was expecting double-quote to start field name"),
            }
            let name = self.string("field name")?;
            self.skip_blanks();
            match self.peek() {
                Some(':') => self.at += 1,
                None => return Err(self.ended_in("Object", start)),
                Some(c) => {
                    return self
                        .refuse(c, "was expecting a colon to separate field name and value");
                }
            }
            self.skip_blanks();
            if self.peek().is_none() {
                return Err(self.ended_in("Object", start));
            }
            let value = self.value()?;
            match places.get(&name).and_then(|place: &usize| members.get_mut(*place)) {
                Some((_, known)) => *known = value,
                None => {
                    places.insert(name.clone(), members.len());
                    members.push((name, value));
                }
            }
            self.skip_blanks();
            if self.close('}', "Object", start)? {
                return Ok(Json::Map(members));
            }
            self.comma("Object", start)?;
        }
    }

    /// Whether the object or array ends here; a wrong end is refused.
    fn close(&mut self, marker: char, what: &str, start: usize) -> Result<bool> {
        match self.peek() {
            None => Err(self.ended_in(what, start)),
            Some(c) if c == marker => {
                self.at += 1;
                Ok(true)
            }
            Some(c @ ('}' | ']')) => {
                let place = self.location(start);
                let why = format!(
                    "Unexpected close marker '{c}': expected '{marker}' (for {what} starting at {place})"
                );
                Err(self.malformed(&why, self.at))
            }
            Some(_) => Ok(false),
        }
    }

    fn comma(&mut self, what: &str, start: usize) -> Result<()> {
        match self.peek() {
            Some(',') => self.at += 1,
            None => return Err(self.ended_in(what, start)),
            Some(c) => {
                return self.refuse(c, &format!("was expecting comma to separate {what} entries"));
            }
        }
        self.skip_blanks();
        Ok(())
    }

    fn string(&mut self, what: &str) -> Result<String> {
        let ended = |reader: &Reader| {
            let of = if what == "field name" {
                "in field name".to_owned()
            } else {
                format!("was expecting closing quote for a {what}")
            };
            reader.ended(&of)
        };
        self.at += 1;
        let mut units: Vec<u16> = Vec::new();
        loop {
            let Some(c) = self.peek() else { return Err(ended(self)) };
            match c {
                '"' => {
                    self.at += 1;
                    // Java writes half a pair as a question mark.
                    let chars = char::decode_utf16(units);
                    return Ok(chars.map(|c| c.unwrap_or('?')).collect());
                }
                '\\' => {
                    self.at += 1;
                    let unit = self.escaped()?;
                    units.push(unit);
                }
                c if c < ' ' => {
                    let why = format!(
                        "Illegal unquoted character ((CTRL-CHAR, code {})): has to be escaped using backslash to be \
                         included in {what}",
                        u32::from(c)
                    );
                    return Err(self.malformed(&why, self.at));
                }
                c => {
                    self.at += 1;
                    units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                }
            }
        }
    }

    /// What follows a backslash.
    fn escaped(&mut self) -> Result<u16> {
        let Some(c) = self.peek() else {
            return Err(self.ended("in character escape sequence"));
        };
        let unit = match c {
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                self.at += 1;
                return self.hexadecimal();
            }
            c => {
                let why = format!("Unrecognized character escape '{c}' (code {})", u32::from(c));
                return Err(self.malformed(&why, self.at));
            }
        };
        self.at += 1;
        Ok(u16::try_from(u32::from(unit)).unwrap_or_default())
    }

    fn hexadecimal(&mut self) -> Result<u16> {
        let mut unit = 0_u32;
        for _ in 0..4 {
            let Some(c) = self.peek() else {
                return Err(self.ended("in character escape sequence"));
            };
            let Some(digit) = c.to_digit(16) else {
                return self.refuse(c, "expected a hex-digit for character escape sequence");
            };
            unit = unit << 4 | digit;
            self.at += 1;
        }
        Ok(u16::try_from(unit).unwrap_or_default())
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Json> {
        let start = self.at;
        if self.peek() == Some('-') {
            self.at += 1;
        }
        let first = self.at;
        if self.digits() == 0 {
            let why = "expected digit (0-9) to follow minus sign, for valid numeric value";
            return match self.peek() {
                Some(c) => self.not_in_number(c, why, self.at),
                None => Err(self.ended(why)),
            };
        }
        if self.chars.get(first) == Some(&'0') && self.at > first + 1 {
            let why = "Invalid numeric value: Leading zeroes not allowed";
            return Err(self.malformed(why, first + 1));
        }
        let mut whole = true;
        if self.peek() == Some('.') {
            whole = false;
            self.at += 1;
            if self.digits() == 0 {
                let why = "Decimal point not followed by a digit";
                return match self.peek() {
                    Some(c) => self.not_in_number(c, why, self.at - 1),
                    None => Err(self.ended(why)),
                };
            }
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            whole = false;
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                let why = "Exponent indicator not followed by a digit";
                return match self.peek() {
                    Some(c) => self.not_in_number(c, why, self.at - 1),
                    None => Err(self.ended(why)),
                };
            }
        }
        let text: String = self.chars.get(start..self.at).unwrap_or_default().iter().collect();
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        // A floating number alone is not checked there.
        if digits > MAX_DIGITS && (whole || self.depth > 0) {
            let message = format!(
                "Number value length ({digits}) exceeds the maximum allowed ({MAX_DIGITS}, from \
                 `StreamReadConstraints.getMaxNumberLength()`)"
            );
            return Err(Malformed { class: CONSTRAINED, message });
        }
        let integer = text.parse::<BigInt>().ok().filter(|_| whole).map(Json::Integer);
        Ok(integer.unwrap_or_else(|| Json::Double(text.parse().unwrap_or(f64::NAN))))
    }

    fn not_in_number<T>(&self, c: char, why: &str, at: usize) -> Result<T> {
        Err(self.malformed(&format!("{} in numeric value: {why}", unexpected(c)), at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves Jackson's bound on the length of numbers, without which one number could take minutes to read.
    #[test]
    fn long_numbers_are_refused() {
        let long = |digits: usize| "1".repeat(digits);
        let refused = |text: String, length: usize| {
            let malformed = parse(&text).expect_err("too long");
            assert_eq!(
                (malformed.class, malformed.message),
                (
                    CONSTRAINED,
                    format!(
                        "Number value length ({length}) exceeds the maximum allowed (1000, from `StreamReadConstraints.getMaxNumberLength()`)"
                    )
                )
            );
        };
        for read in [
            long(1000),
            format!("-{}", long(1000)),
            format!("[1.{}]", long(999)),
            format!("1.{}", long(1000)),
        ] {
            assert!(parse(&read).is_ok(), "{read}");
        }
        refused(long(1001), 1001);
        refused(format!("[-{}]", long(1001)), 1001);
        refused(format!("{{\"k\": 1.{}}}", long(1000)), 1001);
        refused(format!("[1e{}1]", "0".repeat(999)), 1001);
    }
}
