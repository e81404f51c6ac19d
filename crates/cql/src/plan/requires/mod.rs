//! What a statement requires of its principal: what `authorize(ClientState)` of Cassandra's statement classes asks, in its order.
//!
//! 1. SELECT and modifications require the same at each execution: it is computed when they are prepared (`of_select`, `of_modification`).
//! 2. Everything else is executed as it was written, against the catalog and the keyspace of its execution. What it requires is computed
//!    from these (`of_statement`). Names without a keyspace mean that of the preparation in changes of the schema, and that of the
//!    session in DESCRIBE and in statements about permissions.
//! 3. An unknown name requires nothing: the execution of such a statement fails or changes nothing.
//!
//! What depends on the roles themselves (whose superuser status, who was granted what) is left to the authorizer.

mod requirement;
mod roles;
mod schema;

use halcyon_model::access::{Permission, Resource};
use halcyon_schema::catalog::{Catalog, Table, TableKind};
use halcyon_syntax::ast::StatementKind;

use super::restrictions::Restrictions;

pub use requirement::Requirement;
pub use roles::{applicable, resource};

fn table_of(table: &Table) -> Resource {
    let (keyspace, table) = (table.schema.keyspace.clone(), table.schema.name.clone());
    Resource::Table { keyspace, table }
}

fn executes(calls: Vec<Resource>) -> impl Iterator<Item = Requirement> {
    calls.into_iter().map(|function| Requirement::Permission(Permission::Execute, function))
}

/// `calls`: the user-defined functions that the statement names.
pub(super) fn of_select(
    table: &Table,
    restrictions: &Restrictions,
    calls: Vec<Resource>,
) -> Vec<Requirement> {
    let read = match &table.view {
        Some(view) => {
            Resource::Table { keyspace: table.schema.keyspace.clone(), table: view.base.clone() }
        }
        None => table_of(table),
    };
    let mut requires = vec![Requirement::Permission(Permission::Select, read)];
    requires.extend(executes(calls));
    let restricted = |name: &&String| {
        let column = table.find_column(name);
        column.is_some_and(|column| restrictions.restricts(column))
    };
    let columns: Vec<String> = table.masks.keys().filter(restricted).cloned().collect();
    if !columns.is_empty() {
        requires.push(Requirement::Unmasked { table: table_of(table), columns });
    }
    requires
}

/// `calls`: the user-defined functions that the statement names.
pub(super) fn of_modification(
    table: &Table,
    has_conditions: bool,
    calls: Vec<Resource>,
) -> Vec<Requirement> {
    let permission = |permission| Requirement::Permission(permission, table_of(table));
    let mut requires = vec![permission(Permission::Modify)];
    requires.extend(acting(table));
    if has_conditions || !table.views.is_empty() {
        requires.push(permission(Permission::Select));
    }
    if has_conditions && !table.masks.is_empty() {
        // The answer of a condition that does not hold has the row as it is.
        requires.push(permission(Permission::Unmask));
    }
    requires.extend(table.views.iter().map(|view| {
        let (keyspace, table) = (table.schema.keyspace.clone(), view.clone());
        Requirement::Permission(Permission::Modify, Resource::Table { keyspace, table })
    }));
    requires.extend(executes(calls));
    requires
}

/// Of a virtual table whose rows act, what the MBean behind the same verb of `nodetool` asks (`AuthorizationProxy`), beside MODIFY: a
/// permission on a keyspace does not let a role stop a compaction or change a setting.
fn acting(table: &Table) -> Option<Requirement> {
    const STORAGE_SERVICE: &str = "org.apache.cassandra.db:type=StorageService";
    let permission = match (table.schema.keyspace.as_str(), table.schema.name.as_str()) {
        ("system_views", "settings") => Permission::Modify,
        ("halcyon_views", _) => Permission::Execute,
        _ => return None,
    };
    let is_virtual = table.kind == TableKind::Virtual;
    let mbean = Resource::MBean(STORAGE_SERVICE.to_owned());
    is_virtual.then_some(Requirement::Permission(permission, mbean))
}

