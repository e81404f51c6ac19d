//! Roles, permissions, identities.

use super::{QualifiedName, TypeText};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthStatement {
    /// CREATE USER too.
    CreateRole {
        name: String,
        if_not_exists: bool,
        options: RoleOptions,
    },
    AlterRole {
        name: String,
        if_exists: bool,
        options: RoleOptions,
    },
    DropRole {
        name: String,
        if_exists: bool,
    },
    /// `is_grant` is false for REVOKE.
    GrantRole {
        is_grant: bool,
        role: String,
        grantee: String,
    },
    GrantPermissions {
        is_grant: bool,
        permissions: Vec<Permission>,
        resource: Resource,
        grantee: String,
    },
    ListPermissions {
        permissions: Vec<Permission>,
        resource: Option<Resource>,
        of: Option<String>,
        recursive: bool,
    },
    ListRoles {
        of: Option<String>,
        recursive: bool,
    },
    ListUsers,
    AddIdentity {
        identity: String,
        role: String,
        if_not_exists: bool,
    },
    DropIdentity {
        identity: String,
        if_exists: bool,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleOptions {
    /// Whether any was named.
    pub named: bool,
    pub password: Option<String>,
    pub hashed_password: Option<String>,
    pub superuser: Option<bool>,
    pub login: Option<bool>,
    /// `OPTIONS = { … }`
    pub custom: Vec<(String, String)>,
    /// `ACCESS TO DATACENTERS { … }`; empty: all.
    pub datacenters: Vec<String>,
    pub cidrs: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    AllKeyspaces,
    Keyspace(String),
    TablesOf(String),
    Table(QualifiedName),
    AllRoles,
    Role(String),
    AllFunctions,
    FunctionsOf(String),
    Function(QualifiedName, Vec<TypeText>),
    AllMBeans,
    MBean(String),
}

impl Resource {
    /// The class that messages name.
    pub fn class(&self) -> &'static str {
        match self {
            Resource::AllKeyspaces
            | Resource::Keyspace(_)
            | Resource::TablesOf(_)
            | Resource::Table(_) => "DataResource",
            Resource::AllRoles | Resource::Role(_) => "RoleResource",
            Resource::AllFunctions | Resource::FunctionsOf(_) | Resource::Function(..) => {
                "FunctionResource"
            }
            Resource::AllMBeans | Resource::MBean(_) => "JMXResource",
        }
    }

    /// Whether the permission can be granted on it.
    pub fn applies(&self, permission: Permission) -> bool {
        use Permission::{
            Alter, Authorize, Create, Describe, Drop, Execute, Modify, Select, SelectMasked, Unmask,
        };
        let applicable: &[Permission] = match self {
            Resource::AllKeyspaces | Resource::Keyspace(_) | Resource::TablesOf(_) => {
                &[Create, Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked]
            }
            Resource::Table(_) => &[Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked],
            Resource::AllRoles => &[Create, Alter, Drop, Authorize, Describe],
            Resource::Role(_) => &[Alter, Drop, Authorize],
            Resource::AllFunctions | Resource::FunctionsOf(_) => {
                &[Create, Alter, Drop, Authorize, Execute]
            }
            Resource::Function(..) => &[Alter, Drop, Authorize, Execute],
            Resource::AllMBeans | Resource::MBean(_) => {
                &[Authorize, Describe, Execute, Modify, Select]
            }
        };
        applicable.contains(&permission)
    }
}
