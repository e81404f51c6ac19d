//! Tables and materialized views.

use super::cursor::Cursor;
use super::integer;
use super::properties::{options, properties};
use super::types::{renames, type_text};
use crate::ast::{
    ColumnText, CreateTable, CreateView, Name, PrimaryKey, StatementKind, TableChange,
};
use crate::error::{Error, Result};

/// `CREATE TABLE [IF NOT EXISTS] name ( column, …, PRIMARY KEY (…) ) [WITH …]`
pub(super) fn create_table(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.expect_word("create")?;
    cursor.next();
    let if_not_exists = cursor.eat_if_not_exists();
    let name = cursor.qualified_name("a table name")?;
    cursor.expect_symbol("(")?;
    let mut columns = Vec::new();
    let mut primary_key: Option<PrimaryKey> = None;
    loop {
        let place = cursor.place();
        let key = if cursor.eat_words(&["primary", "key"]) {
            Some(primary_key_list(cursor)?)
        } else {
            let (column, is_key) = column(cursor)?;
            let key = is_key.then(|| PrimaryKey {
                partition_key: vec![column.name.clone()],
                clustering: Vec::new(),
            });
            columns.push(column);
            key
        };
        if key.is_some() && primary_key.is_some() {
            let what = "the table has a primary key already".to_owned();
            return Err(Error::Invalid { place, what });
        }
        primary_key = primary_key.or(key);
        if !cursor.eat_symbol(",") {
            break;
        }
    }
    if !cursor.is_symbol(")") {
        return Err(cursor.expected("',' or ')'"));
    }
    let closing = cursor.next().place;
    let properties = properties(cursor)?;
    let Some(primary_key) = primary_key else {
        let what = format!("table {} has no PRIMARY KEY", name.name);
        return Err(Error::Invalid { place: closing, what });
    };
    let table = CreateTable { name, if_not_exists, columns, primary_key, properties };
    Ok(StatementKind::CreateTable(table))
}

/// `name type [STATIC] [MASKED WITH …] [CHECK …] [PRIMARY KEY]`; true if it is the primary key.
fn column(cursor: &mut Cursor<'_>) -> Result<(ColumnText, bool)> {
    let name = cursor.name("a column name or PRIMARY KEY")?;
    let column_type = type_text(cursor)?;
    let is_static = cursor.eat_word("static");
    if cursor.eat_words(&["masked", "with"]) {
        mask(cursor)?;
    }
    if cursor.eat_word("check") {
        // Constraints say nothing about files.
        while !cursor.at_end() && ![",", ")", ";"].iter().any(|s| cursor.is_symbol(s)) {
            if cursor.is_symbol("(") {
                cursor.skip_parenthesised()?
            } else {
                cursor.next();
            }
        }
    }
    let is_key = cursor.eat_words(&["primary", "key"]);
    Ok((ColumnText { name, column_type, is_static }, is_key))
}

/// `DEFAULT`, or a function with its arguments.
fn mask(cursor: &mut Cursor<'_>) -> Result<()> {
    if cursor.eat_word("default") {
        return Ok(());
    }
    cursor.qualified_name("a masking function")?;
    cursor.skip_parenthesised()
}

/// `( (a, b), c, d )` after `PRIMARY KEY`.
fn primary_key_list(cursor: &mut Cursor<'_>) -> Result<PrimaryKey> {
    let column = |cursor: &mut Cursor<'_>| cursor.name("a column name");
    cursor.expect_symbol("(")?;
    let partition_key = if cursor.eat_symbol("(") {
        let columns = cursor.list(column)?;
        cursor.expect_symbol(")")?;
        columns
    } else {
        vec![column(cursor)?]
    };
    let clustering = if cursor.eat_symbol(",") { cursor.list(column)? } else { Vec::new() };
    cursor.expect_symbol(")")?;
    Ok(PrimaryKey { partition_key, clustering })
}

