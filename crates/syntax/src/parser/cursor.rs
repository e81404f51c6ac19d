//! The parser's position in the tokens, and the steps from which the rules of the grammar are composed.
//!
//! Errors are Cassandra's, so a rule passes not only the expected token but also the token at which the choice was made that
//! no alternative fits (`no_viable`): Cassandra's parser looks ahead, and shows the token at which its lookahead began.

use super::diagnosis::{self, Sight};
use super::words;
use crate::ast::{Name, QualifiedName};
use crate::error::{Error, Result};
use crate::lexer::{Location, Token, TokenKind};

/// Deepest nesting of types and literals.
pub(super) const MAX_NESTING: usize = 100;

/// Longest chain of operators, fields and subscripts. Cassandra has no limit of its own: its parser fails with the JVM's stack,
/// at some thousands.
pub(super) const MAX_HEIGHT: usize = 250;

pub(super) struct Cursor<'a> {
    text: &'a str,
    tokens: &'a [Token<'a>],
    at: usize,
    end: Token<'a>,
    /// The furthest token of any lookahead.
    fetched: std::cell::Cell<usize>,
    /// Bind markers so far.
    pub(super) markers: u16,
    /// The current nesting.
    depth: usize,
    /// Height of the tallest tree that the current level has parsed so far.
    height: usize,
    /// Running attempts. The errors of an attempt are dropped, and making one takes time in proportion to the text.
    attempts: usize,
    /// Scripts may contain the syntax of newer versions of Cassandra.
    pub(super) is_script: bool,
    /// The first fault behind which Cassandra reads on.
    pub(super) noted: Option<Error>,
}

/// A position to which the cursor can return.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    at: usize,
    markers: u16,
    depth: usize,
    height: usize,
}

impl<'a> Cursor<'a> {
    /// `tokens` as the lexer gives them: `End` last.
    pub(super) fn new(text: &'a str, tokens: &'a [Token<'a>]) -> Cursor<'a> {
        let location =
            tokens.last().map_or(Location { line: 1, column: 0 }, |token| token.location);
        Cursor {
            text,
            tokens,
            at: 0,
            end: Token { kind: TokenKind::End, text: "", location },
            fetched: std::cell::Cell::new(0),
            markers: 0,
            depth: 0,
            height: 0,
            attempts: 0,
            is_script: false,
            noted: None,
        }
    }

    pub(super) fn peek(&self) -> Token<'a> {
        self.peek_ahead(0)
    }

    pub(super) fn peek_ahead(&self, ahead: usize) -> Token<'a> {
        let at = self.at.saturating_add(ahead).min(self.tokens.len().saturating_sub(1));
        self.fetched.set(self.fetched.get().max(at));
        self.tokens.get(at).copied().unwrap_or(self.end)
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    pub(super) fn location(&self) -> Location {
        self.peek().location
    }

    pub(super) fn at_end(&self) -> bool {
        self.peek().kind == TokenKind::End
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { at: self.at, markers: self.markers, depth: self.depth, height: self.height }
    }

    pub(super) fn reset(&mut self, mark: Mark) {
        self.at = mark.at;
        self.markers = mark.markers;
        self.depth = mark.depth;
        self.height = mark.height;
    }

    /// Tries a rule; steps back if it does not fit.
    pub(super) fn attempt<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Option<T> {
        let mark = self.mark();
        self.attempts += 1;
        let found = rule(self);
        self.attempts -= 1;
        match found {
            Ok(found) => Some(found),
            Err(_) => {
                self.reset(mark);
                None
            }
        }
    }

    /// Runs a rule one level deeper; nesting is bounded so that no text can exhaust the stack.
    pub(super) fn deeper<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_NESTING {
            let what = format!("terms and types nest deeper than {}", MAX_NESTING);
            return Err(Error::Invalid { location: self.location(), what });
        }
        let siblings = std::mem::take(&mut self.height);
        self.depth += 1;
        let found = rule(self);
        self.depth -= 1;
        self.height = siblings.max(self.height + 1);
        found
    }

