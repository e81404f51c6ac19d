//! Reads what a shard keeps of roles before requests ask for it: again and again (`…_cache_active_update`), and at the start
//! (`auth_cache_warming_enabled`).

use halcyon_access::{AuthCache, CacheKeys};
use halcyon_model::access::Resource;

use super::{login, questions, store};
use crate::Result;
use crate::coordinator::Coordinator;

/// Reads all entries of a cache again. Those of dropped roles expire.
pub async fn refresh(coordinator: &Coordinator, cache: AuthCache) -> Result<()> {
    let state = coordinator.access();
    if cache == AuthCache::Credentials {
        let names = state.cache.borrow().kept_credentials();
        for name in names {
            login::fresh_credentials(coordinator, &name).await?;
        }
        return Ok(());
    }
    let kept = state.cache.borrow().kept_roles();
    for (name, resources) in kept {
        if cache == AuthCache::Roles {
            questions::fresh_role(coordinator, &name).await?;
            continue;
        }
        let facts = questions::role(coordinator, &name).await?;
        for resource in resources {
            questions::fresh_permissions(coordinator, (&name, &facts), &resource).await?;
        }
    }
    Ok(())
}

/// What the shard keeps something of.
pub fn cache_keys(coordinator: &Coordinator) -> CacheKeys {
    let state = coordinator.access();
    state.cache.borrow_mut().keys(&state.shared)
}

/// Reads all roles, passwords and grants, as many as the caches hold.
pub async fn warm(coordinator: &Coordinator) -> Result<()> {
    let access = &coordinator.access().shared;
    let (settings, most) = (access.settings(), |cache| access.cache(cache).max_entries);
    let names = store::all_roles(coordinator).await?;
    for name in names.iter().take(most(AuthCache::Roles)) {
        questions::fresh_role(coordinator, name).await?;
    }
    if settings.takes_passwords() {
        for name in names.iter().take(most(AuthCache::Credentials)) {
            login::fresh_credentials(coordinator, name).await?;
        }
    }
    if settings.authorizes {
        let grants = store::grants(coordinator, None).await?;
        for (name, resource, _) in grants.iter().take(most(AuthCache::Permissions)) {
            let Some(resource) = Resource::of_name(resource) else { continue };
            let facts = questions::role(coordinator, name).await?;
            questions::fresh_permissions(coordinator, (name, &facts), &resource).await?;
        }
    }
    Ok(())
}
