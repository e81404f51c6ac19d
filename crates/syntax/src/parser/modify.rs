//! INSERT, UPDATE, DELETE, BATCH.

use halcyon_model::request::BatchKind;

use super::cursor::Cursor;
use super::relation::{conditions, relations};
use super::term::{marker, term, whole_number};
use crate::ast::{
    Assignment, Batch, CellTarget, Change, Delete, Insert, InsertJson, LiteralKind, Modification,
    QualifiedName, RawTerm, Update, Using,
};
use crate::error::Result;
use crate::lexer::TokenKind;

/// `None` if none begins here.
fn modification(cursor: &mut Cursor<'_>) -> Result<Option<Modification>> {
    Ok(Some(if cursor.is_word("insert") {
        insert(cursor)?
    } else if cursor.is_word("update") {
        Modification::Update(update(cursor)?)
    } else if cursor.is_word("delete") {
        Modification::Delete(delete(cursor)?)
    } else {
        return Ok(None);
    }))
}

pub(super) fn insert(cursor: &mut Cursor<'_>) -> Result<Modification> {
    cursor.expect_words(&["insert", "into"])?;
    let table = cursor.table_name()?;
    if cursor.eat_word("json") {
        return insert_json(cursor, table);
    }
    if !cursor.is_symbol("(") {
        return Err(cursor.no_viable());
    }
    cursor.next();
    let columns = cursor.list(Cursor::column)?;
    cursor.expect_symbol(")")?;
    cursor.expect_word("values")?;
    cursor.expect_symbol("(")?;
    let values = cursor.list(term)?;
    cursor.expect_symbol(")")?;
    let if_not_exists = cursor.if_not_exists()?;
    let using = using(cursor)?;
    Ok(Modification::Insert(Insert { table, columns, values, if_not_exists, using }))
}

fn insert_json(cursor: &mut Cursor<'_>, table: QualifiedName) -> Result<Modification> {
    let json = match marker(cursor)? {
        Some(marker) => marker,
        None if cursor.peek().kind == TokenKind::String => {
            let text = cursor.next().value().into_owned();
            RawTerm::Literal { kind: LiteralKind::String, text }
        }
        None => return Err(cursor.no_viable()),
    };
    let mut default_unset = false;
    if cursor.eat_word("default") {
        default_unset = cursor.eat_word("unset");
        if !default_unset && !cursor.eat_word("null") {
            return Err(cursor.no_viable());
        }
    }
    let if_not_exists = cursor.if_not_exists()?;
    let using = using(cursor)?;
    let insert = InsertJson { table, json, default_unset, if_not_exists, using };
    Ok(Modification::InsertJson(insert))
}

/// Nothing, or `USING TIMESTAMP t AND TTL s`; of a repeated attribute the last counts.
fn using(cursor: &mut Cursor<'_>) -> Result<Using> {
    let mut using = Using::default();
    if !cursor.eat_word("using") {
        return Ok(using);
    }
    loop {
        if cursor.eat_word("timestamp") {
            using.timestamp = Some(whole_number(cursor)?);
        } else if cursor.eat_word("ttl") {
            using.ttl = Some(whole_number(cursor)?);
        } else {
            return Err(cursor.no_viable());
        }
        if !cursor.eat_word("and") {
            return Ok(using);
        }
    }
}

pub(super) fn update(cursor: &mut Cursor<'_>) -> Result<Update> {
    cursor.expect_word("update")?;
    let table = cursor.table_name()?;
    let using = using(cursor)?;
    cursor.expect_word("set")?;
    let mut assignments: Vec<Assignment> = Vec::new();
    loop {
        let assignment = assignment(cursor)?;
        let clash = assignments.iter().any(|known| {
            known.column.text == assignment.column.text
                && !compatible(&known.change, &assignment.change)
        });
        if clash {
            let column = &assignment.column.text;
            return Err(cursor.refused(format!("Multiple incompatible setting of column {column}")));
        }
        assignments.push(assignment);
        if !cursor.eat_symbol(",") {
            break;
        }
    }
    cursor.expect_word("where")?;
    let relations = relations(cursor)?;
    let conditions = conditions(cursor)?;
    Ok(Update { table, using, assignments, relations, conditions })
}

/// Whether two changes of one column may stand in one UPDATE.
fn compatible(a: &Change, b: &Change) -> bool {
    match (a, b) {
        (Change::Field { field: a, .. }, Change::Field { field: b, .. }) => a.text != b.text,
        (Change::Assign(_), _) | (_, Change::Assign(_)) => false,
        _ => true,
    }
}

