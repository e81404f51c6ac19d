//! Roles, users, permissions, identities.

use halcyon_model::access::{Permission, Resource};

use super::cursor::Cursor;
use super::definitions::argument_types;
use super::properties::option_map;
use super::term::function_name;
use crate::ast::{AuthStatement, GrantedOn, RoleOptions, StatementKind};
use crate::error::{Error, Result};
use crate::lexer::TokenKind;

fn role_name(cursor: &mut Cursor<'_>) -> Result<String> {
    if cursor.peek().kind == TokenKind::String {
        return Ok(cursor.next().value().into_owned());
    }
    Ok(cursor.definite_name("role")?.text)
}

/// A user, as statements older than roles name one: no keyword, never quoted.
fn user_name(cursor: &mut Cursor<'_>, what: &str) -> Result<String> {
    let token = cursor.peek();
    match token.kind {
        TokenKind::QuotedName => Err(cursor.refused(what)),
        TokenKind::String => Ok(cursor.next().value().into_owned()),
        TokenKind::Word
            if cursor.is_name_ahead(0) && !super::words::is_unreserved_keyword(token.text) =>
        {
            Ok(cursor.next().text.to_owned())
        }
        _ => Err(cursor.no_viable()),
    }
}

const QUOTED_USER: &str =
    "Quoted strings are are not supported for user names and USER is deprecated, please use ROLE";
const QUOTED_IDENTITY: &str = "Quoted strings are are not supported for identity";

fn auth(statement: AuthStatement) -> Result<StatementKind> {
    Ok(StatementKind::Auth(statement))
}

/// `ROLE` or `USER` after CREATE.
pub(super) fn create_role(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let is_user = cursor.next().is_word("user");
    let if_not_exists = cursor.if_not_exists()?;
    let (name, mut options) = name_and_options(cursor, is_user)?;
    if is_user {
        options.login = Some(true);
        options.superuser.get_or_insert(false);
    }
    auth(AuthStatement::CreateRole { name, if_not_exists, options })
}

pub(super) fn alter_role(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let is_user = cursor.next().is_word("user");
    let if_exists = cursor.if_exists()?;
    let (name, options) = name_and_options(cursor, is_user)?;
    auth(AuthStatement::AlterRole { name, if_exists, options })
}

pub(super) fn drop_role(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let is_user = cursor.next().is_word("user");
    let if_exists = cursor.if_exists()?;
    let name = if is_user { user_name(cursor, QUOTED_USER)? } else { role_name(cursor)? };
    auth(AuthStatement::DropRole { name, if_exists })
}

fn name_and_options(cursor: &mut Cursor<'_>, is_user: bool) -> Result<(String, RoleOptions)> {
    let mut options = RoleOptions::default();
    let name = if is_user {
        let name = user_name(cursor, QUOTED_USER)?;
        if cursor.eat_word("with") {
            user_password(cursor, &mut options)?;
        }
        if cursor.eat_word("superuser") {
            options.superuser = Some(true);
        } else if cursor.eat_word("nosuperuser") {
            options.superuser = Some(false);
        }
        options.named = options != RoleOptions::default();
        name
    } else {
        let name = role_name(cursor)?;
        if cursor.eat_word("with") {
            options.named = true;
            role_option(cursor, &mut options)?;
            while cursor.eat_word("and") {
                role_option(cursor, &mut options)?;
            }
        }
        name
    };
    let given = [
        ("password", options.password.is_some()),
        ("hashed password", options.hashed_password.is_some()),
        ("generated password", options.generated_password.is_some()),
    ];
    let mut given = given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name);
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        let text = format!("Options '{one}' and '{other}' are mutually exclusive");
        return Err(cursor.refused(text));
    }
    Ok((name, options))
}

fn string(cursor: &mut Cursor<'_>) -> Result<String> {
    Ok(cursor.expect_kind(TokenKind::String, "STRING_LITERAL")?.value().into_owned())
}

fn user_password(cursor: &mut Cursor<'_>, options: &mut RoleOptions) -> Result<()> {
    if cursor.eat_word("password") {
        options.password = Some(string(cursor)?);
    } else if cursor.eat_word("hashed") {
        cursor.expect_word("password")?;
        options.hashed_password = Some(string(cursor)?);
    } else if let Some(unknown) = generated(cursor)? {
        options.generated_password = Some(unknown);
    } else {
        return Err(cursor.no_viable());
    }
    Ok(())
}

/// `GENERATED PASSWORD`, and what Cassandra 5.0 says of it.
fn generated(cursor: &mut Cursor<'_>) -> Result<Option<Error>> {
    let unknown = cursor.no_viable();
    if !cursor.eat_word("generated") {
        return Ok(None);
    }
    if !cursor.eat_word("password") {
        return Err(unknown);
    }
    Ok(Some(unknown))
}

