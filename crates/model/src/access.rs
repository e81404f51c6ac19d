//! Principals, permissions and resources: the names that Apache Cassandra stores in `system_auth` and prints in messages, which
//! resource contains which, and which permissions each can have. Whether a principal has a permission is not decided here.
//!
//! ```text
//!  data ─► data/ks ─► data/ks/* ─► data/ks/t        functions ─► functions/ks ─► functions/ks/f[type^type]
//!  roles ─► roles/r                                 mbean ─► mbean/name
//! ```

use std::fmt;
use std::net::IpAddr;

use crate::CqlType;

/// Who executes a statement (`AuthenticatedUser`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// The node itself: traces, prepared statements, estimates.
    System,
    /// A client of a node that asks for no login.
    Anonymous,
    /// A client that has logged in, and where it comes from. What it can do is looked up at each execution: it may change meanwhile.
    Role { name: String, address: IpAddr },
}

impl Principal {
    /// As messages and audit logs have it.
    pub fn name(&self) -> &str {
        match self {
            Principal::System => "system",
            Principal::Anonymous => "anonymous",
            Principal::Role { name, .. } => name,
        }
    }
}

/// In Cassandra's order, in which LIST PERMISSIONS shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    Create,
    Alter,
    Drop,
    Select,
    Modify,
    Authorize,
    Describe,
    Execute,
    Unmask,
    SelectMasked,
}

use Permission::{
    Alter, Authorize, Create, Describe, Drop, Execute, Modify, Select, SelectMasked, Unmask,
};

impl Permission {
    pub const ALL: [Permission; 10] =
        [Create, Alter, Drop, Select, Modify, Authorize, Describe, Execute, Unmask, SelectMasked];

    /// As `system_auth` stores it; CQL takes it in any case.
    pub fn name(self) -> &'static str {
        match self {
            Create => "CREATE",
            Alter => "ALTER",
            Drop => "DROP",
            Select => "SELECT",
            Modify => "MODIFY",
            Authorize => "AUTHORIZE",
            Describe => "DESCRIBE",
            Execute => "EXECUTE",
            Unmask => "UNMASK",
            SelectMasked => "SELECT_MASKED",
        }
    }
}

/// What a permission is granted on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Resource {
    AllKeyspaces,
    Keyspace(String),
    /// All tables of a keyspace.
    AllTables(String),
    Table {
        keyspace: String,
        table: String,
    },
    AllFunctions,
    /// All functions of a keyspace.
    FunctionsOf(String),
    Function {
        keyspace: String,
        name: String,
        arguments: Vec<CqlType>,
    },
    AllRoles,
    Role(String),
    AllMBeans,
    MBean(String),
}

/// What a resource is a part of, and how large a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    AllKeyspaces,
    Keyspace,
    AllTables,
    Table,
    AllFunctions,
    FunctionsOf,
    Function,
    AllRoles,
    Role,
    AllMBeans,
    MBean,
}

impl ResourceKind {
    /// Cassandra's class, which messages name.
    pub fn class(self) -> &'static str {
        match self {
            Self::AllKeyspaces | Self::Keyspace | Self::AllTables | Self::Table => "DataResource",
            Self::AllFunctions | Self::FunctionsOf | Self::Function => "FunctionResource",
            Self::AllRoles | Self::Role => "RoleResource",
            Self::AllMBeans | Self::MBean => "JMXResource",
        }
    }

    /// The permissions that can be granted on it, in their order (`IResource.applicablePermissions`).
    pub fn applicable(self) -> &'static [Permission] {
        match self {
            Self::AllKeyspaces | Self::Keyspace | Self::AllTables => {
                &[Create, Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked]
            }
            Self::Table => &[Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked],
            Self::AllFunctions | Self::FunctionsOf => &[Create, Alter, Drop, Authorize, Execute],
            Self::Function => &[Alter, Drop, Authorize, Execute],
            Self::AllRoles => &[Create, Alter, Drop, Authorize, Describe],
            Self::Role => &[Alter, Drop, Authorize, Describe],
            Self::AllMBeans | Self::MBean => &[Select, Modify, Authorize, Describe, Execute],
        }
    }
}

impl Resource {
    pub fn kind(&self) -> ResourceKind {
        match self {
            Resource::AllKeyspaces => ResourceKind::AllKeyspaces,
            Resource::Keyspace(_) => ResourceKind::Keyspace,
            Resource::AllTables(_) => ResourceKind::AllTables,
            Resource::Table { .. } => ResourceKind::Table,
            Resource::AllFunctions => ResourceKind::AllFunctions,
            Resource::FunctionsOf(_) => ResourceKind::FunctionsOf,
            Resource::Function { .. } => ResourceKind::Function,
            Resource::AllRoles => ResourceKind::AllRoles,
            Resource::Role(_) => ResourceKind::Role,
            Resource::AllMBeans => ResourceKind::AllMBeans,
            Resource::MBean(_) => ResourceKind::MBean,
        }
    }

