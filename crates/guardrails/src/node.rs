//! The configuration of a node: replaced as a whole, read by each shard from a copy of its own.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use halcyon_model::access::Principal;

use crate::config::{Bounds, Config};
use crate::disk_usage::DiskUsage;
use crate::guard::{Guard, Said};
use crate::specs::Threshold;

/// What is in force. `None`: nothing is checked.
#[derive(Debug, Clone, Default)]
struct InForce {
    /// Of clients that have logged in, and of what no client causes.
    roles: Option<Arc<Config>>,
    /// Of clients of a node that asks for no login: only what the settings file sets.
    anonymous: Option<Arc<Config>>,
}

/// The guardrails of a node.
#[derive(Debug, Default)]
pub struct Guardrails {
    in_force: ArcSwap<InForce>,
    /// Counts replacements.
    version: AtomicU64,
    /// A `DiskUsage`, by its number.
    disk_usage: AtomicU8,
}

impl Guardrails {
    /// `roles`: with Cassandra's defaults; `anonymous`: without them.
    pub fn new(roles: Config, anonymous: Config) -> Guardrails {
        let guardrails = Guardrails::default();
        guardrails.replace(roles, anonymous);
        guardrails
    }

    pub fn replace(&self, roles: Config, anonymous: Config) {
        let some = |config: Config| Some(config).filter(|of| !of.is_off()).map(Arc::new);
        let in_force = InForce { roles: some(roles), anonymous: some(anonymous) };
        self.in_force.store(Arc::new(in_force));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Notes which part of its disk the node's data takes, in percent (`local_data_disk_usage`): writes are refused while it is too large.
    pub fn note_disk_usage(&self, percent: i64) -> Option<Said> {
        let threshold = Threshold::DataDiskUsage;
        let bounds = self.of_node().map_or(Bounds::default(), |of| of.bounds(threshold));
        let usage = DiskUsage::of(percent, bounds);
        self.disk_usage.store(usage as u8, Ordering::Relaxed);
        threshold.spec().judge(bounds, percent, usage.name())
    }

    pub fn disk_usage(&self) -> DiskUsage {
        let number = self.disk_usage.load(Ordering::Relaxed);
        DiskUsage::numbered(number)
    }

    /// What holds for events that no request causes, such as flushes.
    pub fn of_node(&self) -> Option<Arc<Config>> {
        self.in_force.load().roles.clone()
    }
}

/// A shard's copy, whose reference counts no other shard touches.
#[derive(Debug)]
pub struct LocalGuardrails {
    node: Arc<Guardrails>,
    seen: Cell<u64>,
    own: RefCell<InForce>,
}

impl LocalGuardrails {
    pub fn of(node: Arc<Guardrails>) -> LocalGuardrails {
        LocalGuardrails { node, seen: Cell::new(u64::MAX), own: RefCell::default() }
    }

    /// The bounds of what no request is exempt from.
    pub fn of_node(&self, threshold: Threshold) -> Bounds {
        self.refresh();
        self.own.borrow().roles.as_ref().map_or(Bounds::default(), |of| of.bounds(threshold))
    }

    /// The guard of a new request. `is_superuser`: of a role, which only the caller knows.
    pub fn guard_of(&self, principal: &Principal, is_superuser: bool) -> Guard {
        self.refresh();
        let config = config_of(principal, is_superuser, &self.own.borrow());
        let guard = Guard::new(config).with_disk_usage(self.node.disk_usage());
        match principal {
            Principal::Anonymous => guard.sparing_system(),
            Principal::System | Principal::Role { .. } => guard,
        }
    }

    fn refresh(&self) {
        let version = self.node.version.load(Ordering::Acquire);
        if version != self.seen.get() {
            let copy = |of: &Option<Arc<Config>>| of.as_ref().map(|of| Arc::new(Config::clone(of)));
            let shared = self.node.in_force.load();
            let own = InForce { roles: copy(&shared.roles), anonymous: copy(&shared.anonymous) };
            self.own.replace(own);
            self.seen.set(version);
        }
    }
}

/// Which configuration holds for a principal (`Guardrail.enabled`): superusers and the node itself are exempt. Cassandra exempts
/// everyone where no login is asked for; here a guardrail that the file sets holds for them too.
fn config_of(principal: &Principal, is_superuser: bool, in_force: &InForce) -> Option<Arc<Config>> {
    match principal {
        Principal::System => None,
        Principal::Anonymous => in_force.anonymous.clone(),
        Principal::Role { .. } if is_superuser => None,
        Principal::Role { .. } => in_force.roles.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flag, Given};

    /// Proves who is exempt, and that a shard sees a replacement at its next request.
    #[test]
    fn superusers_and_the_node_are_exempt() {
        let strict =
            |name: &str| (name == "group_by_enabled").then(|| Given::Scalar("false".to_owned()));
        let strict = Config::read(&strict, &[], false).expect("good");
        let node = Arc::new(Guardrails::new(strict.clone(), Config::off()));
        let local = LocalGuardrails::of(node.clone());
        let role = Principal::Role { name: "r".to_owned(), address: [127, 0, 0, 1].into() };
        let is_allowed = |principal: &Principal, is_superuser| {
            local.guard_of(principal, is_superuser).allows(Flag::GroupBy)
        };
        assert!(!is_allowed(&role, false));
        assert!(is_allowed(&role, true) && is_allowed(&Principal::System, false));
        assert!(is_allowed(&Principal::Anonymous, false));
        node.replace(Config::off(), strict);
        assert!(is_allowed(&role, false) && !is_allowed(&Principal::Anonymous, false));
        assert!(node.of_node().is_none());
    }

    /// Proves that a full disk refuses the writes of a role, warns of them before, and says nothing once there is room.
    #[test]
    fn a_full_disk_refuses_writes() {
        let given = |name: &str| match name {
            "data_disk_usage_percentage_warn_threshold" => Some(Given::Scalar("70".to_owned())),
            "data_disk_usage_percentage_fail_threshold" => Some(Given::Scalar("80".to_owned())),
            _ => None,
        };
        let config = Config::read(&given, &[], false).expect("good");
        let node = Arc::new(Guardrails::new(config, Config::off()));
        let local = LocalGuardrails::of(node.clone());
        let role = Principal::Role { name: "r".to_owned(), address: [127, 0, 0, 1].into() };
        let said = |guard: &Guard| guard.take_said().into_iter().map(|said| said.text).collect();
        let ask = |is_superuser| -> (bool, Vec<String>) {
            let guard = local.guard_of(&role, is_superuser);
            (guard.check_disk().is_ok(), said(&guard))
        };
        assert_eq!(node.note_disk_usage(70), None);
        assert_eq!(ask(false), (true, Vec::new()));
        let noted = node.note_disk_usage(71).map(|said| (said.text, said.is_failure));
        let text = "Guardrail local_data_disk_usage violated: Local data disk usage 71%(Stuffed) exceeds warning threshold of 70%";
        assert_eq!(noted, Some((text.to_owned(), false)));
        let text =
            "Guardrail replica_disk_usage violated: Replica disk usage exceeds warning threshold";
        assert_eq!(ask(false), (true, vec![text.to_owned()]));
        assert!(node.note_disk_usage(81).is_some_and(|said| said.is_failure));
        let text = "Guardrail replica_disk_usage violated: Write request failed because disk usage exceeds failure threshold";
        assert_eq!(ask(false), (false, vec![text.to_owned()]));
        assert_eq!(ask(true), (true, Vec::new()));
        assert_eq!(node.note_disk_usage(3), None);
        assert_eq!(ask(false), (true, Vec::new()));
    }
}