fn boolean(cursor: &mut Cursor<'_>) -> Result<bool> {
    cursor.expect_symbol("=")?;
    if cursor.eat_word("true") {
        Ok(true)
    } else if cursor.eat_word("false") {
        Ok(false)
    } else {
        Err(cursor.mismatched("BOOLEAN"))
    }
}

/// `RoleOptions.setOption`
fn set<T>(cursor: &Cursor<'_>, option: &mut Option<T>, name: &str, value: T) -> Result<()> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(cursor.refused(format!("Multiple definition for property '{name}'"))),
    }
}

fn role_option(cursor: &mut Cursor<'_>, options: &mut RoleOptions) -> Result<()> {
    if cursor.eat_word("password") {
        cursor.expect_symbol("=")?;
        let password = string(cursor)?;
        set(cursor, &mut options.password, "PASSWORD", password)?;
    } else if cursor.eat_word("hashed") {
        cursor.expect_word("password")?;
        cursor.expect_symbol("=")?;
        let hash = string(cursor)?;
        set(cursor, &mut options.hashed_password, "HASHED PASSWORD", hash)?;
    } else if let Some(unknown) = generated(cursor)? {
        set(cursor, &mut options.generated_password, "GENERATED PASSWORD", unknown)?;
    } else if cursor.eat_word("options") {
        cursor.expect_symbol("=")?;
        let is_second = !options.custom.is_empty();
        options.custom = option_map(cursor)?;
        if is_second {
            return Err(cursor.refused("Multiple definition for property 'OPTIONS'"));
        }
    } else if cursor.eat_word("superuser") {
        let superuser = boolean(cursor)?;
        set(cursor, &mut options.superuser, "SUPERUSER", superuser)?;
    } else if cursor.eat_word("login") {
        let login = boolean(cursor)?;
        set(cursor, &mut options.login, "LOGIN", login)?;
    } else if cursor.eat_word("access") {
        access(cursor, options)?;
    } else {
        return Err(cursor.no_viable());
    }
    Ok(())
}

/// `ACCESS TO ALL DATACENTERS`, `ACCESS TO DATACENTERS { … }`, and the same `FROM` CIDRS.
fn access(cursor: &mut Cursor<'_>, options: &mut RoleOptions) -> Result<()> {
    let what = if cursor.eat_word("to") {
        "datacenters"
    } else if cursor.eat_word("from") {
        "cidrs"
    } else {
        return Err(cursor.no_viable());
    };
    let is_all = cursor.eat_word("all");
    cursor.expect_word(what)?;
    let mut names = Vec::new();
    if !is_all {
        cursor.expect_symbol("{")?;
        names = cursor.list(string)?;
        cursor.expect_symbol("}")?;
    }
    let (place, shown) = match what {
        "datacenters" => (&mut options.datacenters, "DCs"),
        _ => (&mut options.cidrs, "CIDR Groups"),
    };
    match place {
        None => *place = Some(names),
        Some(known) if is_all && !known.is_empty() => {
            return Err(cursor.failed(&format!("{shown} have already been set")));
        }
        Some(known) if !is_all && known.is_empty() => {
            return Err(cursor.failed("All has been set"));
        }
        Some(known) => known.extend(names),
    }
    Ok(())
}

pub(super) fn add_identity(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.expect_words(&["add", "identity"])?;
    let if_not_exists = cursor.if_not_exists()?;
    let identity = user_name(cursor, QUOTED_IDENTITY)?;
    cursor.expect_words(&["to", "role"])?;
    let role = user_name(cursor, QUOTED_IDENTITY)?;
    auth(AuthStatement::AddIdentity { identity, role, if_not_exists })
}

pub(super) fn drop_identity(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.next();
    let if_exists = cursor.if_exists()?;
    let identity = user_name(cursor, QUOTED_IDENTITY)?;
    auth(AuthStatement::DropIdentity { identity, if_exists })
}

fn permission_ahead(cursor: &Cursor<'_>) -> Option<Permission> {
    Permission::ALL.into_iter().find(|permission| cursor.is_word(permission.name()))
}

fn permission(cursor: &mut Cursor<'_>) -> Result<Permission> {
    let permission = permission_ahead(cursor).ok_or_else(|| cursor.no_viable())?;
    cursor.next();
    cursor.eat_word("permission");
    Ok(permission)
}

/// `ALL [PERMISSIONS]`, or a list.
fn permissions(cursor: &mut Cursor<'_>) -> Result<Vec<Permission>> {
    if cursor.eat_word("all") {
        cursor.eat_word("permissions");
        return Ok(Permission::ALL.to_vec());
    }
    cursor.list(permission)
}

/// Whether permissions and not a role are granted. Roles may be called `all`, `unmask` or `select_masked`.
fn begins_permissions(cursor: &Cursor<'_>) -> bool {
    let next = cursor.peek_ahead(1);
    let is_role = next.is_word("to") || next.is_word("from");
    let is_name = cursor.is_name_ahead(0);
    (cursor.is_word("all") || permission_ahead(cursor).is_some()) && !(is_name && is_role)
}