    /// The next larger resource: a permission on it holds here too. `None` of the four largest ones.
    pub fn parent(&self) -> Option<Resource> {
        match self {
            Resource::Keyspace(_) => Some(Resource::AllKeyspaces),
            Resource::AllTables(keyspace) => Some(Resource::Keyspace(keyspace.clone())),
            Resource::Table { keyspace, .. } => Some(Resource::AllTables(keyspace.clone())),
            Resource::FunctionsOf(_) => Some(Resource::AllFunctions),
            Resource::Function { keyspace, .. } => Some(Resource::FunctionsOf(keyspace.clone())),
            Resource::Role(_) => Some(Resource::AllRoles),
            Resource::MBean(_) => Some(Resource::AllMBeans),
            Resource::AllKeyspaces
            | Resource::AllFunctions
            | Resource::AllRoles
            | Resource::AllMBeans => None,
        }
    }

    /// As `system_auth.role_permissions` stores it (`IResource.getName`).
    pub fn name(&self) -> String {
        match self {
            Resource::AllKeyspaces => "data".to_owned(),
            Resource::Keyspace(keyspace) => format!("data/{keyspace}"),
            Resource::AllTables(keyspace) => format!("data/{keyspace}/*"),
            Resource::Table { keyspace, table } => format!("data/{keyspace}/{table}"),
            Resource::AllFunctions => "functions".to_owned(),
            Resource::FunctionsOf(keyspace) => format!("functions/{keyspace}"),
            Resource::Function { keyspace, name, arguments } => {
                let classes: Vec<String> = arguments.iter().map(CqlType::to_string).collect();
                format!("functions/{keyspace}/{name}[{}]", classes.join("^"))
            }
            Resource::AllRoles => "roles".to_owned(),
            Resource::Role(role) => format!("roles/{role}"),
            Resource::AllMBeans => "mbean".to_owned(),
            Resource::MBean(name) => format!("mbean/{name}"),
        }
    }

    /// The resource of a stored name; `None`: Cassandra would not read it either.
    pub fn of_name(name: &str) -> Option<Resource> {
        let (root, rest) = match name.split_once('/') {
            Some((root, rest)) => (root, Some(rest)),
            None => (name, None),
        };
        match (root, rest) {
            ("data", None) => Some(Resource::AllKeyspaces),
            ("data", Some(rest)) => match rest.split_once('/') {
                None => Some(Resource::Keyspace(rest.to_owned())),
                Some((keyspace, "*")) => Some(Resource::AllTables(keyspace.to_owned())),
                Some((_, table)) if table.contains('/') => None,
                Some((keyspace, table)) => {
                    let (keyspace, table) = (keyspace.to_owned(), table.to_owned());
                    Some(Resource::Table { keyspace, table })
                }
            },
            ("functions", None) => Some(Resource::AllFunctions),
            ("functions", Some(rest)) => match rest.split_once('/') {
                None => Some(Resource::FunctionsOf(rest.to_owned())),
                Some((keyspace, function)) => of_function(keyspace, function),
            },
            ("roles", None) => Some(Resource::AllRoles),
            ("roles", Some(role)) => Some(Resource::Role(role.to_owned())),
            ("mbean", None) => Some(Resource::AllMBeans),
            ("mbean", Some(name)) if !name.contains('/') => Some(Resource::MBean(name.to_owned())),
            _ => None,
        }
    }
}

/// `name[class^class]`
fn of_function(keyspace: &str, function: &str) -> Option<Resource> {
    let (name, classes) = function.strip_suffix(']')?.rsplit_once('[')?;
    let classes = classes.split('^').filter(|class| !class.is_empty());
    let arguments = classes.map(|class| CqlType::parse(class).ok()).collect::<Option<_>>()?;
    Some(Resource::Function { keyspace: keyspace.to_owned(), name: name.to_owned(), arguments })
}

