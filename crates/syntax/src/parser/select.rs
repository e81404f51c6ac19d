//! SELECT and its selectors.

use super::arithmetic::{Operand, sum};
use super::cursor::Cursor;
use super::relation::relations;
use super::term::{constant, function_name, hint, is_class, marker, term, whole_number};
use super::types::native_type;
use crate::ast::{
    ArithmeticOperator, LiteralKind, OrderBy, QualifiedName, RawSelector, RawTerm, Select,
    SelectItem, Selection,
};
use crate::error::Result;
use crate::lexer::{Token, TokenKind};

pub(super) fn select(cursor: &mut Cursor<'_>) -> Result<Select> {
    cursor.expect_word("select")?;
    let (json, distinct, selection) = clause(cursor)?;
    cursor.expect_word("from")?;
    let table = cursor.table_name()?;
    let relations = if cursor.eat_word("where") { relations(cursor)? } else { Vec::new() };
    let mut select = Select {
        json,
        distinct,
        selection,
        table,
        relations,
        group_by: Vec::new(),
        order_by: Vec::new(),
        per_partition_limit: None,
        limit: None,
        allow_filtering: false,
        timeout: None,
    };
    if cursor.eat_word("group") {
        cursor.expect_word("by")?;
        select.group_by = cursor.list(unaliased)?;
    }
    if cursor.eat_word("order") {
        cursor.expect_word("by")?;
        select.order_by = cursor.list(order_by)?;
    }
    if cursor.eat_word("per") {
        cursor.expect_words(&["partition", "limit"])?;
        select.per_partition_limit = Some(whole_number(cursor)?);
    }
    if cursor.eat_word("limit") {
        select.limit = Some(whole_number(cursor)?);
    }
    if cursor.eat_word("allow") {
        cursor.expect_word("filtering")?;
        select.allow_filtering = true;
    }
    select.timeout = cursor.timeout();
    Ok(select)
}

/// JSON and DISTINCT are names too: they are keywords only if selectors follow.
fn clause(cursor: &mut Cursor<'_>) -> Result<(bool, bool, Selection)> {
    let after = |word: &'static str| {
        move |cursor: &mut Cursor<'_>| {
            cursor.expect_word(word)?;
            distinct_or_not(cursor)
        }
    };
    if cursor.is_word("json")
        && let Some((distinct, selection)) = cursor.attempt(after("json"))
    {
        return Ok((true, distinct, selection));
    }
    let (distinct, selection) = distinct_or_not(cursor)?;
    Ok((false, distinct, selection))
}

fn distinct_or_not(cursor: &mut Cursor<'_>) -> Result<(bool, Selection)> {
    if cursor.is_word("distinct") {
        let found = cursor.attempt(|cursor| {
            cursor.expect_word("distinct")?;
            selectors(cursor)
        });
        if let Some(selection) = found {
            return Ok((true, selection));
        }
    }
    Ok((false, selectors(cursor)?))
}

pub(super) fn selectors(cursor: &mut Cursor<'_>) -> Result<Selection> {
    if cursor.eat_symbol("*") {
        return Ok(Selection::All);
    }
    let items = cursor.list(|cursor| {
        let selector = unaliased(cursor)?;
        let alias = if cursor.eat_word("as") { Some(cursor.name()?) } else { None };
        Ok(SelectItem { selector, alias })
    })?;
    Ok(Selection::Items(items))
}

fn order_by(cursor: &mut Cursor<'_>) -> Result<OrderBy> {
    let column = cursor.column()?;
    let ann_of = if cursor.eat_word("ann") {
        cursor.expect_word("of")?;
        Some(term(cursor)?)
    } else {
        None
    };
    let descending = cursor.eat_word("desc");
    if !descending {
        cursor.eat_word("asc");
    }
    Ok(OrderBy { column, descending, ann_of })
}

fn unaliased(cursor: &mut Cursor<'_>) -> Result<RawSelector> {
    cursor.deeper(sum)
}

impl Operand for RawSelector {
    fn single(cursor: &mut Cursor<'_>) -> Result<RawSelector> {
        group(cursor)
    }

    fn join(
        operator: ArithmeticOperator,
        left: Box<RawSelector>,
        right: Box<RawSelector>,
    ) -> RawSelector {
        RawSelector::Arithmetic { operator, left, right }
    }

    fn ends(_: &mut Cursor<'_>) -> bool {
        false
    }
}

