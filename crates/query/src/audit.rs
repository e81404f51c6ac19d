//! What an audit log says of a statement (`CQLStatement.getAuditLogContext`), and its text without passwords.

use std::borrow::Cow;

use halcyon_cql::plan::Plan;
use halcyon_cql::plan::modify::StatementType;
use halcyon_cql::plan::requires::resource;
use halcyon_model::access::Resource;
use halcyon_schema::catalog::{Catalog, Table};
use halcyon_syntax::ast::{AuthStatement, GrantedOn, Name, QualifiedName, StatementKind};
use halcyon_syntax::{parse_statement, password};

use crate::prepared::PreparedStatement;

/// `AuditLogEntryType`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditType {
    Select,
    Update,
    Delete,
    Truncate,
    CreateKeyspace,
    AlterKeyspace,
    DropKeyspace,
    CreateTable,
    AlterTable,
    DropTable,
    PrepareStatement,
    CreateTrigger,
    DropTrigger,
    CreateIndex,
    DropIndex,
    Grant,
    Revoke,
    CreateType,
    AlterType,
    DropType,
    CreateView,
    AlterView,
    DropView,
    CreateFunction,
    DropFunction,
    CreateAggregate,
    DropAggregate,
    CreateRole,
    AlterRole,
    DropRole,
    ListRoles,
    ListPermissions,
    CreateIdentity,
    DropIdentity,
    Batch,
    UseKeyspace,
    Describe,
    RequestFailure,
    LoginError,
    UnauthorizedAttempt,
    LoginSuccess,
}

/// `AuditLogEntryCategory`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditCategory {
    Query,
    Dml,
    Ddl,
    Dcl,
    Other,
    Auth,
    Error,
    Prepare,
}

impl AuditCategory {
    pub const ALL: [AuditCategory; 8] = [
        AuditCategory::Query,
        AuditCategory::Dml,
        AuditCategory::Ddl,
        AuditCategory::Dcl,
        AuditCategory::Other,
        AuditCategory::Auth,
        AuditCategory::Error,
        AuditCategory::Prepare,
    ];

    pub fn name(self) -> &'static str {
        match self {
            AuditCategory::Query => "QUERY",
            AuditCategory::Dml => "DML",
            AuditCategory::Ddl => "DDL",
            AuditCategory::Dcl => "DCL",
            AuditCategory::Other => "OTHER",
            AuditCategory::Auth => "AUTH",
            AuditCategory::Error => "ERROR",
            AuditCategory::Prepare => "PREPARE",
        }
    }
}

impl AuditType {
    /// As entries have them.
    pub fn names(self) -> (&'static str, AuditCategory) {
        use AuditCategory::{Auth, Dcl, Ddl, Dml, Error, Other, Prepare, Query};
        match self {
            AuditType::Select => ("SELECT", Query),
            AuditType::Update => ("UPDATE", Dml),
            AuditType::Delete => ("DELETE", Dml),
            AuditType::Batch => ("BATCH", Dml),
            AuditType::Truncate => ("TRUNCATE", Ddl),
            AuditType::CreateKeyspace => ("CREATE_KEYSPACE", Ddl),
            AuditType::AlterKeyspace => ("ALTER_KEYSPACE", Ddl),
            AuditType::DropKeyspace => ("DROP_KEYSPACE", Ddl),
            AuditType::CreateTable => ("CREATE_TABLE", Ddl),
            AuditType::AlterTable => ("ALTER_TABLE", Ddl),
            AuditType::DropTable => ("DROP_TABLE", Ddl),
            AuditType::CreateTrigger => ("CREATE_TRIGGER", Ddl),
            AuditType::DropTrigger => ("DROP_TRIGGER", Ddl),
            AuditType::CreateIndex => ("CREATE_INDEX", Ddl),
            AuditType::DropIndex => ("DROP_INDEX", Ddl),
            AuditType::CreateType => ("CREATE_TYPE", Ddl),
            AuditType::AlterType => ("ALTER_TYPE", Ddl),
            AuditType::DropType => ("DROP_TYPE", Ddl),
            AuditType::CreateView => ("CREATE_VIEW", Ddl),
            AuditType::AlterView => ("ALTER_VIEW", Ddl),
            AuditType::DropView => ("DROP_VIEW", Ddl),
            AuditType::CreateFunction => ("CREATE_FUNCTION", Ddl),
            AuditType::DropFunction => ("DROP_FUNCTION", Ddl),
            AuditType::CreateAggregate => ("CREATE_AGGREGATE", Ddl),
            AuditType::DropAggregate => ("DROP_AGGREGATE", Ddl),
            AuditType::Grant => ("GRANT", Dcl),
            AuditType::Revoke => ("REVOKE", Dcl),
            AuditType::CreateRole => ("CREATE_ROLE", Dcl),
            AuditType::AlterRole => ("ALTER_ROLE", Dcl),
            AuditType::DropRole => ("DROP_ROLE", Dcl),
            AuditType::ListRoles => ("LIST_ROLES", Dcl),
            AuditType::ListPermissions => ("LIST_PERMISSIONS", Dcl),
            AuditType::CreateIdentity => ("CREATE_IDENTITY", Dcl),
            AuditType::DropIdentity => ("DROP_IDENTITY", Dcl),
            AuditType::PrepareStatement => ("PREPARE_STATEMENT", Prepare),
            AuditType::UseKeyspace => ("USE_KEYSPACE", Other),
            AuditType::Describe => ("DESCRIBE", Other),
            AuditType::RequestFailure => ("REQUEST_FAILURE", Error),
            AuditType::LoginError => ("LOGIN_ERROR", Auth),
            AuditType::UnauthorizedAttempt => ("UNAUTHORIZED_ATTEMPT", Auth),
            AuditType::LoginSuccess => ("LOGIN_SUCCESS", Auth),
        }
    }
}

