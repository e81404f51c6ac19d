//! What a shard keeps of roles and permissions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::lock::Mutex;
use halcyon_access::{Access, Cache, CidrMetrics};

use crate::prepared::PreparedStatement;

/// Of one shard.
pub(crate) struct AccessState {
    pub(crate) shared: Arc<Access>,
    pub(crate) cache: RefCell<Cache>,
    pub(crate) cidr_metrics: Arc<CidrMetrics>,
    /// Held while something is read that will be kept: the requests that lack it too wait, and then find it.
    pub(crate) reading: Mutex<()>,
    /// The statements that read and write `system_auth`, by text.
    pub(crate) statements: RefCell<HashMap<&'static str, Arc<PreparedStatement>>>,
}

impl AccessState {
    pub(crate) fn new(shared: Arc<Access>) -> AccessState {
        AccessState {
            cidr_metrics: shared.new_cidr_metrics(),
            shared,
            cache: RefCell::default(),
            reading: Mutex::new(()),
            statements: RefCell::default(),
        }
    }
}