/// `CREATE MATERIALIZED VIEW [IF NOT EXISTS] name AS SELECT … FROM base WHERE … PRIMARY KEY (…) [WITH …]`
pub(super) fn create_view(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.expect_word("create")?;
    cursor.expect_word("materialized")?;
    cursor.expect_word("view")?;
    let if_not_exists = cursor.eat_if_not_exists();
    let name = cursor.qualified_name("a view name")?;
    cursor.expect_word("as")?;
    cursor.expect_word("select")?;
    let columns = if cursor.eat_symbol("*") {
        None
    } else {
        Some(cursor.list(|cursor| cursor.name("a column name"))?)
    };
    cursor.expect_word("from")?;
    let base = cursor.qualified_name("a table name")?;
    // The condition decides which rows the view has, not what they look like.
    while !cursor.eat_words(&["primary", "key"]) {
        if cursor.at_end() || cursor.is_symbol(";") {
            return Err(cursor.expected("PRIMARY KEY"));
        }
        cursor.next();
    }
    let primary_key = primary_key_list(cursor)?;
    let properties = properties(cursor)?;
    let view = CreateView { name, if_not_exists, columns, base, primary_key, properties };
    Ok(StatementKind::CreateView(view))
}

/// `ALTER TABLE [IF EXISTS] name ADD … | DROP … | RENAME … | ALTER … | WITH …`
pub(super) fn alter_table(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.expect_word("alter")?;
    cursor.next();
    let if_exists = cursor.eat_if_exists();
    let name = cursor.qualified_name("a table name")?;
    let change = if cursor.eat_word("add") {
        let if_not_exists = cursor.eat_if_not_exists();
        let columns = parenthesised_or_bare(cursor, |cursor| Ok(column(cursor)?.0))?;
        TableChange::Add { if_not_exists, columns }
    } else if cursor.eat_word("drop") {
        drop_columns(cursor)?
    } else if cursor.eat_word("rename") {
        let if_exists = cursor.eat_if_exists();
        TableChange::Rename { if_exists, renames: renames(cursor)? }
    } else if cursor.eat_word("alter") {
        alter_column(cursor)?
    } else if cursor.is_word("with") {
        TableChange::Options(options(cursor)?)
    } else {
        return Err(cursor.expected("ADD, DROP, RENAME, ALTER or WITH"));
    };
    Ok(StatementKind::AlterTable { name, if_exists, change })
}

fn parenthesised_or_bare<T>(
    cursor: &mut Cursor<'_>,
    item: impl FnMut(&mut Cursor<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    if !cursor.eat_symbol("(") {
        return cursor.list(item);
    }
    let items = cursor.list(item)?;
    cursor.expect_symbol(")")?;
    Ok(items)
}

fn drop_columns(cursor: &mut Cursor<'_>) -> Result<TableChange> {
    if cursor.eat_words(&["compact", "storage"]) {
        return Ok(TableChange::Other);
    }
    let if_exists = cursor.eat_if_exists();
    let columns: Vec<Name> = parenthesised_or_bare(cursor, |cursor| cursor.name("a column name"))?;
    let timestamp = if cursor.eat_words(&["using", "timestamp"]) {
        Some(integer(cursor, "a timestamp in microseconds")?)
    } else {
        None
    };
    Ok(TableChange::Drop { if_exists, columns, timestamp })
}

fn alter_column(cursor: &mut Cursor<'_>) -> Result<TableChange> {
    cursor.eat_if_exists();
    let name = cursor.name("a column name")?;
    if cursor.eat_word("type") {
        return Ok(TableChange::Retype { name, to: type_text(cursor)? });
    }
    if cursor.eat_words(&["masked", "with"]) {
        mask(cursor)?;
    } else if cursor.eat_word("drop") {
        cursor.name("MASKED or CHECK")?;
    } else if cursor.eat_word("check") {
        while !cursor.at_end() && !cursor.is_symbol(";") {
            cursor.next();
        }
    } else {
        return Err(cursor.expected("TYPE, MASKED WITH or DROP MASKED"));
    }
    Ok(TableChange::Other)
}
