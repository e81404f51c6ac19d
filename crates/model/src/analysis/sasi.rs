//! What the options of a SASI index mean: `IndexMode`, and the analyzers that make terms of a value.
//!
//! The terms decide which rows match: those of what is asked are compared with those of the row's value. A value that is not literal is
//! compared as its type compares.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::memmem;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::words::each_word;
use crate::CqlType;
use crate::options::hash_order;

const ANALYZERS: &str = "org.apache.cassandra.index.sasi.analyzer";

/// What an index of SASI can be asked for, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sasi {
    pub mode: Mode,
    /// Terms are compared as bytes, and LIKE can be asked.
    pub is_literal: bool,
    pub analyzer: Analyzer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Prefix,
    Contains,
    Sparse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Analyzer {
    /// `NoOpAnalyzer`: the value is the term.
    Whole,
    /// `NonTokenizingAnalyzer`
    Text(Case),
    /// `StandardAnalyzer`
    Words(Case),
    /// `DelimiterAnalyzer`
    Delimited(char),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Kept,
    Lower,
    Upper,
}

/// How a term of a value has to be like one that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    Equal,
    /// LIKE without a wildcard.
    Whole,
    Prefix,
    Suffix,
    Contains,
}

/// Why options cannot be those of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SasiRefusal {
    /// Cassandra refuses them too.
    Invalid(String),
    /// Cassandra refuses them when it has already made the index.
    Unusable(String),
    NotSupported(String),
}

type Options = BTreeMap<String, String>;
type Refused<T> = Result<T, SasiRefusal>;

fn invalid<T>(what: String) -> Refused<T> {
    Err(SasiRefusal::Invalid(what))
}

fn flag(options: &Options, name: &str) -> bool {
    options.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

impl Sasi {
    /// `column`: the type of the indexed column. One in descending order is not a text.
    pub fn of_options(options: &Options, column: &CqlType) -> Refused<Sasi> {
        let is_text = is_text(column);
        let class = options.get("analyzer_class").map(|class| check_class(class, options, column));
        let class = class.transpose()?;
        let mode = options.get("mode").map_or("PREFIX", String::as_str);
        let mode = match mode.to_uppercase().as_str() {
            "PREFIX" => Mode::Prefix,
            "CONTAINS" => Mode::Contains,
            "SPARSE" => Mode::Sparse,
            _ => return invalid(format!("Incorrect index mode: {mode}")),
        };
        let memory = options.get("max_compaction_flush_memory_in_mb");
        if memory.is_some_and(|text| text.parse::<i64>().is_err()) {
            return invalid(unparsable(options));
        }
        let is_analyzed = match options.get("analyzed") {
            Some(_) => flag(options, "analyzed"),
            None => class.is_some(),
        };
        let is_literal = match options.get("is_literal") {
            Some(_) => flag(options, "is_literal"),
            None => is_text,
        };
        if mode == Mode::Sparse && is_literal {
            return invalid("SPARSE mode is only supported on non-literal columns.".into());
        }
        if mode == Mode::Sparse && is_analyzed {
            return invalid("SPARSE mode doesn't support analyzers.".into());
        }
        let analyzer = match class {
            _ if !is_analyzed => Analyzer::Whole,
            Some(class) => analyzer(class, options)?,
            None if is_text => analyzer("StandardAnalyzer", options)?,
            None => Analyzer::Whole,
        };
        Ok(Sasi { mode, is_literal, analyzer })
    }

    pub fn is_tokenized(&self) -> bool {
        matches!(self.analyzer, Analyzer::Words(_) | Analyzer::Delimited(_))
    }

    /// `ColumnIndex.supports`, of equality and LIKE.
    pub fn matches(&self, how: Matching) -> bool {
        let is_contains = self.mode == Mode::Contains;
        match how {
            Matching::Equal => !self.is_tokenized(),
            Matching::Whole => self.mode != Mode::Sparse,
            Matching::Prefix => self.mode == Mode::Prefix || is_contains && !self.is_tokenized(),
            Matching::Suffix | Matching::Contains => is_contains,
        }
    }

    pub fn has_ranges(&self) -> bool {
        !self.is_literal && self.mode != Mode::Contains
    }

    /// Shows the terms of a value one by one, as long as `see` says so: a text has very many. Cassandra's index has no empty ones; here a
    /// row with an empty text is found as a scan finds it.
    pub fn each_term(&self, value: &[u8], mut see: impl FnMut(&[u8]) -> bool) {
        let text = || String::from_utf8_lossy(value);
        match self.analyzer {
            Analyzer::Whole => {
                see(value);
            }
            Analyzer::Text(case) => {
                see(&case.of(&text()));
            }
            Analyzer::Words(case) => each_word(&text(), |word| see(&case.of(word))),
            Analyzer::Delimited(delimiter) => {
                let text = text();
                let mut parts = text.split(delimiter).filter(|part| !part.is_empty());
                parts.all(|part| see(part.as_bytes()));
            }
        }
    }

    /// The terms of what is asked for.
    pub fn terms(&self, value: &[u8]) -> Vec<Vec<u8>> {
        let mut terms = Vec::new();
        self.each_term(value, |term| {
            terms.push(term.to_vec());
            true
        });
        terms
    }
}

impl Case {
    /// In normal form C.
    fn of(self, text: &str) -> Cow<'_, [u8]> {
        let text = match self {
            Case::Kept => Cow::Borrowed(text),
            Case::Lower => Cow::Owned(text.to_lowercase()),
            Case::Upper => Cow::Owned(text.to_uppercase()),
        };
        let text = if is_nfc(&text) { text } else { Cow::Owned(text.nfc().collect()) };
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }
    }
}