    /// Counts one more node on top of what this level has parsed. A chain (`a + b + c`, `a.b.c`) is parsed in a loop, but its
    /// tree is as deep as the chain is long, and preparing, printing and dropping it recurse.
    pub(super) fn wrap(&mut self) -> Result<()> {
        if self.height >= MAX_HEIGHT {
            let what = format!(
                "more than {} operators, fields or subscripts follow each other in one expression",
                MAX_HEIGHT
            );
            return Err(Error::Invalid { location: self.location(), what });
        }
        self.height += 1;
        Ok(())
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

    /// A keyword; `K_TABLE` has another name than its word.
    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) {
            return Ok(());
        }
        Err(self.mismatched(&format!("K_{}", word.to_ascii_uppercase())))
    }

    pub(super) fn expect_words(&mut self, words: &[&str]) -> Result<()> {
        words.iter().try_for_each(|word| self.expect_word(word))
    }

    pub(super) fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.eat_symbol(symbol) {
            return Ok(());
        }
        Err(self.mismatched(&format!("'{symbol}'")))
    }

    /// A token of a kind that Cassandra's grammar calls `name`.
    pub(super) fn expect_kind(&mut self, kind: TokenKind, name: &str) -> Result<Token<'a>> {
        if self.peek().kind == kind {
            return Ok(self.next());
        }
        Err(self.mismatched(name))
    }

    pub(super) fn expect_end(&mut self) -> Result<()> {
        if self.at_end() { Ok(()) } else { Err(self.mismatched("EOF")) }
    }

    fn sight(&self, ahead: usize) -> Sight {
        self.peek_ahead(ahead);
        Sight { decision: self.at, failing: self.at + ahead, fetched: self.fetched.get() }
    }

    /// The error that only one thing could have stood here.
    pub(super) fn mismatched(&self, expected: &str) -> Error {
        let sight = self.sight(0);
        if self.attempts > 0 {
            return self.refused("");
        }
        diagnosis::mismatched(self.text, self.tokens, &sight, expected)
    }

    /// The error that nothing known begins like this.
    pub(super) fn no_viable(&self) -> Error {
        self.no_viable_ahead(0)
    }

    /// The error that the token at this distance does not fit.
    pub(super) fn no_viable_ahead(&self, ahead: usize) -> Error {
        let sight = self.sight(ahead);
        if self.attempts > 0 {
            return self.refused("");
        }
        diagnosis::no_viable(self.text, self.tokens, &sight)
    }

    /// An error whose message in Cassandra has no position.
    pub(super) fn refused(&self, message: impl Into<String>) -> Error {
        Error::Syntax { location: self.location(), message: message.into() }
    }

    /// An error without a position behind which Cassandra reads on (`addRecognitionError`): an action that throws later goes first.
    pub(super) fn note(&mut self, message: impl Into<String>) -> Result<()> {
        let error = self.refused(message);
        if self.attempts > 0 || self.is_script {
            return Err(error);
        }
        self.noted.get_or_insert(error);
        Ok(())
    }

    /// What a rule gives whose fault Cassandra's parser notes: it reads on at the token that does not fit, and an action that throws
    /// later goes first.
    pub(super) fn unless_faulty<T>(
        &mut self,
        rule: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Option<T>> {
        match rule(self) {
            Ok(found) => Ok(Some(found)),
            Err(fault @ Error::Syntax { .. }) if self.attempts == 0 && !self.is_script => {
                self.noted.get_or_insert(fault);
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// What a rule that has read all of its text answers, given what was noted on the way.
    pub(super) fn concluded<T>(&mut self, found: Result<T>) -> Result<T> {
        match (found, self.noted.take()) {
            (Err(thrown @ Error::InvalidRequest(_)), _) => Err(thrown),
            (_, Some(noted)) => Err(noted),
            (found, None) => found,
        }
    }

    /// The error of an action in Cassandra's grammar that throws.
    pub(super) fn failed(&self, why: &str) -> Error {
        let text = self.text;
        self.refused(format!(
            "Failed parsing statement: [{text}] reason: IllegalArgumentException {why}"
        ))
    }

    /// Whether the symbol was read last.
    pub(super) fn is_behind(&self, symbol: &str) -> bool {
        let last = self.at.checked_sub(1).and_then(|last| self.tokens.get(last));
        last.is_some_and(|token| token.is_symbol(symbol))
    }

    /// Whether an unquoted or quoted name stands so far ahead.
    pub(super) fn is_name_ahead(&self, ahead: usize) -> bool {
        let token = self.peek_ahead(ahead);
        match token.kind {
            TokenKind::Word => !words::is_reserved(token.text),
            TokenKind::QuotedName => token.text != "\"\"",
            _ => false,
        }
    }

    /// A name: a word that is not reserved, or a quoted name.
    pub(super) fn name(&mut self) -> Result<Name> {
        if !self.is_name_ahead(0) {
            return Err(self.no_viable());
        }
        let token = self.next();
        Ok(Name { location: token.location, text: token.value().into_owned() })
    }

    /// A column: a name, or `""` of tables that came from Thrift.
    pub(super) fn column(&mut self) -> Result<Name> {
        let token = self.peek();
        if token.kind == TokenKind::QuotedName && token.text == "\"\"" {
            self.next();
            return Ok(Name { location: token.location, text: String::new() });
        }
        self.name()
    }

    pub(super) fn is_column_ahead(&self, ahead: usize) -> bool {
        self.is_name_ahead(ahead) || self.peek_ahead(ahead).text == "\"\""
    }

    /// A name that cannot be a marker.
    pub(super) fn definite_name(&mut self, what: &str) -> Result<Name> {
        if self.is_symbol("?") {
            return Err(self.refused(format!("Bind variables cannot be used for {what} names")));
        }
        self.name()
    }

    /// `[keyspace.]table`
    pub(super) fn table_name(&mut self) -> Result<QualifiedName> {
        self.qualified("table")
    }

    pub(super) fn qualified(&mut self, what: &str) -> Result<QualifiedName> {
        if self.is_name_ahead(0)
            && !self.peek_ahead(1).is_symbol(".")
            && !follows_table_name(&self.peek_ahead(1))
        {
            return Err(self.no_viable_ahead(1));
        }
        let first = self.definite_name(what)?;
        if !self.eat_symbol(".") {
            self.peek_ahead(1);
            return Ok(QualifiedName {
                location: first.location,
                keyspace: None,
                name: first.text,
            });
        }
        let name = self.definite_name(what)?;
        Ok(QualifiedName { location: first.location, keyspace: Some(first.text), name: name.text })
    }

    pub(super) fn if_not_exists(&mut self) -> Result<bool> {
        self.if_words(&["not", "exists"])
    }

    pub(super) fn if_exists(&mut self) -> Result<bool> {
        self.if_words(&["exists"])
    }

    fn if_words(&mut self, words: &[&str]) -> Result<bool> {
        if !self.eat_word("if") {
            return Ok(false);
        }
        self.expect_words(words)?;
        Ok(true)
    }

    /// `item, item, …` until a token other than a comma.
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
                return Err(self.mismatched("')'"));
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

    /// `USING TIMEOUT 2000ms`, which drivers that see our shards (`SCYLLA_SHARD`) put behind their questions about the schema.
    /// Looks without being seen: Cassandra's messages show how far its own parser looked.
    pub(super) fn is_timeout(&self) -> bool {
        match self.tokens.get(self.at..) {
            Some([using, timeout, duration, ..]) => {
                using.is_word("using")
                    && timeout.is_word("timeout")
                    && duration.kind == TokenKind::Duration
            }
            _ => false,
        }
    }

    /// The duration of it, as it is written.
    pub(super) fn timeout(&mut self) -> Option<String> {
        if !self.is_timeout() {
            return None;
        }
        self.next();
        self.next();
        Some(self.next().text.to_owned())
    }

    /// Whether the token here touches the one before it.
    pub(super) fn touches_next(&self) -> bool {
        let (here, next) = (self.peek(), self.peek_ahead(1));
        here.text.as_ptr() as usize + here.text.len() == next.text.as_ptr() as usize
    }
}

/// The tokens that may follow the name of a table; Cassandra looks one token ahead for the `.`.
fn follows_table_name(token: &Token<'_>) -> bool {
    const WORDS: [&str; 21] = [
        "where",
        "group",
        "order",
        "per",
        "limit",
        "allow",
        "using",
        "set",
        "json",
        "with",
        "as",
        "primary",
        "add",
        "alter",
        "drop",
        "rename",
        "to",
        "from",
        "of",
        "norecursive",
        "on",
    ];
    match token.kind {
        TokenKind::End => true,
        TokenKind::Symbol => matches!(token.text, ";" | "("),
        _ => WORDS.iter().any(|word| token.is_word(word)),
    }
}
