//! The rule of a whole statement: its first words choose the rule that parses the rest.

use super::cursor::Cursor;
use super::{definitions, describe, modify, properties, role, select, table, types};
use crate::ast::{Modification, StatementKind};
use crate::error::Result;
use crate::lexer::TokenKind;

pub(super) fn statement(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let token = cursor.peek();
    if token.kind != TokenKind::Word {
        return Err(cursor.no_viable());
    }
    match token.text.to_ascii_lowercase().as_str() {
        "select" => Ok(StatementKind::Select(select::select(cursor)?)),
        "insert" => Ok(StatementKind::Modification(modify::insert(cursor)?)),
        "update" => Ok(StatementKind::Modification(Modification::Update(modify::update(cursor)?))),
        "delete" => Ok(StatementKind::Modification(Modification::Delete(modify::delete(cursor)?))),
        "begin" => Ok(StatementKind::Batch(modify::batch(cursor)?)),
        "use" => {
            cursor.next();
            Ok(StatementKind::Use { keyspace: cursor.definite_name("keyspace")?.text })
        }
        "truncate" => {
            cursor.next();
            if !cursor.eat_word("table") {
                cursor.eat_word("columnfamily");
            }
            Ok(StatementKind::Truncate { name: cursor.table_name()? })
        }
        "create" => create(cursor),
        "alter" => alter(cursor),
        "drop" => drop_statement(cursor),
        "grant" | "revoke" => role::grant(cursor),
        "list" => list(cursor),
        "add" => role::add_identity(cursor),
        "describe" | "desc" => describe::describe(cursor),
        _ => Err(cursor.no_viable()),
    }
}

/// `SCHEMA` is another word for it that 5.0's lexer has lost.
fn is_keyspace(cursor: &Cursor<'_>, ahead: usize) -> bool {
    let token = cursor.peek_ahead(ahead);
    token.is_word("keyspace") || (cursor.is_script && token.is_word("schema"))
}

fn list(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let next = cursor.peek_ahead(1);
    const WORDS: [&str; 13] = [
        "roles",
        "users",
        "all",
        "create",
        "alter",
        "drop",
        "select",
        "modify",
        "authorize",
        "describe",
        "execute",
        "unmask",
        "select_masked",
    ];
    if WORDS.iter().any(|word| next.is_word(word)) {
        return role::list(cursor);
    }
    Err(cursor.no_viable_ahead(1))
}

fn create(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let kind = cursor.peek_ahead(1);
    let is = |words: &[&str]| words.iter().any(|word| kind.is_word(word));
    if is(&["or"]) {
        return create_or_replace(cursor);
    }
    let rule: fn(&mut Cursor<'_>) -> Result<StatementKind> = if is_keyspace(cursor, 1) {
        create_keyspace
    } else if is(&["type"]) {
        types::create_type
    } else if is(&["table", "columnfamily"]) {
        table::create_table
    } else if is(&["materialized"]) {
        table::create_view
    } else if is(&["index", "custom"]) {
        definitions::create_index
    } else if is(&["function"]) {
        |cursor| definitions::create_function(cursor, false)
    } else if is(&["aggregate"]) {
        |cursor| definitions::create_aggregate(cursor, false)
    } else if is(&["trigger"]) {
        definitions::create_trigger
    } else if is(&["role", "user"]) {
        role::create_role
    } else {
        return Err(cursor.no_viable_ahead(1));
    };
    cursor.next();
    rule(cursor)
}

fn create_or_replace(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    if !cursor.peek_ahead(2).is_word("replace") {
        return Err(cursor.no_viable_ahead(2));
    }
    let kind = cursor.peek_ahead(3);
    let is_function = kind.is_word("function");
    if !is_function && !kind.is_word("aggregate") {
        return Err(cursor.no_viable_ahead(3));
    }
    (0..3).for_each(|_| {
        cursor.next();
    });
    match is_function {
        true => definitions::create_function(cursor, true),
        false => definitions::create_aggregate(cursor, true),
    }
}

fn create_keyspace(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.next();
    let if_not_exists = cursor.if_not_exists()?;
    let name = cursor.definite_name("keyspace")?;
    if cursor.is_script && !cursor.is_word("with") {
        return Ok(StatementKind::CreateKeyspace { name, if_not_exists, options: Vec::new() });
    }
    cursor.expect_word("with")?;
    let options = properties::options(cursor)?;
    Ok(StatementKind::CreateKeyspace { name, if_not_exists, options })
}

fn alter_keyspace(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.next();
    let if_exists = cursor.if_exists()?;
    let name = cursor.definite_name("keyspace")?;
    cursor.expect_word("with")?;
    let options = properties::options(cursor)?;
    Ok(StatementKind::AlterKeyspace { name, if_exists, options })
}

fn alter_view(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.expect_words(&["materialized", "view"])?;
    let if_exists = cursor.if_exists()?;
    let name = cursor.table_name()?;
    cursor.expect_word("with")?;
    let options = properties::options(cursor)?;
    Ok(StatementKind::AlterView { name, if_exists, options })
}

fn alter(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let kind = cursor.peek_ahead(1);
    let is = |words: &[&str]| words.iter().any(|word| kind.is_word(word));
    let rule: fn(&mut Cursor<'_>) -> Result<StatementKind> = if is(&["type"]) {
        types::alter_type
    } else if is(&["table", "columnfamily"]) {
        table::alter_table
    } else if is_keyspace(cursor, 1) {
        alter_keyspace
    } else if is(&["materialized"]) {
        alter_view
    } else if is(&["role", "user"]) {
        role::alter_role
    } else {
        return Err(cursor.no_viable_ahead(1));
    };
    cursor.next();
    rule(cursor)
}

fn drop_statement(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let kind = cursor.peek_ahead(1);
    let word = kind.text.to_ascii_lowercase();
    let rule: fn(&mut Cursor<'_>) -> Result<StatementKind> = match word.as_str() {
        "function" | "aggregate" => definitions::drop_function,
        "trigger" => definitions::drop_trigger,
        "role" | "user" => role::drop_role,
        "identity" => role::drop_identity,
        "schema" if cursor.is_script => drop_named,
        "keyspace" | "type" | "table" | "columnfamily" | "index" | "materialized" => drop_named,
        _ => return Err(cursor.no_viable_ahead(1)),
    };
    if kind.kind != TokenKind::Word {
        return Err(cursor.no_viable_ahead(1));
    }
    cursor.next();
    rule(cursor)
}

/// Objects that are dropped by name alone.
fn drop_named(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let kind = cursor.next();
    if kind.is_word("materialized") {
        cursor.expect_word("view")?;
    }
    let if_exists = cursor.if_exists()?;
    if kind.is_word("keyspace") || kind.is_word("schema") {
        let name = cursor.definite_name("keyspace")?;
        return Ok(StatementKind::DropKeyspace { name, if_exists });
    }
    if kind.is_word("type") {
        let name = types::type_name(cursor)?;
        return Ok(StatementKind::DropType { name, if_exists });
    }
    if kind.is_word("index") {
        let name = cursor.qualified("index")?;
        return Ok(StatementKind::DropIndex { name, if_exists });
    }
    let name = cursor.table_name()?;
    Ok(match kind.is_word("materialized") {
        true => StatementKind::DropView { name, if_exists },
        false => StatementKind::DropTable { name, if_exists },
    })
}