impl Matching {
    /// Whether a term is as it is asked for. The type compares terms that have to be equal.
    pub fn accepts(self, cql_type: &CqlType, term: &[u8], asked: &[u8]) -> bool {
        match self {
            Matching::Equal | Matching::Whole => cql_type.compare(term, asked).is_eq(),
            Matching::Prefix => term.starts_with(asked),
            Matching::Suffix => term.ends_with(asked),
            Matching::Contains => memmem::find(term, asked).is_some(),
        }
    }
}

fn is_text(column: &CqlType) -> bool {
    matches!(column, CqlType::Text | CqlType::Ascii)
}

/// The simple name of an analyzer's class, if it exists and takes the column (`IndexMode.validateAnalyzer`).
fn check_class<'a>(class: &'a str, options: &Options, column: &CqlType) -> Refused<&'a str> {
    let simple = class.strip_prefix(ANALYZERS).and_then(|rest| rest.strip_prefix('.'));
    let texts_only = match simple {
        Some("NoOpAnalyzer") => false,
        Some("NonTokenizingAnalyzer" | "StandardAnalyzer" | "DelimiterAnalyzer") => true,
        Some("AbstractAnalyzer") => {
            let what = "Unable to initialize analyzer class option specified [AbstractAnalyzer]";
            return invalid(what.to_owned());
        }
        _ => return invalid(format!("Unable to find analyzer class '{class}'")),
    };
    let simple = simple.unwrap_or_default();
    if texts_only && !is_text(column) {
        return invalid(format!("{simple} does not support type {}", column.cql_name()));
    }
    let has = |name: &str| options.contains_key(name);
    if simple == "NonTokenizingAnalyzer"
        && has("case_sensitive")
        && (has("normalize_lowercase") || has("normalize_uppercase"))
    {
        return invalid(
            "case_sensitive option cannot be specified together with either normalize_lowercase or normalize_uppercase"
                .to_owned(),
        );
    }
    Ok(simple)
}

/// In the order of a Java map.
fn unparsable(options: &Options) -> String {
    let mut names: Vec<&str> = options.keys().map(String::as_str).collect();
    hash_order(&mut names, options.len());
    let pair = |name| format!("{name}={}", options.get(name).map_or("", String::as_str));
    let pairs: Vec<String> = names.into_iter().map(pair).collect();
    format!("Failed to validate custom indexer options: {{{}}}", pairs.join(", "))
}

fn analyzer(class: &str, options: &Options) -> Refused<Analyzer> {
    match class {
        "NonTokenizingAnalyzer" => {
            let case = case(options, ["normalize_lowercase", "normalize_uppercase"])?;
            let is_insensitive =
                options.contains_key("case_sensitive") && !flag(options, "case_sensitive");
            Ok(Analyzer::Text(if is_insensitive { Case::Lower } else { case }))
        }
        "StandardAnalyzer" => {
            check_language(options)?;
            let names = ["tokenization_normalize_lowercase", "tokenization_normalize_uppercase"];
            case(options, names).map(Analyzer::Words)
        }
        "DelimiterAnalyzer" => {
            let delimiter = options.get("delimiter").map_or(",", String::as_str);
            let mut units = delimiter.chars();
            match (units.next(), units.next()) {
                (Some(only), None) if only.len_utf16() == 1 => Ok(Analyzer::Delimited(only)),
                _ => Err(SasiRefusal::Unusable(format!(
                    "Only single character delimiters supported, was {delimiter}"
                ))),
            }
        }
        _ => Ok(Analyzer::Whole),
    }
}

fn case(options: &Options, [lower, upper]: [&str; 2]) -> Refused<Case> {
    match (flag(options, lower), flag(options, upper)) {
        (true, true) => Err(SasiRefusal::Unusable(
            "Options to normalize terms cannot be both uppercase and lowercase at the same time"
                .to_owned(),
        )),
        (true, false) => Ok(Case::Lower),
        (false, true) => Ok(Case::Upper),
        (false, false) => Ok(Case::Kept),
    }
}

