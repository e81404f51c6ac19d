//! Tables and materialized views. Each rule begins after CREATE, ALTER or DROP.

use super::cursor::Cursor;
use super::properties::{options, properties};
use super::relation::relations;
use super::select::selectors;
use super::term::{function_name, may_begin_term, term};
use super::types::{renames, type_text};
use crate::ast::{
    ColumnText, CreateTable, CreateView, MaskText, Name, PrimaryKey, QualifiedName, StatementKind,
    TableChange, TypeText,
};
use crate::error::{Error, Result};
use crate::lexer::{Token, TokenKind};

/// `TABLE [IF NOT EXISTS] name ( column, …, PRIMARY KEY (…) ) [WITH …]`
pub(super) fn create_table(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.next();
    let if_not_exists = cursor.if_not_exists()?;
    let location = cursor.location();
    let first = cursor.peek();
    let name = cursor.unless_faulty(Cursor::table_name)?;
    let name = name.unwrap_or_else(|| {
        let keyspace = cursor.is_behind(".").then(|| first.value().into_owned());
        QualifiedName { location, keyspace, name: "null".to_owned() }
    });
    cursor.expect_symbol("(")?;
    let mut table = CreateTable {
        name,
        if_not_exists,
        columns: Vec::new(),
        primary_keys: Vec::new(),
        properties: Default::default(),
    };
    cursor.unless_faulty(|cursor| definition(cursor, &mut table))?;
    while cursor.eat_symbol(",") {
        if cursor.is_name_ahead(0) || cursor.is_word("primary") {
            cursor.unless_faulty(|cursor| definition(cursor, &mut table))?;
        }
    }
    let closing = cursor.location();
    cursor.expect_symbol(")")?;
    table.properties = properties(cursor, &described(&table))?;
    if cursor.is_script && table.primary_keys.is_empty() {
        let what = format!("table {} has no PRIMARY KEY", table.name.name);
        return Err(Error::Invalid { location: closing, what });
    }
    Ok(StatementKind::CreateTable(table))
}

/// As Cassandra's refusals of a text name it.
fn described(table: &CreateTable) -> String {
    format!("table '{}'", table.name)
}

