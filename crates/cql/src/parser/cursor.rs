//! A place in the tokens, and the small steps that every rule of the grammar is made of.

use crate::ast::{Name, QualifiedName};
use crate::error::{Error, Result};
use crate::lexer::{Place, Token, TokenKind};

pub(super) struct Cursor<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    end: Token<'a>,
}

impl<'a> Cursor<'a> {
    /// `tokens` as the lexer gives them: `End` last.
    pub(super) fn new(tokens: &'a [Token<'a>]) -> Cursor<'a> {
        let place = tokens.last().map_or(Place { line: 1, column: 0 }, |token| token.place);
        Cursor { tokens, at: 0, end: Token { kind: TokenKind::End, text: "", place } }
    }

    pub(super) fn peek(&self) -> Token<'a> {
        self.peek_ahead(0)
    }

    pub(super) fn peek_ahead(&self, ahead: usize) -> Token<'a> {
        self.tokens.get(self.at.saturating_add(ahead)).copied().unwrap_or(self.end)
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        if self.at < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    pub(super) fn place(&self) -> Place {
        self.peek().place
    }

    pub(super) fn at_end(&self) -> bool {
        self.peek().kind == TokenKind::End
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.peek().is_word(word)
    }

    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        self.peek().is_symbol(symbol)
    }

    /// Steps over the word, if it stands here.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.next();
        }
        found
    }

    /// Steps over all of these words, or none.
    pub(super) fn eat_words(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(i, word)| self.peek_ahead(i).is_word(word));
        if found {
            self.at += words.len();
        }
        found
    }

    pub(super) fn eat_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(word.to_ascii_uppercase())) }
    }

    pub(super) fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.eat_symbol(symbol) { Ok(()) } else { Err(self.expected(format!("'{symbol}'"))) }
    }

    /// The error that something else should stand here.
    pub(super) fn expected(&self, expected: impl Into<String>) -> Error {
        self.expected_hint(expected, "")
    }

    pub(super) fn expected_hint(&self, expected: impl Into<String>, hint: &str) -> Error {
        let token = self.peek();
        let hint = if hint.is_empty() { String::new() } else { format!(" ({hint})") };
        Error::Syntax { place: token.place, expected: expected.into(), found: show(token), hint }
    }

    /// A name: a word or a quoted name.
    pub(super) fn name(&mut self, what: &str) -> Result<Name> {
        let token = self.peek();
        match token.kind {
            TokenKind::Word | TokenKind::QuotedName => {
                self.next();
                Ok(Name { place: token.place, text: token.value().into_owned() })
            }
            _ => Err(self.expected(what)),
        }
    }

    pub(super) fn qualified_name(&mut self, what: &str) -> Result<QualifiedName> {
        let first = self.name(what)?;
        if !self.eat_symbol(".") {
            return Ok(QualifiedName { place: first.place, keyspace: None, name: first.text });
        }
        let name = self.name(what)?;
        Ok(QualifiedName { place: first.place, keyspace: Some(first.text), name: name.text })
    }

    pub(super) fn eat_if_not_exists(&mut self) -> bool {
        self.eat_words(&["if", "not", "exists"])
    }

    pub(super) fn eat_if_exists(&mut self) -> bool {
        self.eat_words(&["if", "exists"])
    }

    /// `item, item, …` up to something that is no comma.
    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat_symbol(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Steps over a `( … )` that stands here, whatever is in it.
    pub(super) fn skip_parenthesised(&mut self) -> Result<()> {
        self.expect_symbol("(")?;
        let mut depth = 1usize;
        while depth > 0 {
            if self.at_end() {
                return Err(self.expected("')'"));
            }
            if self.is_symbol("(") {
                depth += 1;
            } else if self.is_symbol(")") {
                depth -= 1;
            }
            self.next();
        }
        Ok(())
    }
}

/// A token as an error message names it.
fn show(token: Token<'_>) -> String {
    const LONGEST: usize = 40;
    let shown = |text: &str| match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    };
    match token.kind {
        TokenKind::End => "the end of the text".to_owned(),
        TokenKind::String => shown(token.text),
        TokenKind::Unterminated if token.text.starts_with("/*") => {
            "a comment that is never closed".to_owned()
        }
        TokenKind::Unterminated => {
            format!("a quote that is never closed: {}", shown(token.text).trim_end())
        }
        _ => format!("'{}'", shown(token.text)),
    }
}