/// GRANT and REVOKE, of permissions or of a role.
pub(super) fn grant(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    let is_grant = cursor.is_word("grant");
    let preposition = if is_grant { "to" } else { "from" };
    if cursor.peek_ahead(1).is_word("all") && cursor.peek_ahead(2).kind == TokenKind::End {
        return Err(cursor.no_viable_ahead(2));
    }
    cursor.next();
    if !begins_permissions(cursor) {
        let role = role_name(cursor)?;
        cursor.expect_word(preposition)?;
        let grantee = role_name(cursor)?;
        return auth(AuthStatement::GrantRole { is_grant, role, grantee });
    }
    let permissions = permissions(cursor)?;
    cursor.expect_word("on")?;
    let resource = resource(cursor)?;
    cursor.expect_word(preposition)?;
    let grantee = role_name(cursor)?;
    let kind = resource.kind();
    if !permissions.iter().any(|permission| kind.applicable().contains(permission)) {
        return Err(cursor.refused(format!(
            "Resource type {} does not support any of the requested permissions",
            kind.class()
        )));
    }
    auth(AuthStatement::GrantPermissions { is_grant, permissions, resource, grantee })
}

fn resource(cursor: &mut Cursor<'_>) -> Result<GrantedOn> {
    let second = cursor.peek_ahead(1);
    if cursor.is_word("all") {
        let of_all = [
            ("keyspaces", Resource::AllKeyspaces),
            ("mbeans", Resource::AllMBeans),
            ("roles", Resource::AllRoles),
        ];
        if let Some((_, found)) = of_all.into_iter().find(|(word, _)| second.is_word(word)) {
            cursor.next();
            cursor.next();
            return Ok(GrantedOn::Resource(found));
        }
        if second.is_word("functions") || second.is_word("tables") {
            return all_in_keyspace(cursor);
        }
        return Ok(GrantedOn::Table(cursor.table_name()?));
    }
    if cursor.eat_word("keyspace") || cursor.eat_word("schema") {
        return Ok(GrantedOn::Resource(Resource::Keyspace(cursor.definite_name("keyspace")?.text)));
    }
    if cursor.eat_word("table") || cursor.eat_word("columnfamily") {
        return Ok(GrantedOn::Table(cursor.table_name()?));
    }
    let is_string = second.kind == TokenKind::String;
    if (cursor.is_word("mbean") || cursor.is_word("mbeans")) && is_string {
        cursor.next();
        return Ok(GrantedOn::Resource(Resource::MBean(string(cursor)?)));
    }
    cursor.peek_ahead(2);
    let names_table = second.is_symbol(".") || second.is_word("to") || second.is_word("from");
    if cursor.is_word("role") && !names_table {
        cursor.next();
        return Ok(GrantedOn::Resource(Resource::Role(role_name(cursor)?)));
    }
    if cursor.is_word("function") && !names_table {
        cursor.next();
        let name = function_name(cursor)?;
        return Ok(GrantedOn::Function(name, argument_types(cursor)?));
    }
    Ok(GrantedOn::Table(cursor.table_name()?))
}

fn all_in_keyspace(cursor: &mut Cursor<'_>) -> Result<GrantedOn> {
    cursor.next();
    let is_functions = cursor.next().is_word("functions");
    if is_functions && !cursor.is_word("in") {
        return Ok(GrantedOn::Resource(Resource::AllFunctions));
    }
    cursor.expect_words(&["in", "keyspace"])?;
    let keyspace = cursor.definite_name("keyspace")?.text;
    Ok(GrantedOn::Resource(match is_functions {
        true => Resource::FunctionsOf(keyspace),
        false => Resource::AllTables(keyspace),
    }))
}

/// LIST ROLES, USERS or permissions.
pub(super) fn list(cursor: &mut Cursor<'_>) -> Result<StatementKind> {
    cursor.next();
    if cursor.eat_word("users") {
        return auth(AuthStatement::ListUsers);
    }
    let of = |cursor: &mut Cursor<'_>| -> Result<Option<String>> {
        if cursor.eat_word("of") { Ok(Some(role_name(cursor)?)) } else { Ok(None) }
    };
    if cursor.eat_word("roles") {
        let of = of(cursor)?;
        let recursive = !cursor.eat_word("norecursive");
        return auth(AuthStatement::ListRoles { of, recursive });
    }
    let permissions = permissions(cursor)?;
    let resource = if cursor.eat_word("on") { Some(resource(cursor)?) } else { None };
    let of = of(cursor)?;
    let recursive = !cursor.eat_word("norecursive");
    auth(AuthStatement::ListPermissions { permissions, resource, of, recursive })
}