/// Languages whose words Cassandra stems, and those of which it skips words.
const STEMMED: [&str; 15] =
    ["da", "de", "en", "es", "fl", "fr", "hu", "it", "nl", "no", "pt", "ro", "ru", "sv", "tr"];
const WITH_STOP_WORDS: [&str; 16] = [
    "ar", "bg", "cs", "de", "en", "es", "fi", "fr", "hi", "hu", "it", "pl", "pt", "ro", "ru", "sv",
];

/// Stemming and stop words have an effect in the languages that Cassandra knows, if a locale is stated.
fn check_language(options: &Options) -> Refused<()> {
    let Some(locale) = options.get("tokenization_locale") else { return Ok(()) };
    for (name, languages) in [
        ("tokenization_enable_stemming", STEMMED.as_slice()),
        ("tokenization_skip_stop_words", WITH_STOP_WORDS.as_slice()),
    ] {
        if !flag(options, name) {
            continue;
        }
        let locale = locale.to_lowercase();
        let Some(language) = locale.get(..2) else {
            return Err(SasiRefusal::Unusable(format!("{name} needs a language, was '{locale}'")));
        };
        if languages.contains(&language) {
            return Err(SasiRefusal::NotSupported(format!("{name} for the language '{language}'")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &[(&str, &str)], column: CqlType) -> Refused<Sasi> {
        let full = |name: &str, value: &str| match name {
            "analyzer_class" => format!("{ANALYZERS}.{value}"),
            _ => value.to_owned(),
        };
        let options = options.iter().map(|(name, value)| ((*name).into(), full(name, value)));
        Sasi::of_options(&options.collect(), &column)
    }

    fn terms(options: &[(&str, &str)], text: &str) -> Vec<String> {
        let sasi = of(options, CqlType::Text).expect("options");
        let terms = sasi.terms(text.as_bytes());
        terms.iter().map(|term| String::from_utf8_lossy(term).into_owned()).collect()
    }

    /// Proves what analyzers make of texts.
    #[test]
    fn analyzers_make_terms() {
        assert_eq!(terms(&[], "Some Text"), ["Some Text"]);
        assert_eq!(terms(&[("analyzed", "true")], "Some text, more"), ["Some", "text", "more"]);
        let class = ("analyzer_class", "NonTokenizingAnalyzer");
        assert_eq!(terms(&[class, ("analyzed", "false")], "Ab"), ["Ab"]);
        assert_eq!(terms(&[class, ("case_sensitive", "false")], "E\u{301}A"), ["éa"]);
        assert_eq!(terms(&[class, ("normalize_uppercase", "true")], "ab"), ["AB"]);
        let class = ("analyzer_class", "DelimiterAnalyzer");
        assert_eq!(terms(&[class], "a,,b c,"), ["a", "b c"]);
        assert_eq!(terms(&[class, ("delimiter", " ")], "a b"), ["a", "b"]);
        let class = ("analyzer_class", "StandardAnalyzer");
        let lower = ("tokenization_normalize_lowercase", "true");
        assert_eq!(terms(&[class, lower], "A b."), ["a", "b"]);
        assert_eq!(terms(&[], ""), [""]);
        assert!(terms(&[("analyzed", "true")], " - ").is_empty());
    }

    /// Proves what an index is asked, by mode, analyzer and type.
    #[test]
    fn modes_support() {
        let all = [Matching::Equal, Matching::Whole, Matching::Prefix, Matching::Suffix];
        let of = |options: &[(&str, &str)], column| {
            let sasi = of(options, column).expect("options");
            (all.map(|how| sasi.matches(how)), sasi.has_ranges(), sasi.is_literal)
        };
        let (text, int) = (CqlType::Text, CqlType::Int);
        let reversed = CqlType::Reversed(Box::new(CqlType::Text));
        assert_eq!(of(&[], text.clone()), ([true, true, true, false], false, true));
        assert_eq!(of(&[], reversed), ([true, true, true, false], true, false));
        let contains = ("mode", "contains");
        assert_eq!(of(&[contains], text.clone()), ([true; 4], false, true));
        let words = [contains, ("analyzed", "true")];
        assert_eq!(of(&words, text), ([false, true, false, true], false, true));
        let sparse = [("mode", "SPARSE")];
        assert_eq!(of(&sparse, int), ([true, false, false, false], true, false));
    }

    /// Proves that languages which need tables that are not here are refused, and that without a language nothing is stemmed.
    #[test]
    fn languages_are_refused() {
        let stemming = [("analyzed", "true"), ("tokenization_enable_stemming", "true")];
        assert!(of(&stemming, CqlType::Text).is_ok());
        let with = |locale| [stemming.as_slice(), &[("tokenization_locale", locale)]].concat();
        assert!(of(&with("xx"), CqlType::Text).is_ok());
        let refused = of(&with("en_US"), CqlType::Text);
        assert!(matches!(refused, Err(SasiRefusal::NotSupported(_))), "{refused:?}");
    }
}
