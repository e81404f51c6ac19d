//! What one shard has read of `system_auth`, for as long as it is believed.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use halcyon_io::clock::{Instant, now};
use halcyon_model::access::Resource;

use crate::cidr::CidrGroups;
use crate::permissions::Permissions;
use crate::roles::RoleFacts;
use crate::settings::{AuthCache, CacheSettings};
use crate::shared::Access;

/// Of one shard.
#[derive(Debug, Default)]
pub struct Cache {
    epoch: u64,
    roles: HashMap<String, Known>,
    /// Over all roles.
    permissions: usize,
    credentials: HashMap<String, (Option<String>, Instant)>,
    cidr_groups: Option<(Rc<CidrGroups>, Instant)>,
}

#[derive(Debug)]
struct Known {
    facts: Rc<RoleFacts>,
    at: Instant,
    permissions: HashMap<Resource, (Permissions, Instant)>,
}

/// What a shard keeps something of.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CacheKeys {
    pub roles: Vec<String>,
    pub permissions: Vec<(String, Resource)>,
    pub credentials: Vec<String>,
}

fn is_valid(at: Instant, validity: Duration) -> bool {
    now() - at < validity
}

impl Cache {
    /// Whether anything of a role is kept.
    pub fn keeps(access: &Access) -> bool {
        !access.cache(AuthCache::Roles).validity.is_zero()
    }

    fn forget_earlier(&mut self, access: &Access) {
        let epoch = access.epoch();
        if self.epoch != epoch {
            *self = Cache { epoch, ..Cache::default() };
        }
    }

    pub fn role(&mut self, access: &Access, role: &str) -> Option<Rc<RoleFacts>> {
        self.forget_earlier(access);
        let known = self.roles.get(role)?;
        is_valid(known.at, access.cache(AuthCache::Roles).validity).then(|| known.facts.clone())
    }

    pub fn permissions(
        &mut self,
        access: &Access,
        role: &str,
        resource: &Resource,
    ) -> Option<Permissions> {
        self.forget_earlier(access);
        let (permissions, at) = self.roles.get(role)?.permissions.get(resource)?;
        is_valid(*at, access.cache(AuthCache::Permissions).validity).then_some(*permissions)
    }

    /// `Some(None)`: the role is known to have no password.
    pub fn credentials(&mut self, access: &Access, role: &str) -> Option<Option<String>> {
        self.forget_earlier(access);
        let (hash, at) = self.credentials.get(role)?;
        is_valid(*at, access.cache(AuthCache::Credentials).validity).then(|| hash.clone())
    }

    pub fn cidr_groups(&mut self, access: &Access) -> Option<Rc<CidrGroups>> {
        self.forget_earlier(access);
        let (groups, at) = self.cidr_groups.as_ref()?;
        let refresh = access.settings().cidrs?.refresh;
        is_valid(*at, refresh).then(|| groups.clone())
    }

    /// What is kept and believed.
    pub fn keys(&mut self, access: &Access) -> CacheKeys {
        self.forget_earlier(access);
        let of = |cache| access.cache(cache).validity;
        let (roles, permissions) = (of(AuthCache::Roles), of(AuthCache::Permissions));
        let mut keys = CacheKeys::default();
        for (role, known) in &self.roles {
            if is_valid(known.at, roles) {
                keys.roles.push(role.clone());
            }
            let resources =
                known.permissions.iter().filter(|(_, (_, at))| is_valid(*at, permissions));
            keys.permissions.extend(resources.map(|(of, _)| (role.clone(), of.clone())));
        }
        let credentials = self.credentials.iter();
        let valid = credentials.filter(|(_, (_, at))| is_valid(*at, of(AuthCache::Credentials)));
        keys.credentials = valid.map(|(role, _)| role.clone()).collect();
        keys
    }

    /// The roles that are kept, and the resources that permissions are kept of.
    pub fn kept_roles(&self) -> Vec<(String, Vec<Resource>)> {
        let resources = |known: &Known| known.permissions.keys().cloned().collect();
        self.roles.iter().map(|(name, known)| (name.clone(), resources(known))).collect()
    }

    /// The roles whose passwords are kept.
    pub fn kept_credentials(&self) -> Vec<String> {
        self.credentials.keys().cloned().collect()
    }

