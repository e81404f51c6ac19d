//! Random changes of statements by their words, so that most of what comes out can be parsed.

use std::collections::BTreeSet;

use super::mutation::Mutator;

/// What stands at the edges of types and of the grammar.
const EDGES: [&str; 24] = [
    "-1",
    "0",
    "1",
    "127",
    "32768",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "1e400",
    "1E-400",
    "NaN",
    "-Infinity",
    "''",
    "null",
    "0x",
    "?",
    "[]",
    "{}",
    "()",
    "''''",
    "\"\"",
    "P1Y",
    "'\u{10ffff}'",
];
const REPEATS_MAX: usize = 200;
const LENGTH_MAX: usize = 8 << 10;

/// The words of known statements.
pub struct Words(Vec<String>);

impl Words {
    pub fn of<'a>(statements: impl Iterator<Item = &'a str>) -> Words {
        let words: BTreeSet<&str> = statements.flat_map(split).collect();
        Words(words.into_iter().filter(|word| word.len() < 64).map(str::to_owned).collect())
    }

    /// The first byte and what follows a zero, forms and values, stay.
    pub fn change(&self, input: &[u8], mutator: &mut Mutator) -> Vec<u8> {
        let Some((form, rest)) = input.split_first() else { return Vec::new() };
        let (text, values) = rest.split_at(rest.iter().position(|b| *b == 0).unwrap_or(rest.len()));
        let text = String::from_utf8_lossy(text);
        let mut words: Vec<&str> = split(&text).collect();
        for _ in 0..1 + mutator.below(3) {
            self.change_words(&mut words, mutator);
        }
        let mut text = words.concat();
        while text.len() > LENGTH_MAX {
            text.pop();
        }
        [&[*form], text.as_bytes(), values].concat()
    }

    fn change_words<'a>(&'a self, words: &mut Vec<&'a str>, mutator: &mut Mutator) {
        let at = mutator.below(words.len());
        let to = (at + 1 + mutator.below(8)).min(words.len());
        let choices = self.0.len();
        match mutator.below(9) {
            _ if words.is_empty() => {
                words.extend(self.0.get(mutator.below(choices)).map(String::as_str))
            }
            0 | 1 => words[at] = &self.0[mutator.below(choices)],
            2 => words
                .splice(at..at, [" ", self.0[mutator.below(choices)].as_str(), " "])
                .for_each(drop),
            3 => drop(words.drain(at..to)),
            4 => {
                let piece = words[at..to].to_vec();
                let other = mutator.below(words.len());
                words.splice(other..other, piece);
            }
            5 => {
                let piece = words[at..to].repeat(mutator.below(REPEATS_MAX));
                words.splice(at..at, piece);
            }
            6 => {
                let other = mutator.below(words.len());
                words.swap(at, other);
            }
            _ => words[at] = EDGES[mutator.below(EDGES.len())],
        }
    }
}

/// Names and numbers, quoted texts, single characters: nothing is left out.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |at| at + 2),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        rest = after;
        Some(word)
    })
}