/// A column, or `PRIMARY KEY ( … )`. What is declared twice is refused before the text behind it is read.
fn definition(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<()> {
    let location = cursor.location();
    let key = if cursor.eat_word("primary") {
        cursor.expect_word("key")?;
        primary_key_list(cursor)?
    } else {
        let column = column(cursor)?;
        let name = column.name.clone();
        if !cursor.is_script && table.columns.iter().any(|other| other.name.text == name.text) {
            let table = described(table);
            return Err(Error::InvalidRequest(format!(
                "Duplicate column '{}' declaration for {table}",
                name.text
            )));
        }
        table.columns.push(column);
        if !cursor.eat_word("primary") {
            return Ok(());
        }
        cursor.expect_word("key")?;
        PrimaryKey { partition_key: vec![name], clustering: Vec::new() }
    };
    if !table.primary_keys.is_empty() {
        return Err(match cursor.is_script {
            true => Error::invalid(location, "the table has a primary key already"),
            false => Error::InvalidRequest(format!(
                "Multiple PRIMARY KEY specified for {} (exactly one required)",
                described(table)
            )),
        });
    }
    if !key.partition_key.is_empty() {
        table.primary_keys.push(key);
    }
    Ok(())
}

/// `name type [STATIC] [MASKED WITH …]`; in scripts also `[CHECK …]`. Cassandra reads on behind a fault of the type or of the mask.
fn column(cursor: &mut Cursor<'_>) -> Result<ColumnText> {
    let name = cursor.name()?;
    let column_type = cursor.unless_faulty(type_text)?;
    let is_static = cursor.eat_word("static");
    let mask = if cursor.is_word("masked") { cursor.unless_faulty(mask)? } else { None };
    if cursor.is_script && cursor.eat_word("check") {
        // Constraints do not affect files.
        while !cursor.at_end() && ![",", ")", ";"].iter().any(|s| cursor.is_symbol(s)) {
            if cursor.is_word("primary") {
                break;
            }
            if cursor.is_symbol("(") {
                cursor.skip_parenthesised()?
            } else {
                cursor.next();
            }
        }
    }
    let location = cursor.location();
    let column_type = column_type.unwrap_or(TypeText { location, text: String::new() });
    Ok(ColumnText { name, column_type, is_static, mask })
}

/// `MASKED WITH DEFAULT`, or a function with its arguments.
fn mask(cursor: &mut Cursor<'_>) -> Result<MaskText> {
    let is_default = mask_is_default(cursor)?;
    cursor.expect_words(&["masked", "with"])?;
    if is_default {
        let location = cursor.next().location;
        let (keyspace, name) = (Some("system".to_owned()), "mask_default".to_owned());
        let function = QualifiedName { location, keyspace, name };
        return Ok(MaskText { function, arguments: Vec::new() });
    }
    if !begins_call(&cursor.peek_ahead(1)) {
        return Err(cursor.no_viable_ahead(1));
    }
    let function = function_name(cursor)?;
    if !cursor.is_symbol("(") {
        return Err(cursor.no_viable());
    }
    let first = cursor.peek_ahead(1);
    let has_none = first.is_symbol(")");
    if !has_none && !may_begin_term(&first) {
        return Err(cursor.no_viable_ahead(1));
    }
    cursor.next();
    let argument = |cursor: &mut Cursor<'_>| cursor.unless_faulty(term);
    let arguments = if has_none { Vec::new() } else { cursor.list(argument)? };
    cursor.expect_symbol(")")?;
    Ok(MaskText { function, arguments: arguments.into_iter().flatten().collect() })
}

fn begins_call(token: &Token<'_>) -> bool {
    token.is_symbol("(") || token.is_symbol(".")
}

/// Whether `MASKED WITH` is followed by DEFAULT and its continuation, which Cassandra's parser examines first.
fn mask_is_default(cursor: &Cursor<'_>) -> Result<bool> {
    if !cursor.peek_ahead(1).is_word("with") {
        return Err(cursor.no_viable_ahead(1));
    }
    if !cursor.is_name_ahead(2) && !cursor.peek_ahead(2).is_word("token") {
        return Err(cursor.no_viable_ahead(2));
    }
    if !cursor.peek_ahead(2).is_word("default") {
        return Ok(false);
    }
    let next = cursor.peek_ahead(3);
    let ends = next.kind == TokenKind::End
        || [",", ")", ";"].iter().any(|symbol| next.is_symbol(symbol))
        || ["primary", "check"].iter().any(|word| next.is_word(word));
    match ends {
        false if !begins_call(&next) => Err(cursor.no_viable_ahead(3)),
        ends => Ok(ends),
    }
}

/// `( (a, b), c, d )` after `PRIMARY KEY`.
fn primary_key_list(cursor: &mut Cursor<'_>) -> Result<PrimaryKey> {
    cursor.expect_symbol("(")?;
    let mut partition_key = Vec::new();
    if cursor.eat_symbol("(") {
        key_column(cursor, &mut partition_key)?;
        while cursor.eat_symbol(",") {
            key_column(cursor, &mut partition_key)?;
        }
        cursor.expect_symbol(")")?;
    } else {
        key_column(cursor, &mut partition_key)?;
    }
    let mut clustering = Vec::new();
    while cursor.eat_symbol(",") {
        key_column(cursor, &mut clustering)?;
    }
    cursor.expect_symbol(")")?;
    Ok(PrimaryKey { partition_key, clustering })
}

/// Adds a column, if one is named.
fn key_column(cursor: &mut Cursor<'_>, columns: &mut Vec<Name>) -> Result<()> {
    columns.extend(cursor.unless_faulty(Cursor::name)?);
    Ok(())
}

/// `MATERIALIZED VIEW [IF NOT EXISTS] name AS SELECT … FROM base WHERE … PRIMARY KEY (…) [WITH …]`
pub(super) fn create_view(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.expect_words(&["materialized", "view"])?;
    let if_not_exists = cursor.if_not_exists()?;
    let name = cursor.table_name()?;
    cursor.expect_words(&["as", "select"])?;
    let markers = cursor.markers;
    let selection = selectors(cursor)?;
    cursor.expect_word("from")?;
    let base = cursor.table_name()?;
    let relations = if cursor.eat_word("where") { relations(cursor)? } else { Vec::new() };
    let has_markers = cursor.markers > markers;
    cursor.expect_words(&["primary", "key"])?;
    let primary_key = primary_key_list(cursor)?;
    let properties = properties(cursor, &format!("view '{name}'"))?;
    if properties.compact_storage {
        return Err(
            cursor.refused("COMPACT STORAGE tables are not allowed starting with version 4.0")
        );
    }
    Ok(StatementKind::CreateView(CreateView {
        name,
        if_not_exists,
        selection,
        base,
        relations,
        has_markers,
        primary_key,
        properties,
    }))
}

/// `TABLE [IF EXISTS] name ADD … | DROP … | RENAME … | ALTER … | WITH …`
pub(super) fn alter_table(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.next();
    let if_exists = cursor.if_exists()?;
    let name = cursor.table_name()?;
    let change = if cursor.eat_word("add") {
        let if_not_exists = cursor.if_not_exists()?;
        TableChange::Add { if_not_exists, columns: parenthesised_or_bare(cursor, column)? }
    } else if cursor.eat_word("drop") {
        drop_columns(cursor)?
    } else if cursor.eat_word("rename") {
        let if_exists = cursor.if_exists()?;
        TableChange::Rename { if_exists, renames: renames(cursor)? }
    } else if cursor.is_word("alter") {
        alter_column(cursor)?
    } else if cursor.eat_word("with") {
        TableChange::Options(options(cursor)?)
    } else {
        return Err(cursor.no_viable());
    };
    Ok(StatementKind::AlterTable { name, if_exists, change })
}

fn parenthesised_or_bare<T>(
    cursor: &mut Cursor<'_>,
    mut item: impl FnMut(&mut Cursor<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    if !cursor.eat_symbol("(") {
        return if cursor.is_script { cursor.list(item) } else { Ok(vec![item(cursor)?]) };
    }
    let items = cursor.list(item)?;
    cursor.expect_symbol(")")?;
    Ok(items)
}

fn drop_columns(cursor: &mut Cursor<'_>) -> Result<TableChange> {
    if cursor.is_word("compact") && cursor.peek_ahead(1).is_word("storage") {
        cursor.next();
        cursor.next();
        return Ok(TableChange::DropCompactStorage);
    }
    let if_exists = cursor.if_exists()?;
    let columns: Vec<Name> = parenthesised_or_bare(cursor, |cursor| cursor.name())?;
    let mut timestamp = None;
    if cursor.eat_word("using") {
        cursor.expect_word("timestamp")?;
        let token = cursor.expect_kind(TokenKind::Integer, "INTEGER")?;
        let parsed: i64 = token.text.parse().map_err(|_| Error::Invalid {
            location: token.location,
            what: format!("{} is out of range for a timestamp in microseconds", token.text),
        })?;
        timestamp = Some(parsed);
    }
    Ok(TableChange::Drop { if_exists, columns, timestamp })
}

fn alter_column(cursor: &mut Cursor<'_>) -> Result<TableChange> {
    let column = if cursor.peek_ahead(1).is_word("if") { None } else { Some(2) };
    if let Some(ahead) = column {
        let next = cursor.peek_ahead(ahead);
        let fits = ["type", "masked", "drop", "check"].iter().any(|word| next.is_word(word));
        if cursor.is_column_ahead(1) && !fits {
            return Err(cursor.no_viable_ahead(ahead));
        }
    }
    cursor.next();
    let if_exists = cursor.if_exists()?;
    let name = cursor.column()?;
    if column.is_some() && cursor.eat_word("type") {
        return Ok(TableChange::Retype { name, to: type_text(cursor)? });
    }
    if cursor.is_word("masked") {
        return Ok(TableChange::Mask { if_exists, column: name, mask: mask(cursor)? });
    }
    if cursor.eat_word("drop") {
        if !(cursor.is_script && cursor.eat_word("check")) {
            cursor.expect_word("masked")?;
            return Ok(TableChange::Unmask { if_exists, column: name });
        }
    } else if cursor.is_script && cursor.eat_word("check") {
        while !cursor.at_end() && !cursor.is_symbol(";") {
            cursor.next();
        }
    } else {
        return Err(cursor.no_viable());
    }
    Ok(TableChange::Constraint)
}