fn group(cursor: &mut Cursor<'_>) -> Result<RawSelector> {
    if cursor.is_symbol("-") {
        cursor.next();
        return cursor.deeper(|cursor| Ok(RawSelector::Negate(Box::new(group(cursor)?))));
    }
    let receiver = bare(cursor)?;
    // Cassandra tries the rule with modifiers first, and looks that far for them, but behind what brackets end.
    if ![")", "]", "}"].iter().any(|symbol| cursor.is_behind(symbol)) {
        cursor.peek_ahead(1);
    }
    modifiers(cursor, receiver)
}

/// `.field`, `[key]` and `[from..to]`, repeated. Another bracket is left to the caller.
fn modifiers(cursor: &mut Cursor<'_>, receiver: RawSelector) -> Result<RawSelector> {
    let mut found = receiver;
    loop {
        let selector = Box::new(found);
        if cursor.eat_symbol(".") {
            cursor.wrap()?;
            found = RawSelector::Field { selector, field: cursor.name()? };
        } else if cursor.is_symbol("[") {
            let Some((from, is_slice, to)) = cursor.attempt(subscript) else {
                return Ok(*selector);
            };
            cursor.wrap()?;
            found = match (from, is_slice) {
                (Some(key), false) => RawSelector::Element { selector, key },
                (from, _) => RawSelector::Slice { selector, from, to },
            };
        } else {
            return Ok(*selector);
        }
    }
}

type Subscript = (Option<RawTerm>, bool, Option<RawTerm>);

fn subscript(cursor: &mut Cursor<'_>) -> Result<Subscript> {
    cursor.expect_symbol("[")?;
    let from = if cursor.is_symbol("..") { None } else { Some(term(cursor)?) };
    let is_slice = cursor.eat_symbol("..");
    let to = if is_slice && (from.is_none() || !cursor.is_symbol("]")) {
        Some(term(cursor)?)
    } else {
        None
    };
    cursor.expect_symbol("]")?;
    Ok((from, is_slice, to))
}

fn bare(cursor: &mut Cursor<'_>) -> Result<RawSelector> {
    if let Some(literal) = constant(cursor) {
        return Ok(RawSelector::Term(literal));
    }
    if let Some(marker) = marker(cursor)? {
        return Ok(RawSelector::Term(marker));
    }
    let token = cursor.peek();
    match token.text {
        "(" => parentheses(cursor),
        "[" => {
            cursor.next();
            let items = if cursor.is_symbol("]") { Vec::new() } else { cursor.list(unaliased)? };
            cursor.expect_symbol("]")?;
            Ok(RawSelector::List(items))
        }
        "{" => braces(cursor),
        _ if token.is_word("null") => {
            cursor.next();
            Ok(RawSelector::Term(RawTerm::Null))
        }
        _ => column_or_call(cursor),
    }
}

/// `(type) selector`, `(a, b)`, or a selector in parentheses, which is a tuple of one until its type is asked for.
fn parentheses(cursor: &mut Cursor<'_>) -> Result<RawSelector> {
    if cursor.peek_ahead(1).is_symbol(")") {
        cursor.peek_ahead(2);
    }
    let hinted = |cursor: &mut Cursor<'_>| Ok((hint(cursor)?, cursor.deeper(bare)?));
    let found = if is_class(cursor) { Some(hinted(cursor)?) } else { cursor.attempt(hinted) };
    if let Some((to, selector)) = found {
        return Ok(RawSelector::TypeHint { to, selector: Box::new(selector) });
    }
    cursor.expect_symbol("(")?;
    let items = cursor.list(unaliased)?;
    cursor.expect_symbol(")")?;
    if items.is_empty() { Err(cursor.no_viable()) } else { Ok(RawSelector::Tuple(items)) }
}

fn braces(cursor: &mut Cursor<'_>) -> Result<RawSelector> {
    cursor.expect_symbol("{")?;
    if cursor.eat_symbol("}") {
        return Ok(RawSelector::Set(Vec::new()));
    }
    let first = unaliased(cursor)?;
    let found = if cursor.eat_symbol(":") {
        let mut entries = vec![(first, unaliased(cursor)?)];
        while cursor.eat_symbol(",") {
            let key = unaliased(cursor)?;
            cursor.expect_symbol(":")?;
            entries.push((key, unaliased(cursor)?));
        }
        RawSelector::Map(entries)
    } else {
        let mut items = vec![first];
        while cursor.eat_symbol(",") {
            items.push(unaliased(cursor)?);
        }
        RawSelector::Set(items)
    };
    cursor.expect_symbol("}")?;
    Ok(found)
}