/// What a statement without a plan requires. `keyspace`: the one in force.
pub fn of_statement(
    kind: &StatementKind,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> Vec<Requirement> {
    match kind {
        StatementKind::Auth(statement) => roles::of(statement, catalog, keyspace),
        kind => schema::of(kind, catalog, keyspace),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use halcyon_schema::Schema;
    use halcyon_schema::catalog::Keyspace;
    use halcyon_schema::index::{Index, IndexKind, IndexPart};
    use halcyon_schema::mask::ColumnMask;
    use halcyon_schema::view::View;

    use super::*;
    use crate::plan::{self, Plan, Work};

    const SCHEMA: &str = "CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c));
        CREATE TABLE w (c int, k int, v int, PRIMARY KEY (c, k));
        CREATE TABLE plain (k int PRIMARY KEY, v int);";

    /// A table `t` with a view `w` on it, and a table `plain` with an index and a masked column.
    fn catalog() -> Catalog {
        let schema = Schema::parse(SCHEMA, "ks").expect("a schema");
        let mut tables = BTreeMap::new();
        for (id, table) in (0u8..).zip(schema.tables()) {
            let mut table = Table::new([id; 16], TableKind::Regular, table.clone());
            match table.schema.name.as_str() {
                "t" => table.views = vec!["w".to_owned()],
                "w" => {
                    let (base, where_clause) = ("t".to_owned(), String::new());
                    table.kind = TableKind::View;
                    table.view =
                        Some(View { base_id: [0; 16], base, includes_all: true, where_clause });
                }
                _ => {
                    let (keyspace, function) = ("system".to_owned(), "mask_null".to_owned());
                    let mask = ColumnMask { keyspace, function, arguments: Vec::new() };
                    table.masks.insert("v".to_owned(), mask);
                    table.indexes.push(Index {
                        name: "plain_v".to_owned(),
                        kind: IndexKind::Composites,
                        column: "v".to_owned(),
                        part: IndexPart::Value,
                        options: BTreeMap::new(),
                    });
                }
            }
            tables.insert(table.schema.name.clone(), Arc::new(table));
        }
        let keyspace = Keyspace {
            name: "ks".to_owned(),
            replication: BTreeMap::new(),
            durable_writes: true,
            is_virtual: false,
            tables,
            types: BTreeMap::new(),
            functions: halcyon_schema::function::Functions::default(),
        };
        let keyspaces = BTreeMap::from([("ks".to_owned(), Arc::new(keyspace))]);
        Catalog { keyspaces, ..Catalog::default() }
    }

    fn shown(requirement: &Requirement) -> String {
        match requirement {
            Requirement::Permission(permission, resource)
            | Requirement::Grantable(permission, resource)
            | Requirement::Privilege(permission, resource) => {
                format!("{} {resource}", permission.name())
            }
            Requirement::SuperuserOver(role, _) => format!("superuser over {role}"),
            Requirement::OtherRole(role, _) => format!("not {role}"),
            Requirement::Alter { role, not_own } => format!("ALTER {role}{}", not_own.join(" ")),
            Requirement::DropIdentity(identity, _) => format!("DROP {identity}"),
            Requirement::Unmasked { table, columns } => {
                format!("UNMASK {table} {}", columns.join(" "))
            }
            Requirement::SuperuserRole(_) => "superuser role".to_owned(),
            Requirement::Superuser(_) => "superuser".to_owned(),
        }
    }

    /// What a statement requires in the keyspace `ks`, one after the other.
    fn required(text: &str) -> String {
        let catalog = catalog();
        let statement = halcyon_syntax::parse_statement(text).expect(text);
        let work = Work::while_there_is_time(&|| true);
        let prepared = plan::prepare(&statement, &catalog, Some("ks"), &work).expect(text);
        let requires = match prepared.plan {
            Plan::Other(statement) => of_statement(&statement.kind, &catalog, Some("ks")),
            _ => prepared.requires,
        };
        requires.iter().map(shown).collect::<Vec<_>>().join(", ")
    }

    /// Proves that rows are required as 5.0.9 does: of a view, its base is read, and a write to a base writes its views.
    #[test]
    fn rows_require_what_cassandra_asks() {
        for (text, expected) in [
            ("SELECT * FROM t", "SELECT <table ks.t>"),
            ("SELECT * FROM w", "SELECT <table ks.t>"),
            (
                "SELECT * FROM plain WHERE v = 1",
                "SELECT <table ks.plain>, UNMASK <table ks.plain> v",
            ),
            ("INSERT INTO plain (k, v) VALUES (1, 2)", "MODIFY <table ks.plain>"),
            (
                "UPDATE plain SET v = 1 WHERE k = 1 IF v = 2",
                "MODIFY <table ks.plain>, SELECT <table ks.plain>, UNMASK <table ks.plain>",
            ),
            (
                "DELETE FROM t WHERE k = 1",
                "MODIFY <table ks.t>, SELECT <table ks.t>, MODIFY <table ks.w>",
            ),
            (
                "BEGIN BATCH INSERT INTO plain (k) VALUES (1); INSERT INTO plain (k) VALUES (2) IF NOT EXISTS; APPLY BATCH",
                "MODIFY <table ks.plain>, SELECT <table ks.plain>, UNMASK <table ks.plain>",
            ),
            ("TRUNCATE plain", "MODIFY <table ks.plain>"),
            ("USE ks", ""),
            ("DESCRIBE TABLES", ""),
        ] {
            assert_eq!(required(text), expected, "{text}");
        }
    }

    /// Proves that changes of the schema are required as 5.0.9 does, and that names of nothing require nothing.
    #[test]
    fn changes_require_what_cassandra_asks() {
        let options = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
        for (text, expected) in [
            (&*format!("CREATE KEYSPACE x {options}"), "CREATE <all keyspaces>"),
            (&format!("ALTER KEYSPACE ks {options}"), "ALTER <keyspace ks>"),
            ("DROP KEYSPACE ks", "DROP <keyspace ks>"),
            ("CREATE TABLE x (k int PRIMARY KEY)", "CREATE <all tables in ks>"),
            ("CREATE TYPE x (a int)", "CREATE <all tables in ks>"),
            ("ALTER TABLE t ADD x int", "ALTER <table ks.t>"),
            ("DROP TABLE other.t", "DROP <table other.t>"),
            ("DROP TYPE x", "DROP <all tables in ks>"),
            ("DROP MATERIALIZED VIEW w", "ALTER <table ks.t>"),
            ("DROP MATERIALIZED VIEW IF EXISTS x", ""),
            ("CREATE INDEX ON t (v)", "ALTER <table ks.t>"),
            ("DROP INDEX plain_v", "ALTER <table ks.plain>"),
            ("DROP INDEX IF EXISTS x", ""),
            ("CREATE TRIGGER x ON t USING 'x'", "superuser"),
            (
                "CREATE FUNCTION f (a int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS ''",
                "CREATE <all functions in ks>",
            ),
            (
                "CREATE AGGREGATE a (int) SFUNC s STYPE text FINALFUNC e",
                "CREATE <all functions in ks>, EXECUTE <function ks.s(text, int)>, EXECUTE <function ks.e(text)>",
            ),
            ("DROP FUNCTION IF EXISTS f", ""),
        ] {
            assert_eq!(required(text), expected, "{text}");
        }
    }

    /// Proves that statements about roles are required as 5.0.9 does.
    #[test]
    fn roles_require_what_cassandra_asks() {
        for (text, expected) in [
            ("CREATE ROLE r", "CREATE <all roles>"),
            ("CREATE ROLE r WITH SUPERUSER = true", "CREATE <all roles>, superuser role"),
            ("ALTER ROLE r WITH PASSWORD = 'p'", "ALTER r"),
            ("ALTER ROLE r WITH LOGIN = true", "ALTER rLOGIN"),
            ("ALTER ROLE r WITH SUPERUSER = false", "not r, superuser role, ALTER r"),
            ("ALTER ROLE r WITH ACCESS TO ALL DATACENTERS", "superuser role, ALTER r"),
            ("ALTER ROLE r WITH ACCESS FROM CIDRS { 'c' }", "superuser role, ALTER r"),
            ("DROP ROLE r", "DROP <role r>, superuser over r"),
            ("GRANT r TO s", "AUTHORIZE <role r>"),
            ("GRANT SELECT ON t TO r", "AUTHORIZE <table ks.t>, SELECT <table ks.t>"),
            (
                "REVOKE EXECUTE ON FUNCTION ks.f(int) FROM r",
                "AUTHORIZE <function ks.f(int)>, EXECUTE <function ks.f(int)>",
            ),
            ("LIST ROLES", ""),
            ("ADD IDENTITY 'i' TO ROLE 'r'", "CREATE <all roles>, superuser over r"),
            ("DROP IDENTITY 'i'", "DROP i"),
            (
                "GRANT ALL ON FUNCTION ks.f(int) TO r",
                "AUTHORIZE <function ks.f(int)>, ALTER <function ks.f(int)>, DROP <function ks.f(int)>, AUTHORIZE <function ks.f(int)>, EXECUTE <function ks.f(int)>",
            ),
        ] {
            assert_eq!(required(text), expected, "{text}");
        }
    }
}
