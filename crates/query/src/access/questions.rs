//! What a decision lacks, and its answer from `system_auth`.

use std::collections::HashMap;
use std::rc::Rc;

use halcyon_access::{
    Cache, CidrGroups, CidrSettings, Closure, Permissions, Role, RoleFacts, chain,
};
use halcyon_io::clock::now;
use halcyon_model::access::Resource;

use super::store;
use crate::Result;
use crate::coordinator::Coordinator;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Question {
    Role(String),
    /// Of the role, on the resource and on those that contain it.
    Permissions(String, Resource),
    Identity(String),
    CidrGroups,
}

/// The answers of one request: with a validity of zero nothing else keeps them.
#[derive(Debug, Default)]
pub(super) struct Learnt {
    roles: HashMap<String, Rc<RoleFacts>>,
    permissions: Vec<(String, Resource, Permissions)>,
    identities: HashMap<String, Option<String>>,
    cidr_groups: Option<Rc<CidrGroups>>,
}

impl Learnt {
    pub(super) fn role(&self, name: &str) -> Option<Rc<RoleFacts>> {
        self.roles.get(name).cloned()
    }

    pub(super) fn permissions(&self, name: &str, on: &Resource) -> Option<Permissions> {
        let mut known = self.permissions.iter();
        known.find(|(role, resource, _)| role == name && resource == on).map(|(.., of)| *of)
    }

    pub(super) fn identity(&self, identity: &str) -> Option<&Option<String>> {
        self.identities.get(identity)
    }

    pub(super) fn cidr_groups(&self) -> Option<Rc<CidrGroups>> {
        self.cidr_groups.clone()
    }

    pub(super) async fn learn(
        &mut self,
        coordinator: &Coordinator,
        question: Question,
    ) -> Result<()> {
        let state = coordinator.access();
        let _turn = match Cache::keeps(&state.shared) {
            true => Some(state.reading.lock().await),
            false => None,
        };
        match question {
            Question::Role(name) => {
                let facts = role(coordinator, &name).await?;
                self.roles.insert(name, facts);
            }
            Question::Permissions(name, resource) => {
                let facts = match self.role(&name) {
                    Some(facts) => facts,
                    None => role(coordinator, &name).await?,
                };
                let granted = permissions(coordinator, (&name, &facts), &resource).await?;
                self.permissions.push((name, resource, granted));
            }
            Question::Identity(identity) => {
                let role = store::role_of_identity(coordinator, &identity).await?;
                self.identities.insert(identity, role);
            }
            Question::CidrGroups => self.cidr_groups = Some(cidr_groups(coordinator).await?),
        }
        Ok(())
    }
}

/// What is known of a role, from memory or from its rows.
pub(super) async fn role(coordinator: &Coordinator, name: &str) -> Result<Rc<RoleFacts>> {
    let state = coordinator.access();
    if let Some(facts) = state.cache.borrow_mut().role(&state.shared, name) {
        return Ok(facts);
    }
    fresh_role(coordinator, name).await
}

/// From its rows; it is kept.
pub(super) async fn fresh_role(coordinator: &Coordinator, name: &str) -> Result<Rc<RoleFacts>> {
    let state = coordinator.access();
    let shared = &state.shared;
    let epoch = shared.epoch();
    let facts = Rc::new(read_role(coordinator, name).await?);
    state.cache.borrow_mut().put_role(shared, epoch, name, facts.clone());
    Ok(facts)
}

async fn read_role(coordinator: &Coordinator, name: &str) -> Result<RoleFacts> {
    let mut facts = RoleFacts::of(&closure(coordinator, name).await?);
    let settings = coordinator.access().shared.settings();
    if settings.restricts_datacenters {
        facts.datacenters = store::datacenters(coordinator, name).await?;
    }
    let restricts_addresses = |cidrs: CidrSettings| cidrs.superusers || !facts.is_superuser;
    if settings.cidrs.is_some_and(restricts_addresses) {
        facts.cidr_groups = store::cidr_groups_of(coordinator, name).await?;
    }
    Ok(facts)
}

/// The groups of addresses, from memory or from their rows.
pub(super) async fn cidr_groups(coordinator: &Coordinator) -> Result<Rc<CidrGroups>> {
    let state = coordinator.access();
    let shared = &state.shared;
    if let Some(groups) = state.cache.borrow_mut().cidr_groups(shared) {
        return Ok(groups);
    }
    let (epoch, began) = (shared.epoch(), now());
    let groups = Rc::new(store::cidr_groups(coordinator).await?);
    let ended = now();
    state.cidr_metrics.reloaded(ended - began, ended);
    state.cache.borrow_mut().put_cidr_groups(shared, epoch, groups.clone());
    Ok(groups)
}

/// The role and all that it inherits, from their rows.
pub(super) async fn closure(coordinator: &Coordinator, name: &str) -> Result<Vec<Role>> {
    let mut closure = Closure::of(name);
    while let Some(name) = closure.next() {
        if let Some(role) = store::role(coordinator, &name).await? {
            closure.add(role);
        }
    }
    Ok(closure.roles())
}

async fn permissions(
    coordinator: &Coordinator,
    (name, facts): (&str, &Rc<RoleFacts>),
    resource: &Resource,
) -> Result<Permissions> {
    let state = coordinator.access();
    let known = state.cache.borrow_mut().permissions(&state.shared, name, resource);
    match known {
        Some(granted) => Ok(granted),
        None => fresh_permissions(coordinator, (name, facts), resource).await,
    }
}

/// From their rows; they are kept.
pub(super) async fn fresh_permissions(
    coordinator: &Coordinator,
    (name, facts): (&str, &Rc<RoleFacts>),
    resource: &Resource,
) -> Result<Permissions> {
    let state = coordinator.access();
    let epoch = state.shared.epoch();
    let chain = chain(resource, !facts.is_superuser);
    let mut granted = Permissions::NONE;
    if facts.is_superuser {
        // It has what the kinds of resources have.
        granted = chain.iter().flat_map(|of| of.kind().applicable()).copied().collect();
    } else {
        for role in &facts.roles {
            granted = granted.union(store::granted(coordinator, role, &chain).await?);
        }
    }
    let mut cache = state.cache.borrow_mut();
    cache.put_permissions(&state.shared, epoch, (name, facts), (resource, granted));
    Ok(granted)
}