/// The tokens that may follow the name of a column in a selector.
fn follows_column(token: &Token<'_>) -> bool {
    const WORDS: [&str; 7] = ["from", "as", "order", "per", "limit", "allow", "group"];
    match token.kind {
        TokenKind::End => true,
        TokenKind::Symbol => {
            !matches!(token.text, "?" | "=" | "<" | ">" | "<=" | ">=" | "!=" | "+=" | "-=" | "{")
        }
        _ => WORDS.iter().any(|word| token.is_word(word)),
    }
}

fn column_or_call(cursor: &mut Cursor<'_>) -> Result<RawSelector> {
    let token = cursor.peek();
    if !cursor.is_name_ahead(0) && !token.is_word("token") {
        return Err(cursor.no_viable());
    }
    let is_call = cursor.peek_ahead(1).is_symbol("(");
    if is_call && token.is_word("count") {
        return count(cursor);
    }
    let special = |word: &str| is_call && token.is_word(word);
    if special("writetime") {
        return Ok(RawSelector::WriteTime(Box::new(column_argument(cursor)?)));
    }
    if special("maxwritetime") {
        return Ok(RawSelector::MaxWriteTime(Box::new(column_argument(cursor)?)));
    }
    if special("ttl") {
        return Ok(RawSelector::Ttl(Box::new(column_argument(cursor)?)));
    }
    if special("cast") {
        cursor.next();
        cursor.next();
        let selector = Box::new(unaliased(cursor)?);
        cursor.expect_word("as")?;
        let to = native_type(cursor)?;
        cursor.expect_symbol(")")?;
        return Ok(RawSelector::Cast { selector, to });
    }
    let is_qualified = cursor.peek_ahead(1).is_symbol(".")
        && cursor.peek_ahead(3).is_symbol("(")
        && !cursor.peek_ahead(2).is_symbol("(");
    if is_call || is_qualified {
        return call(cursor);
    }
    if !follows_column(&cursor.peek_ahead(1)) {
        return Err(cursor.no_viable_ahead(1));
    }
    let is_field = cursor.peek_ahead(1).is_symbol(".");
    if is_field && cursor.is_name_ahead(0) && !cursor.is_name_ahead(2) {
        return Err(cursor.no_viable_ahead(2));
    }
    Ok(RawSelector::Column(cursor.name()?))
}

fn column_argument(cursor: &mut Cursor<'_>) -> Result<RawSelector> {
    cursor.next();
    cursor.expect_symbol("(")?;
    let column = RawSelector::Column(cursor.name()?);
    let found = modifiers(cursor, column)?;
    cursor.expect_symbol(")")?;
    Ok(found)
}

/// `count(*)`, `count(1)`, or the function on a column.
fn count(cursor: &mut Cursor<'_>) -> Result<RawSelector> {
    if cursor.peek_ahead(2).is_symbol("*") {
        (0..3).for_each(|_| {
            cursor.next();
        });
        cursor.expect_symbol(")")?;
        return Ok(RawSelector::CountRows);
    }
    let argument = cursor.peek_ahead(2);
    if argument.kind == TokenKind::Word && super::words::is_reserved(argument.text) {
        let is_value = ["null", "true", "false", "nan", "infinity", "token"]
            .iter()
            .any(|w| argument.is_word(w));
        if !is_value {
            return Err(cursor.no_viable_ahead(2));
        }
    }
    let found = call(cursor)?;
    let RawSelector::Call { arguments, .. } = &found else { return Ok(found) };
    let is_one = |argument: &RawSelector| {
        let RawSelector::Term(RawTerm::Literal { kind, text }) = argument else { return false };
        *kind == LiteralKind::Integer && text == "1"
    };
    let counts_rows = matches!(arguments.as_slice(), [argument] if is_one(argument));
    Ok(if counts_rows { RawSelector::CountRows } else { found })
}

fn call(cursor: &mut Cursor<'_>) -> Result<RawSelector> {
    let name: QualifiedName = function_name(cursor)?;
    cursor.expect_symbol("(")?;
    let arguments = if cursor.is_symbol(")") { Vec::new() } else { cursor.list(unaliased)? };
    cursor.expect_symbol(")")?;
    Ok(RawSelector::Call { name, arguments, is_implied: false })
}