fn assignment(cursor: &mut Cursor<'_>) -> Result<Assignment> {
    let column = cursor.column()?;
    let change = if cursor.eat_symbol("=") {
        assigned(cursor, &column.text)?
    } else if cursor.eat_symbol("+=") {
        Change::Add(term(cursor)?)
    } else if cursor.eat_symbol("-=") {
        Change::Subtract(term(cursor)?)
    } else if cursor.eat_symbol("[") {
        let key = term(cursor)?;
        cursor.expect_symbol("]")?;
        cursor.expect_symbol("=")?;
        Change::Element { key, value: term(cursor)? }
    } else if cursor.eat_symbol(".") {
        let field = cursor.name()?;
        cursor.expect_symbol("=")?;
        Change::Field { field, value: term(cursor)? }
    } else {
        return Err(cursor.no_viable());
    };
    Ok(Assignment { column, change })
}

/// The right side of `column =`.
fn assigned(cursor: &mut Cursor<'_>, column: &str) -> Result<Change> {
    let next = cursor.peek_ahead(1);
    if cursor.is_column_ahead(0) && !next.is_symbol("(") && !next.is_symbol(".") {
        return from_column(cursor, column);
    }
    let value = term(cursor)?;
    if !cursor.eat_symbol("+") {
        return Ok(Change::Assign(value));
    }
    if cursor.column()?.text != column {
        return Err(cursor.refused("Only expressions of the form X = <value> + X are supported."));
    }
    Ok(Change::Prepend(value))
}

/// `c + term`, `c - term`, and `c -1`, in which the sign belongs to the number.
fn from_column(cursor: &mut Cursor<'_>, column: &str) -> Result<Change> {
    let next = cursor.peek_ahead(1);
    let is_number = next.kind == TokenKind::Integer;
    if !is_number && !next.is_symbol("+") && !next.is_symbol("-") {
        return Err(cursor.no_viable_ahead(1));
    }
    let is_same = cursor.column()?.text == column;
    if is_number {
        let text = cursor.next().text.to_owned();
        if !is_same {
            let sign = if text.starts_with('-') { '-' } else { '+' };
            let what = format!("Only expressions of the form X = X {sign} <value> are supported.");
            return Err(cursor.refused(what));
        }
        return Ok(Change::Add(RawTerm::Literal { kind: LiteralKind::Integer, text }));
    }
    let sign = cursor.next().text;
    let value = term(cursor)?;
    if !is_same {
        let what = format!("Only expressions of the form X = X {sign}<value> are supported.");
        return Err(cursor.refused(what));
    }
    Ok(if sign == "+" { Change::Add(value) } else { Change::Subtract(value) })
}

pub(super) fn delete(cursor: &mut Cursor<'_>) -> Result<Delete> {
    cursor.expect_word("delete")?;
    let targets = if cursor.is_column_ahead(0) { cursor.list(target)? } else { Vec::new() };
    cursor.expect_word("from")?;
    let table = cursor.table_name()?;
    let mut using = Using::default();
    if cursor.eat_word("using") {
        cursor.expect_word("timestamp")?;
        using.timestamp = Some(whole_number(cursor)?);
    }
    cursor.expect_word("where")?;
    let relations = relations(cursor)?;
    let conditions = conditions(cursor)?;
    Ok(Delete { table, using, targets, relations, conditions })
}

fn target(cursor: &mut Cursor<'_>) -> Result<CellTarget> {
    let next = cursor.peek_ahead(1);
    let fits = next.kind == TokenKind::End
        || next.is_word("from")
        || [",", "[", "."].iter().any(|symbol| next.is_symbol(symbol));
    if cursor.is_column_ahead(0) && !fits {
        return Err(cursor.no_viable_ahead(1));
    }
    let column = cursor.column()?;
    if cursor.eat_symbol("[") {
        let key = term(cursor)?;
        cursor.expect_symbol("]")?;
        return Ok(CellTarget::Element(column, key));
    }
    if cursor.eat_symbol(".") {
        return Ok(CellTarget::Field(column, cursor.name()?));
    }
    Ok(CellTarget::Column(column))
}

pub(super) fn batch(cursor: &mut Cursor<'_>) -> Result<Batch> {
    cursor.expect_word("begin")?;
    let kind = if cursor.eat_word("unlogged") {
        BatchKind::Unlogged
    } else if cursor.eat_word("counter") {
        BatchKind::Counter
    } else {
        BatchKind::Logged
    };
    cursor.expect_word("batch")?;
    let using = using(cursor)?;
    let mut statements = Vec::new();
    while let Some(statement) = modification(cursor)? {
        statements.push(statement);
        cursor.eat_symbol(";");
    }
    cursor.expect_words(&["apply", "batch"])?;
    Ok(Batch { kind, using, statements })
}