    /// Keeps what was read since `epoch`.
    pub fn put_role(&mut self, access: &Access, epoch: u64, role: &str, facts: Rc<RoleFacts>) {
        if !self.may_keep(access, epoch, &access.cache(AuthCache::Roles)) {
            return;
        }
        let (at, settings) = (now(), &access.cache(AuthCache::Roles));
        if let Some(known) = self.roles.get_mut(role) {
            // What it inherits has changed, and so may all that it can do.
            if known.facts != facts {
                self.permissions -= known.permissions.len();
                known.permissions.clear();
            }
            (known.facts, known.at) = (facts, at);
            return;
        }
        if self.roles.len() >= settings.max_entries {
            self.drop_roles(settings);
        }
        let known = Known { facts, at, permissions: HashMap::new() };
        self.roles.insert(role.to_owned(), known);
    }

    /// Of a role that is kept with the facts that the permissions follow from.
    pub fn put_permissions(
        &mut self,
        access: &Access,
        epoch: u64,
        (role, facts): (&str, &RoleFacts),
        (resource, permissions): (&Resource, Permissions),
    ) {
        let settings = &access.cache(AuthCache::Permissions);
        if !self.may_keep(access, epoch, settings) {
            return;
        }
        if self.permissions >= settings.max_entries {
            self.roles.values_mut().for_each(|known| known.permissions.clear());
            self.permissions = 0;
        }
        let Some(known) = self.roles.get_mut(role).filter(|known| *known.facts == *facts) else {
            return;
        };
        let before = known.permissions.insert(resource.clone(), (permissions, now()));
        self.permissions += usize::from(before.is_none());
    }

    pub fn put_credentials(
        &mut self,
        access: &Access,
        epoch: u64,
        role: &str,
        hash: Option<String>,
    ) {
        let settings = &access.cache(AuthCache::Credentials);
        if !self.may_keep(access, epoch, settings) {
            return;
        }
        if self.credentials.len() >= settings.max_entries {
            self.credentials.retain(|_, (_, at)| is_valid(*at, settings.validity));
        }
        if self.credentials.len() >= settings.max_entries {
            self.credentials.clear();
        }
        self.credentials.insert(role.to_owned(), (hash, now()));
    }

    pub fn put_cidr_groups(&mut self, access: &Access, epoch: u64, groups: Rc<CidrGroups>) {
        self.forget_earlier(access);
        if self.epoch == epoch {
            self.cidr_groups = Some((groups, now()));
        }
    }

    fn may_keep(&mut self, access: &Access, epoch: u64, settings: &CacheSettings) -> bool {
        self.forget_earlier(access);
        self.epoch == epoch && !settings.validity.is_zero() && settings.max_entries > 0
    }