/// What an entry says of its statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditContext {
    pub kind: AuditType,
    pub keyspace: Option<String>,
    /// A table, a type, an index, a resource.
    pub scope: Option<String>,
}

impl AuditContext {
    fn of(kind: AuditType, keyspace: Option<&str>, scope: Option<&str>) -> AuditContext {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        AuditContext { kind, keyspace: owned(keyspace), scope: owned(scope) }
    }

    fn of_table(kind: AuditType, table: &Table) -> AuditContext {
        AuditContext::of(kind, Some(&table.schema.keyspace), Some(&table.schema.name))
    }
}

impl PreparedStatement {
    /// `keyspace`: the session's.
    pub fn audit(&self, catalog: &Catalog, keyspace: Option<&str>) -> AuditContext {
        let keyspace = self.keyspace.as_deref().or(keyspace);
        match &self.plan {
            Plan::Select(plan) => AuditContext::of_table(AuditType::Select, &plan.table),
            Plan::Modification(plan) => {
                let is_delete = plan.kind == StatementType::Delete;
                let kind = if is_delete { AuditType::Delete } else { AuditType::Update };
                AuditContext::of_table(kind, &plan.table)
            }
            Plan::Batch(_) => AuditContext::of(AuditType::Batch, None, None),
            Plan::Other(statement) => of_other(&statement.kind, catalog, keyspace),
        }
    }

    /// Its text, without the password of a role.
    pub fn text_without_password(&self) -> Cow<'_, str> {
        match &self.plan {
            Plan::Other(statement) if matches!(statement.kind, StatementKind::Auth(_)) => {
                password::literals_hidden(&self.text)
            }
            _ => Cow::Borrowed(&self.text),
        }
    }
}

/// A text that was refused: one about roles without its password, any other without all behind the word. `was_prepared`: only its
/// execution was refused.
pub fn refused_text(text: &str, was_prepared: bool) -> Cow<'_, str> {
    if !password::is_mentioned(text) {
        return Cow::Borrowed(text);
    }
    match parse_statement(text).map(|statement| statement.kind) {
        Ok(StatementKind::Auth(_)) => password::literals_hidden(text),
        Ok(_) if was_prepared => Cow::Borrowed(text),
        _ => password::hidden(text),
    }
}

