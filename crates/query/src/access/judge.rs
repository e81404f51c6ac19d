//! Decides by what is in memory. Whatever is not known, or not named here, is not granted.

use std::net::IpAddr;
use std::rc::Rc;

use halcyon_access::{
    CidrGroups, CidrMode, CidrSettings, Permissions, RoleFacts, SystemRule, of_system,
};
use halcyon_cql::plan::requires::Requirement;
use halcyon_io::clock::now;
use halcyon_metrics::nanos;
use halcyon_model::access::{Permission, Principal, Resource};

use super::questions::{Learnt, Question};
use crate::Error;
use crate::access_state::AccessState;
use crate::coordinator::Coordinator;

/// Why the judge does not grant what it is asked for.
pub(super) enum Stop {
    Refused(Error),
    Unknown(Question),
}

type Verdict<T = ()> = Result<T, Stop>;

fn refused<T>(text: impl Into<String>) -> Verdict<T> {
    Err(Stop::Refused(Error::Unauthorized(text.into())))
}

/// Where a role comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Groups of its address.
    pub groups: Vec<String>,
    pub is_allowed: bool,
}

pub(super) struct Judge<'a> {
    coordinator: &'a Coordinator,
    principal: &'a Principal,
    /// What this request has read.
    learnt: &'a Learnt,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        coordinator: &'a Coordinator,
        principal: &'a Principal,
        learnt: &'a Learnt,
    ) -> Judge<'a> {
        Judge { coordinator, principal, learnt }
    }

    fn state(&self) -> &AccessState {
        self.coordinator.access()
    }

    fn settings(&self) -> &halcyon_access::Settings {
        self.state().shared.settings()
    }

    pub(super) fn all(&self, requires: &[Requirement]) -> Verdict {
        self.present()?;
        requires.iter().try_for_each(|requirement| self.one(requirement))
    }

    /// Whether the principal may execute anything at all: its role may have been dropped since it logged in.
    fn present(&self) -> Verdict {
        match self.principal {
            Principal::System => Ok(()),
            Principal::Anonymous if self.settings().asks_for_login() => {
                refused("You have not logged in")
            }
            Principal::Anonymous => Ok(()),
            Principal::Role { name, address } => self.may_be_connected(name, *address),
        }
    }

    fn may_be_connected(&self, name: &str, address: IpAddr) -> Verdict {
        let facts = self.role(name)?;
        if !facts.can_login {
            return refused(format!("{name} is not permitted to log in"));
        }
        if facts.datacenters.is_some() {
            let catalog = self.coordinator.shard().tables().catalog();
            let here = catalog.data_center();
            if !facts.reaches(here) {
                return refused(format!("You do not have access to this datacenter ({here})"));
            }
        }
        let asks =
            |cidrs: CidrSettings| cidrs.mode == CidrMode::Monitor || facts.cidr_groups.is_some();
        match self.settings().cidrs.filter(|cidrs| asks(*cidrs)) {
            Some(cidrs) => self.may_come_from(name, address, cidrs.mode),
            None => Ok(()),
        }
    }

    fn may_come_from(&self, name: &str, address: IpAddr, mode: CidrMode) -> Verdict {
        let began = now();
        let origin = self.origin(name, address)?;
        let is_accepted = origin.is_allowed || mode == CidrMode::Monitor;
        let (metrics, ended) = (&self.state().cidr_metrics, now());
        metrics.checked(&origin.groups, is_accepted);
        metrics.checks.record(nanos(ended - began), ended);
        match is_accepted {
            true => Ok(()),
            false => refused(format!("You do not have access from this IP {address}")),
        }
    }

    pub(super) fn origin(&self, name: &str, address: IpAddr) -> Verdict<Origin> {
        let (facts, groups) = (self.role(name)?, self.cidr_groups()?);
        let began = now();
        let groups = groups.of(address).to_vec();
        let ended = now();
        self.state().cidr_metrics.lookups.record(nanos(ended - began), ended);
        let comes_from = |allowed: &Vec<String>| groups.iter().any(|group| allowed.contains(group));
        let is_allowed = facts.cidr_groups.as_ref().is_none_or(comes_from);
        Ok(Origin { groups, is_allowed })
    }

    fn cidr_groups(&self) -> Verdict<Rc<CidrGroups>> {
        let state = self.state();
        let kept = state.cache.borrow_mut().cidr_groups(&state.shared);
        kept.or_else(|| self.learnt.cidr_groups()).ok_or(Stop::Unknown(Question::CidrGroups))
    }

    fn one(&self, requirement: &Requirement) -> Verdict {
        match requirement {
            Requirement::Permission(permission, resource) => self.permission(*permission, resource),
            Requirement::Grantable(permission, resource) => self.granted(*permission, resource),
            Requirement::Privilege(permission, resource) => self.privilege(*permission, resource),
            Requirement::Unmasked { table, columns } => self.unmasked(table, columns),
            Requirement::SuperuserRole(refusal) => self.superuser(refusal),
            Requirement::Superuser(refusal) => match self.settings().asks_for_login() {
                true => self.superuser(refusal),
                false => Ok(()),
            },
            Requirement::SuperuserOver(role, refusal) => match self.role(role)?.is_superuser {
                true => self.superuser(refusal),
                false => Ok(()),
            },
            Requirement::OtherRole(role, refusal) => match self.own()?.includes(role) {
                true => refused(*refusal),
                false => Ok(()),
            },
            Requirement::Alter { role, not_own } => self.alter(role, not_own),
            Requirement::DropIdentity(identity, refusal) => self.drop_identity(identity, refusal),
        }
    }

    /// `ClientState.ensurePermission` of a statement on data or functions.
    fn permission(&self, permission: Permission, resource: &Resource) -> Verdict {
        if matches!(self.principal, Principal::Role { .. }) {
            match of_system(permission, resource) {
                SystemRule::None => {}
                SystemRule::Allowed => return Ok(()),
                SystemRule::Refused(text) => return refused(text),
            }
        }
        self.granted(permission, resource)
    }

    /// `ClientState.ensurePermission(Permission, IResource)`
    fn granted(&self, permission: Permission, resource: &Resource) -> Verdict {
        if self.has(permission, resource)? {
            return Ok(());
        }
        let (name, permission) = (self.principal.name(), permission.name());
        refused(format!(
            "User {name} has no {permission} permission on {resource} or any of its parents"
        ))
    }

    fn privilege(&self, permission: Permission, resource: &Resource) -> Verdict {
        if self.has(permission, resource)? {
            return Ok(());
        }
        let name = self.principal.name();
        refused(format!(
            "User {name} does not have sufficient privileges to perform the requested operation"
        ))
    }

    pub(super) fn has(&self, permission: Permission, resource: &Resource) -> Verdict<bool> {
        if !self.settings().authorizes || is_native(resource) {
            return Ok(true);
        }
        match self.principal {
            Principal::System => Ok(true),
            Principal::Anonymous => Ok(false),
            Principal::Role { name, .. } => {
                Ok(self.permissions(name, resource)?.contains(permission))
            }
        }
    }

    fn unmasked(&self, table: &Resource, columns: &[String]) -> Verdict {
        let any = [Permission::Unmask, Permission::SelectMasked];
        for permission in any {
            if self.has(permission, table)? {
                return Ok(());
            }
        }
        let Resource::Table { keyspace, table } = table else {
            return refused("masked columns of something that is not a table");
        };
        let (name, columns) = (self.principal.name(), columns.join(", "));
        refused(format!(
            "User {name} has no UNMASK nor SELECT_MASKED permission on table {keyspace}.{table}, cannot query masked columns [{columns}]"
        ))
    }

    fn superuser(&self, refusal: &str) -> Verdict {
        match self.is_superuser()? {
            true => Ok(()),
            false => refused(refusal),
        }
    }

    pub(super) fn is_superuser(&self) -> Verdict<bool> {
        match self.principal {
            Principal::System => Ok(true),
            Principal::Anonymous => Ok(false),
            Principal::Role { name, .. } => Ok(self.role(name)?.is_superuser),
        }
    }

    fn alter(&self, role: &str, not_own: &[&str]) -> Verdict {
        if self.is_superuser()? {
            return Ok(());
        }
        let is_own = matches!(self.principal, Principal::Role { name, .. } if name == role);
        match not_own.first() {
            Some(option) if is_own => refused(format!("You aren't allowed to alter {option}")),
            None if is_own => Ok(()),
            _ => self.privilege(Permission::Alter, &Resource::Role(role.to_owned())),
        }
    }

    fn drop_identity(&self, identity: &str, refusal: &str) -> Verdict {
        match self.identity(identity)? {
            None => self.privilege(Permission::Drop, &Resource::AllRoles),
            Some(role) => {
                self.privilege(Permission::Drop, &Resource::Role(role.clone()))?;
                match self.role(&role)?.is_superuser {
                    true => self.superuser(refusal),
                    false => Ok(()),
                }
            }
        }
    }

    /// Of the principal; an anonymous one has no roles.
    fn own(&self) -> Verdict<Rc<RoleFacts>> {
        match self.principal {
            Principal::Role { name, .. } => self.role(name),
            Principal::System | Principal::Anonymous => Ok(Rc::default()),
        }
    }

    fn role(&self, name: &str) -> Verdict<Rc<RoleFacts>> {
        if let Some(facts) = self.learnt.role(name) {
            return Ok(facts);
        }
        let state = self.state();
        let known = state.cache.borrow_mut().role(&state.shared, name);
        known.ok_or_else(|| Stop::Unknown(Question::Role(name.to_owned())))
    }

    fn permissions(&self, name: &str, resource: &Resource) -> Verdict<Permissions> {
        if let Some(permissions) = self.learnt.permissions(name, resource) {
            return Ok(permissions);
        }
        let state = self.state();
        let known = state.cache.borrow_mut().permissions(&state.shared, name, resource);
        known.ok_or_else(|| Stop::Unknown(Question::Permissions(name.to_owned(), resource.clone())))
    }

    fn identity(&self, identity: &str) -> Verdict<Option<String>> {
        let role = self.learnt.identity(identity).cloned();
        role.ok_or_else(|| Stop::Unknown(Question::Identity(identity.to_owned())))
    }
}

/// Native functions are everyone's.
fn is_native(resource: &Resource) -> bool {
    match resource {
        Resource::FunctionsOf(keyspace) | Resource::Function { keyspace, .. } => {
            keyspace == "system"
        }
        _ => false,
    }
}