    /// Those that are not believed any more; if there are none, all.
    fn drop_roles(&mut self, settings: &CacheSettings) {
        self.roles.retain(|_, known| is_valid(known.at, settings.validity));
        if self.roles.len() >= settings.max_entries {
            self.roles.clear();
        }
        self.permissions = self.roles.values().map(|known| known.permissions.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use halcyon_io::{SimRuntime, clock};
    use halcyon_model::access::Permission;

    use super::*;
    use crate::settings::Settings;

    fn facts(is_superuser: bool) -> Rc<RoleFacts> {
        Rc::new(RoleFacts { is_superuser, roles: vec!["r".to_owned()], ..RoleFacts::default() })
    }

    fn select() -> Permissions {
        [Permission::Select].into_iter().collect()
    }

    /// Proves that what was read is believed for its validity, and not a moment longer.
    #[test]
    fn entries_are_believed_for_their_validity() {
        SimRuntime::seeded(1).block_on(async {
            let (access, mut cache) = (Access::new(Settings::default()), Cache::default());
            let resource = Resource::AllKeyspaces;
            assert_eq!(cache.role(&access, "r"), None);
            cache.put_role(&access, 0, "r", facts(false));
            cache.put_permissions(&access, 0, ("r", &facts(false)), (&resource, select()));
            cache.put_credentials(&access, 0, "r", None);
            let names = || vec!["r".to_owned()];
            let kept = CacheKeys {
                roles: names(),
                permissions: vec![("r".to_owned(), resource.clone())],
                credentials: names(),
            };
            assert_eq!(cache.keys(&access), kept);
            clock::sleep(Duration::from_millis(1_999)).await;
            assert_eq!(cache.role(&access, "r"), Some(facts(false)));
            assert_eq!(cache.permissions(&access, "r", &resource), Some(select()));
            assert_eq!(cache.credentials(&access, "r"), Some(None));
            clock::sleep(Duration::from_millis(1)).await;
            assert_eq!(cache.role(&access, "r"), None);
            assert_eq!(cache.permissions(&access, "r", &resource), None);
            assert_eq!(cache.credentials(&access, "r"), None);
            assert_eq!(cache.keys(&access), CacheKeys::default());
        });
    }

    /// Proves that a change forgets all, and that what was read before it is not kept after it.
    #[test]
    fn an_epoch_forgets_what_was_read_before_it() {
        SimRuntime::seeded(1).block_on(async {
            let (access, mut cache) = (Access::new(Settings::default()), Cache::default());
            cache.put_role(&access, 0, "r", facts(true));
            access.begin_epoch();
            assert_eq!(cache.role(&access, "r"), None);
            cache.put_role(&access, 0, "r", facts(true));
            assert_eq!(cache.role(&access, "r"), None);
            cache.put_role(&access, 1, "r", facts(false));
            assert_eq!(cache.role(&access, "r"), Some(facts(false)));
        });
    }

    /// Proves that permissions go with what the role inherited, also those that were read before that changed, and that no more entries
    /// are kept than are allowed.
    #[test]
    fn permissions_belong_to_the_roles_facts() {
        SimRuntime::seeded(1).block_on(async {
            let small = CacheSettings { max_entries: 2, ..CacheSettings::default() };
            let settings = Settings { roles: small, permissions: small, ..Settings::default() };
            let (access, mut cache) = (Access::new(settings), Cache::default());
            cache.put_role(&access, 0, "r", facts(false));
            cache.put_permissions(
                &access,
                0,
                ("r", &facts(false)),
                (&Resource::AllRoles, select()),
            );
            cache.put_role(&access, 0, "r", facts(true));
            assert_eq!(cache.permissions(&access, "r", &Resource::AllRoles), None);
            cache.put_permissions(
                &access,
                0,
                ("r", &facts(false)),
                (&Resource::AllRoles, select()),
            );
            assert_eq!(cache.permissions(&access, "r", &Resource::AllRoles), None);
            for name in ["a", "b", "c", "d"] {
                cache.put_role(&access, 0, name, facts(false));
                let resource = Resource::Role(name.to_owned());
                cache.put_permissions(&access, 0, (name, &facts(false)), (&resource, select()));
                assert_eq!(cache.permissions(&access, name, &resource), Some(select()));
                assert!(cache.roles.len() <= 2 && cache.permissions <= 2);
            }
        });
    }

    /// Proves that a change of settings is in force at once, and forgets what was read before it.
    #[test]
    fn settings_change_while_the_node_runs() {
        SimRuntime::seeded(1).block_on(async {
            let (access, mut cache) = (Access::new(Settings::default()), Cache::default());
            cache.put_role(&access, 0, "r", facts(false));
            let longer = CacheSettings::of(Duration::from_secs(60), None, 1, false);
            access.set_cache(AuthCache::Roles, longer);
            assert_eq!((access.cache(AuthCache::Roles), cache.role(&access, "r")), (longer, None));
            cache.put_role(&access, 1, "r", facts(false));
            clock::sleep(Duration::from_secs(59)).await;
            assert!(cache.role(&access, "r").is_some());
            cache.put_role(&access, 1, "s", facts(false));
            assert!(cache.role(&access, "r").is_none() && cache.role(&access, "s").is_some());
            let refreshed = |active| CacheSettings::of(Duration::from_secs(8), None, 1, active);
            assert_eq!(refreshed(true).active_update, Some(Duration::from_secs(6)));
            assert_eq!(refreshed(false).active_update, None);
        });
    }

    /// Proves that nothing is kept without a validity.
    #[test]
    fn no_validity_keeps_nothing() {
        SimRuntime::seeded(1).block_on(async {
            let none = CacheSettings { validity: Duration::ZERO, ..CacheSettings::default() };
            let settings = Settings { roles: none, credentials: none, ..Settings::default() };
            let (access, mut cache) = (Access::new(settings), Cache::default());
            cache.put_role(&access, 0, "r", facts(true));
            cache.put_credentials(&access, 0, "r", None);
            assert_eq!((cache.role(&access, "r"), cache.credentials(&access, "r")), (None, None));
        });
    }
}
