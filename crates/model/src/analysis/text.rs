//! What the options of a storage-attached index make of a text before it is indexed or compared: `case_sensitive`, `normalize`, `ascii`.
//!
//! In this order, as in Cassandra's `NonTokenizingAnalyzer`: lower case, normal form C, letters and signs folded to ASCII.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use unicode_normalization::{UnicodeNormalization, is_nfc};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextAnalysis {
    lower_case: bool,
    normalize: bool,
    ascii: bool,
}

/// A line for each text: the text, and the characters (or ranges of them) that are folded to it, as hexadecimal numbers. These are the
/// characters of Lucene's `ASCIIFoldingFilter`.
const FOLDING: &str = include_str!("ascii_folding.txt");

static FOLDED: LazyLock<HashMap<char, &'static str>> = LazyLock::new(|| {
    let mut folded = HashMap::new();
    for line in FOLDING.lines() {
        let mut words = line.split(' ');
        let Some(text) = words.next() else { continue };
        for range in words {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let code = |text| u32::from_str_radix(text, 16).unwrap_or_default();
            let characters = (code(first)..=code(last)).filter_map(char::from_u32);
            folded.extend(characters.map(|character| (character, text)));
        }
    }
    folded
});

impl TextAnalysis {
    /// `None`: texts stay as they are.
    pub fn of_options(options: &BTreeMap<String, String>) -> Option<TextAnalysis> {
        let flag = |name: &str, default: bool| {
            options.get(name).map_or(default, |value| value.eq_ignore_ascii_case("true"))
        };
        let analysis = TextAnalysis {
            lower_case: !flag("case_sensitive", true),
            normalize: flag("normalize", false),
            ascii: flag("ascii", false),
        };
        (analysis.lower_case || analysis.normalize || analysis.ascii).then_some(analysis)
    }

    /// Bytes that are not UTF-8 stay as they are.
    pub fn apply(self, text: &[u8]) -> Cow<'_, [u8]> {
        let Ok(text) = std::str::from_utf8(text) else { return Cow::Borrowed(text) };
        let mut analysed = Cow::Borrowed(text);
        if self.lower_case {
            analysed = Cow::Owned(analysed.to_lowercase());
        }
        if self.normalize && !is_nfc(&analysed) {
            analysed = Cow::Owned(analysed.nfc().collect());
        }
        if self.ascii && !analysed.is_ascii() {
            analysed = Cow::Owned(fold(&analysed));
        }
        match analysed {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }
    }
}

fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match FOLDED.get(&character) {
            Some(folded) => out.push_str(folded),
            None => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &[(&str, &str)], text: &str) -> String {
        let options = options.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let analysis = TextAnalysis::of_options(&options.collect()).expect("an analysis");
        String::from_utf8(analysis.apply(text.as_bytes()).into_owned()).expect("UTF-8")
    }

    #[test]
    fn options_change_texts() {
        let none = BTreeMap::from([("case_sensitive".to_owned(), "TRUE".to_owned())]);
        assert_eq!(TextAnalysis::of_options(&none), None);
        assert_eq!(of(&[("case_sensitive", "false")], "ÄbC ΑΣ"), "äbc ας");
        assert_eq!(of(&[("normalize", "true")], "e\u{301}X"), "\u{e9}X");
        assert_eq!(of(&[("ascii", "true")], "Ærøskøbing ß ﬄ — €"), "AEroskobing ss ffl - €");
        let all = [("case_sensitive", "false"), ("normalize", "true"), ("ascii", "True")];
        assert_eq!(of(&all, "E\u{301}A"), "ea");
    }
}
