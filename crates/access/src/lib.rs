//! Who may do what: roles and what they inherit, permissions on resources, passwords, and what of these a shard keeps in memory.
//!
//! Pure: `query` reads and writes the tables of `system_auth`, and asks this crate what they mean.
//!
//! ```text
//!  system_auth ─► Role ─► Closure ─► RoleFacts ─┐
//!                 role_permissions ─► Permissions ┴─► Cache of one shard ─► decision
//! ```
//!
//! 1. [`Access`] is shared by the shards: settings, the epoch, the threads that hash.
//! 2. Each shard has a [`Cache`]; a lookup takes no lock. A statement that changes a role or a permission begins a new epoch, with which
//!    every cache is emptied: on this node a revocation holds at once. What writes `system_auth` directly holds after the validity.
//! 3. What was read during an earlier epoch is not kept.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod attempts;
mod bcrypt_steps;
mod cache;
mod cache_settings;
mod cidr;
mod cidr_metrics;
mod password_policy;
mod passwords;
mod permissions;
mod resources;
mod roles;
mod settings;
mod shared;

pub use attempts::{Attempt, Attempts};
pub use cache::{Cache, CacheKeys};
pub use cidr::{Cidr, CidrGroups};
pub use cidr_metrics::{CidrMetrics, CidrSummary};
pub use password_policy::{Judgement, PasswordPolicy, PasswordRules};
pub use passwords::{Full, Hashers, generated, hash_is_readable};
pub use permissions::Permissions;
pub use resources::{SystemRule, chain, is_grantable_in, of_system};
pub use roles::{Closure, Role, RoleFacts};
pub use settings::{AuthCache, CacheSettings, CidrMode, CidrSettings, Identity, Login, Settings};
pub use shared::{Access, DEFAULT_SUPERUSER};