/// As messages and LIST PERMISSIONS have it (`IResource.toString`).
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::AllKeyspaces => f.write_str("<all keyspaces>"),
            Resource::Keyspace(keyspace) => write!(f, "<keyspace {keyspace}>"),
            Resource::AllTables(keyspace) => write!(f, "<all tables in {keyspace}>"),
            Resource::Table { keyspace, table } => write!(f, "<table {keyspace}.{table}>"),
            Resource::AllFunctions => f.write_str("<all functions>"),
            Resource::FunctionsOf(keyspace) => write!(f, "<all functions in {keyspace}>"),
            Resource::Function { keyspace, name, arguments } => {
                let types: Vec<String> = arguments.iter().map(CqlType::cql_name).collect();
                write!(f, "<function {keyspace}.{name}({})>", types.join(", "))
            }
            Resource::AllRoles => f.write_str("<all roles>"),
            Resource::Role(role) => write!(f, "<role {role}>"),
            Resource::AllMBeans => f.write_str("<all mbeans>"),
            Resource::MBean(name) => write!(f, "<mbean {name}>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned<const N: usize>(texts: [&str; N]) -> [String; N] {
        texts.map(str::to_owned)
    }

    /// Each kind with its stored name, its text and its number of ancestors.
    fn all() -> Vec<(Resource, &'static str, &'static str, usize)> {
        let [keyspace, table, name] = owned(["ks", "t", "f"]);
        let function = |arguments| Resource::Function {
            keyspace: keyspace.clone(),
            name: name.clone(),
            arguments,
        };
        let list = CqlType::List(Box::new(CqlType::Text));
        vec![
            (Resource::AllKeyspaces, "data", "<all keyspaces>", 0),
            (Resource::Keyspace(keyspace.clone()), "data/ks", "<keyspace ks>", 1),
            (Resource::AllTables(keyspace.clone()), "data/ks/*", "<all tables in ks>", 2),
            (Resource::Table { keyspace: keyspace.clone(), table }, "data/ks/t", "<table ks.t>", 3),
            (Resource::AllFunctions, "functions", "<all functions>", 0),
            (Resource::FunctionsOf(keyspace.clone()), "functions/ks", "<all functions in ks>", 1),
            (function(Vec::new()), "functions/ks/f[]", "<function ks.f()>", 2),
            (
                function(vec![CqlType::Int, list]),
                "functions/ks/f[org.apache.cassandra.db.marshal.Int32Type^org.apache.cassandra.db.marshal.ListType(org.apache.cassandra.db.marshal.UTF8Type)]",
                "<function ks.f(int, list<text>)>",
                2,
            ),
            (Resource::AllRoles, "roles", "<all roles>", 0),
            (Resource::Role("a/b".to_owned()), "roles/a/b", "<role a/b>", 1),
            (Resource::AllMBeans, "mbean", "<all mbeans>", 0),
            (Resource::MBean("a:type=b".to_owned()), "mbean/a:type=b", "<mbean a:type=b>", 1),
        ]
    }

    /// Proves that names and texts are those of the classes of 5.0.9, that stored names are read back, and others refused.
    #[test]
    fn names_are_cassandras() {
        for (resource, name, text, _) in all() {
            assert_eq!((resource.name(), resource.to_string()), (name.into(), text.into()));
            assert_eq!(Resource::of_name(name), Some(resource));
        }
        for name in ["", "date", "data/a/b/c", "functions/ks/f", "functions/ks/f[x", "mbean/a/b"] {
            assert_eq!(Resource::of_name(name), None, "{name}");
        }
    }

    /// Proves that each resource has its ancestors up to one of the four largest.
    #[test]
    fn parents_end_at_the_largest_resource() {
        for (resource, name, _, ancestors) in all() {
            let chain = std::iter::successors(resource.parent(), Resource::parent);
            assert_eq!(chain.count(), ancestors, "{name}");
        }
    }

    /// Proves that the permissions of each kind are those of 5.0.9, in its order.
    #[test]
    fn applicable_permissions_are_cassandras() {
        let of = |kind: ResourceKind| -> String {
            let names: Vec<&str> = kind.applicable().iter().map(|of| of.name()).collect();
            names.join(" ")
        };
        let tables = "ALTER DROP SELECT MODIFY AUTHORIZE UNMASK SELECT_MASKED";
        assert_eq!(of(ResourceKind::Table), tables);
        for kind in [ResourceKind::AllKeyspaces, ResourceKind::Keyspace, ResourceKind::AllTables] {
            assert_eq!(of(kind), format!("CREATE {tables}"));
        }
        assert_eq!(of(ResourceKind::Function), "ALTER DROP AUTHORIZE EXECUTE");
        assert_eq!(of(ResourceKind::FunctionsOf), "CREATE ALTER DROP AUTHORIZE EXECUTE");
        assert_eq!(of(ResourceKind::Role), "ALTER DROP AUTHORIZE DESCRIBE");
        assert_eq!(of(ResourceKind::AllRoles), "CREATE ALTER DROP AUTHORIZE DESCRIBE");
        assert_eq!(of(ResourceKind::MBean), "SELECT MODIFY AUTHORIZE DESCRIBE EXECUTE");
        for (resource, name, _, _) in all() {
            assert!(resource.kind().applicable().is_sorted(), "{name}");
        }
        assert!(Permission::ALL.is_sorted());
    }

    /// Proves that principals have the names that messages show.
    #[test]
    fn principals_have_names() {
        let role = Principal::Role { name: "r".to_owned(), address: [127, 0, 0, 1].into() };
        let names = [Principal::System, Principal::Anonymous, role].map(|of| of.name().to_owned());
        assert_eq!(names, ["system", "anonymous", "r"]);
    }
}
