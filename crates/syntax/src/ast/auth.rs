//! Roles, permissions, identities.

use halcyon_model::access::{Permission, Resource, ResourceKind};

use super::{QualifiedName, TypeText};
use crate::error::Error;

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
        resource: GrantedOn,
        grantee: String,
    },
    ListPermissions {
        permissions: Vec<Permission>,
        resource: Option<GrantedOn>,
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
    /// `GENERATED PASSWORD`, of Cassandra 6.0: the error of a server that generates none.
    pub generated_password: Option<Error>,
    pub superuser: Option<bool>,
    pub login: Option<bool>,
    /// `OPTIONS = { … }`
    pub custom: Vec<(String, String)>,
    /// `ACCESS TO DATACENTERS { … }`; empty: all of them.
    pub datacenters: Option<Vec<String>>,
    /// `ACCESS FROM CIDRS { … }`; empty: all of them.
    pub cidrs: Option<Vec<String>>,
}

/// What permissions are granted on, as it is written: names of tables and functions may lack their keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantedOn {
    Resource(Resource),
    Table(QualifiedName),
    Function(QualifiedName, Vec<TypeText>),
}

impl GrantedOn {
    pub fn kind(&self) -> ResourceKind {
        match self {
            GrantedOn::Resource(resource) => resource.kind(),
            GrantedOn::Table(_) => ResourceKind::Table,
            GrantedOn::Function(..) => ResourceKind::Function,
        }
    }
}
