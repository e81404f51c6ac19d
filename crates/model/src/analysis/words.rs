//! The words of a text: Unicode Standard Annex 29, as Lucene's `StandardTokenizer` applies it.
//!
//! Beyond the annex, neighbouring letters of scripts that write no spaces between words (Thai, Khmer and others) are one word. A piece
//! without letters and digits is not a word.

use unicode_segmentation::UnicodeSegmentation;

/// Longer ones are left out, in UTF-16 units.
const LONGEST: usize = 255;

/// Letters and marks of South East Asia (line break class SA), in order.
const WITHOUT_SPACES: [(u32, u32); 19] = [
    (0x0e01, 0x0e3a),
    (0x0e40, 0x0e4e),
    (0x0e80, 0x0ecf),
    (0x0edc, 0x0edf),
    (0x1000, 0x103f),
    (0x1050, 0x108f),
    (0x109a, 0x109f),
    (0x1780, 0x17d3),
    (0x17d7, 0x17d7),
    (0x17dc, 0x17dd),
    (0x1950, 0x1974),
    (0x1980, 0x19ab),
    (0x19b0, 0x19c9),
    (0x19de, 0x19df),
    (0x1a20, 0x1a5e),
    (0x1a60, 0x1a7c),
    (0x1aa0, 0x1aad),
    (0xaa60, 0xaac2),
    (0xaadb, 0xaadf),
];

/// Shows the words one by one, as long as `see` says so.
pub(super) fn each_word<'t>(text: &'t str, mut see: impl FnMut(&'t str) -> bool) {
    let mut see = |word: &'t str| word.encode_utf16().nth(LONGEST).is_some() || see(word);
    // Where a run of letters without spaces began and ends.
    let mut run: Option<(usize, usize)> = None;
    let of_run = |(start, end): (usize, usize)| text.get(start..end);
    for (at, segment) in text.split_word_bound_indices() {
        if segment.chars().next().is_some_and(is_without_spaces) {
            let end = at + segment.len();
            run = Some(run.map_or((at, end), |(start, _)| (start, end)));
            continue;
        }
        if let Some(word) = run.take().and_then(of_run)
            && !see(word)
        {
            return;
        }
        if segment.chars().any(is_of_words) && !see(segment) {
            return;
        }
    }
    if let Some(word) = run.take().and_then(of_run) {
        see(word);
    }
}

fn is_without_spaces(character: char) -> bool {
    let code = u32::from(character);
    let behind = WITHOUT_SPACES.partition_point(|(first, _)| *first <= code);
    let range = behind.checked_sub(1).and_then(|at| WITHOUT_SPACES.get(at));
    range.is_some_and(|(_, last)| code <= *last)
}

/// A letter or decimal digit. By the annex, other numbers (superscripts, fractions) do not join a letter before them, and marks do not join
/// one behind them.
fn is_of_words(character: char) -> bool {
    if character.is_ascii() || !character.is_alphanumeric() {
        return character.is_alphanumeric();
    }
    let is_one = |text: [char; 2]| String::from_iter(text).split_word_bounds().count() == 1;
    match is_one(['a', character]) {
        true => is_one([character, 'a']),
        false => character.is_alphabetic(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        each_word(text, |word| {
            words.push(word);
            true
        });
        words
    }

    /// Proves where words begin and end; each list is what Cassandra's index has of the text.
    #[test]
    fn texts_have_words() {
        let cases: [(&str, &[&str]); 9] = [
            (
                "The quick, brown-fox can't jump 32.3 feet; right?",
                &["The", "quick", "brown", "fox", "can't", "jump", "32.3", "feet", "right"],
            ),
            (
                "snake_case __ x_1 1,234.5 a.b.c e.g.",
                &["snake_case", "x_1", "1,234.5", "a.b.c", "e.g"],
            ),
            ("x² ½ ① 3€ ٣", &["x", "3", "٣"]),
            ("漢字かな交じりカタカナ", &["漢", "字", "か", "な", "交", "じ", "り", "カタカナ"]),
            ("\u{93a}x \u{301}", &["x"]),
            ("한국어 단어", &["한국어", "단어"]),
            ("ภาษาไทย abc", &["ภาษาไทย", "abc"]),
            ("👍 🇩🇪 ok", &["ok"]),
            (" .,;", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text), expected, "{text}");
        }
        let long = "x".repeat(LONGEST);
        assert_eq!(words(&format!("{long} {long}x a")), [long.as_str(), "a"]);
    }
}
