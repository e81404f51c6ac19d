//! The parser's errors, compared with the recorded errors of Cassandra 5.0.9 for the same texts.

use std::path::Path;

use super::parse_statement;
use crate::ast::StatementKind;

/// `tests/data/*.txt`: a text, `----`, and Cassandra's error (2000 is a syntax error; what else it says, it says
/// after it has parsed the text), ended by `====`.
fn recorded(name: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let text = std::fs::read_to_string(path).expect("readable");
    let cases = text.split("\n====\n").filter(|case| !case.is_empty());
    let halves = cases.map(|case| case.split_once("\n----\n").expect("text and answer"));
    halves.map(|(text, answer)| (text.to_owned(), answer.to_owned())).collect()
}

/// Proves that errors are Cassandra's, word for word.
#[test]
fn syntax_errors_are_cassandras() {
    let mut wrong = Vec::new();
    for (text, expected) in recorded("syntax.txt").into_iter().chain(recorded("grammar.txt")) {
        let found = match parse_statement(&text) {
            Ok(_) => "accepted".to_owned(),
            Err(error) => error.to_string(),
        };
        let expected = expected.strip_prefix("2000 ").unwrap_or("accepted");
        if found != expected {
            wrong.push(format!("{text:?}\n  Cassandra: {expected}\n  here:      {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Proves that the timeout of drivers that see shards is taken where it can only be one.
#[test]
fn a_timeout_is_read() {
    let timed =
        parse_statement("SELECT * FROM system.local WHERE key='local' USING TIMEOUT 2000ms");
    let StatementKind::Select(select) = timed.expect("CQL").kind else { panic!("a SELECT") };
    assert_eq!(select.timeout.as_deref(), Some("2000ms"));
    assert!(parse_statement("SELECT * FROM t USING TIMEOUT 2000").is_err());
}

/// Proves that no text, however it is cut or nested, makes the parser panic, run away or exhaust the stack.
#[test]
fn any_text_is_survived() {
    for (text, _) in recorded("grammar.txt") {
        for (cut, _) in text.char_indices() {
            let _ = parse_statement(&text[..cut]);
            let _ = parse_statement(&text[cut..]);
        }
    }
    let bombs = [
        "(", "[", "{", "f(", "-", "- ", "(int)", "a[", "{a:", "{1:", "(a,", "CAST(", "((", "a + (",
    ];
    for bomb in bombs {
        let deep = bomb.repeat(20_000);
        assert!(parse_statement(&format!("SELECT {deep}")).is_err(), "{bomb}");
        assert!(parse_statement(&format!("SELECT * FROM t WHERE a = {deep}")).is_err(), "{bomb}");
        assert!(parse_statement(&format!("SELECT * FROM t WHERE {deep}")).is_err(), "{bomb}");
        assert!(parse_statement(&format!("INSERT INTO t (a) VALUES ({deep}")).is_err(), "{bomb}");
    }
    for (link, is_term) in [(" + 1", true), (" * 1", true), (".b", false), ("[0]", false)] {
        let chain = |links: usize| format!("SELECT a{} FROM t", link.repeat(links));
        assert!(parse_statement(&chain(super::cursor::MAX_HEIGHT - 2)).is_ok(), "{link}");
        assert!(parse_statement(&chain(super::cursor::MAX_HEIGHT + 1)).is_err(), "{link}");
        assert!(parse_statement(&chain(100_000)).is_err(), "{link}");
        if is_term {
            let term = format!("UPDATE t SET a = 1{} WHERE k = 0", link.repeat(100_000));
            assert!(parse_statement(&term).is_err(), "{link}");
        }
    }
    // Chains whose first operands nest: each level alone is short enough.
    let nested = format!("SELECT {}1{} FROM t", "(".repeat(40), ".b + 1 + 1)".repeat(40));
    let nested = nested.replace(')', &format!("{})", " + 1".repeat(100)));
    assert!(parse_statement(&nested).is_err());
    let siblings = vec!["1 + 1 + 1"; 10_000].join(", ");
    assert!(parse_statement(&format!("INSERT INTO t (a) VALUES ([{siblings}])")).is_ok());
    let types = format!("CREATE TABLE t (k {}int", "list<".repeat(20_000));
    assert!(parse_statement(&types).is_err());
}