fn of_other(kind: &StatementKind, catalog: &Catalog, keyspace: Option<&str>) -> AuditContext {
    let alone = |kind| AuditContext::of(kind, None, None);
    let of_keyspace = |kind, name: &Name| AuditContext::of(kind, Some(&name.text), None);
    let named = |kind, name: &QualifiedName| {
        AuditContext::of(kind, name.keyspace.as_deref().or(keyspace), Some(&name.name))
    };
    let on = |kind, table: &QualifiedName, name: Option<&Name>| {
        let keyspace = table.keyspace.as_deref().or(keyspace);
        AuditContext::of(kind, keyspace, name.map(|name| name.text.as_str()))
    };
    match kind {
        StatementKind::Use { keyspace } => {
            AuditContext::of(AuditType::UseKeyspace, Some(keyspace), None)
        }
        StatementKind::CreateKeyspace { name, .. } => of_keyspace(AuditType::CreateKeyspace, name),
        StatementKind::AlterKeyspace { name, .. } => of_keyspace(AuditType::AlterKeyspace, name),
        StatementKind::DropKeyspace { name, .. } => of_keyspace(AuditType::DropKeyspace, name),
        StatementKind::CreateType(create) => named(AuditType::CreateType, &create.name),
        StatementKind::AlterType { name, .. } => named(AuditType::AlterType, name),
        StatementKind::DropType { name, .. } => named(AuditType::DropType, name),
        StatementKind::CreateTable(create) => named(AuditType::CreateTable, &create.name),
        StatementKind::AlterTable { name, .. } => named(AuditType::AlterTable, name),
        StatementKind::DropTable { name, .. } => named(AuditType::DropTable, name),
        StatementKind::CreateView(create) => named(AuditType::CreateView, &create.name),
        StatementKind::AlterView { name, .. } => named(AuditType::AlterView, name),
        StatementKind::DropView { name, .. } => named(AuditType::DropView, name),
        StatementKind::CreateIndex(create) => {
            on(AuditType::CreateIndex, &create.table, create.name.as_ref())
        }
        StatementKind::DropIndex { name, .. } => named(AuditType::DropIndex, name),
        StatementKind::CreateFunction(create) => named(AuditType::CreateFunction, &create.name),
        StatementKind::DropFunction { name, .. } => named(AuditType::DropFunction, name),
        StatementKind::CreateAggregate(create) => named(AuditType::CreateAggregate, &create.name),
        StatementKind::DropAggregate { name, .. } => named(AuditType::DropAggregate, name),
        StatementKind::CreateTrigger(create) => {
            on(AuditType::CreateTrigger, &create.table, Some(&create.name))
        }
        StatementKind::DropTrigger { name, table, .. } => {
            on(AuditType::DropTrigger, table, Some(name))
        }
        StatementKind::Auth(statement) => of_roles(statement, catalog, keyspace),
        StatementKind::Truncate { name } => named(AuditType::Truncate, name),
        // The last four have plans, or stand in scripts only.
        StatementKind::Describe(_)
        | StatementKind::Select(_)
        | StatementKind::Modification(_)
        | StatementKind::Batch(_)
        | StatementKind::Skipped { .. } => alone(AuditType::Describe),
    }
}

fn of_roles(statement: &AuthStatement, catalog: &Catalog, keyspace: Option<&str>) -> AuditContext {
    let alone = |kind| AuditContext::of(kind, None, None);
    match statement {
        AuthStatement::CreateRole { .. } => alone(AuditType::CreateRole),
        AuthStatement::AlterRole { .. } => alone(AuditType::AlterRole),
        AuthStatement::DropRole { .. } => alone(AuditType::DropRole),
        AuthStatement::GrantRole { is_grant: true, .. } => alone(AuditType::Grant),
        AuthStatement::GrantRole { is_grant: false, .. } => alone(AuditType::Revoke),
        AuthStatement::GrantPermissions { is_grant, resource, .. } => {
            let kind = if *is_grant { AuditType::Grant } else { AuditType::Revoke };
            of_resource(kind, resource, catalog, keyspace)
        }
        AuthStatement::ListPermissions { .. } => alone(AuditType::ListPermissions),
        AuthStatement::ListRoles { .. } | AuthStatement::ListUsers => alone(AuditType::ListRoles),
        AuthStatement::AddIdentity { .. } => alone(AuditType::CreateIdentity),
        AuthStatement::DropIdentity { .. } => alone(AuditType::DropIdentity),
    }
}

/// A resource stands in the place of the table, and what it is a part of in that of the keyspace.
fn of_resource(
    kind: AuditType,
    granted: &GrantedOn,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> AuditContext {
    let resource = resource(granted, catalog, keyspace).ok();
    let parent = resource.as_ref().map(|of| of.parent().unwrap_or_else(|| of.clone()));
    let (parent, name) = (parent.map(|of| of.name()), resource.map(|of: Resource| of.name()));
    AuditContext { kind, keyspace: parent, scope: name }
}
