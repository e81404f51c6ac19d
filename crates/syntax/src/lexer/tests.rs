//! `tests/data/tokens.txt`: a title (`# `), a text, `----`, and its tokens.

use std::path::Path;

use super::{Expected, TokenKind, tokens};

fn recorded() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tokens.txt");
    std::fs::read_to_string(path).expect("readable")
}

/// Proves that each text is cut as recorded: location, kind, text and value of every token.
#[test]
fn texts_are_cut_as_recorded() {
    for case in recorded().split("\n# ").map(|case| case.trim_start_matches("# ")) {
        let (title, rest) = case.split_once('\n').expect("a title");
        let (input, expected) = rest.split_once("\n----\n").expect("a text and its tokens");
        let lines = tokens(input);
        let lines = lines
            .iter()
            .map(|t| format!("{} {:?} {} = {}\n", t.location, t.kind, t.text, t.value()));
        assert_eq!(lines.collect::<String>().trim_end(), expected.trim_end(), "{title}");
    }
}

/// Proves that the lexer survives a text that begins anywhere.
#[test]
fn any_text_is_survived() {
    let text = recorded();
    for (cut, _) in text.char_indices() {
        let _ = tokens(&text[cut..]);
    }
}

#[test]
fn every_token_kind_is_recorded() {
    let text = recorded();
    for kind in [
        TokenKind::Word,
        TokenKind::QuotedName,
        TokenKind::String,
        TokenKind::Integer,
        TokenKind::Float,
        TokenKind::Blob,
        TokenKind::Uuid,
        TokenKind::Duration,
        TokenKind::Symbol,
        TokenKind::Unknown,
        TokenKind::Broken(Expected::Set),
        TokenKind::Unterminated,
        TokenKind::End,
    ] {
        assert!(text.contains(&format!(" {kind:?} ")), "{kind:?}");
    }
}
