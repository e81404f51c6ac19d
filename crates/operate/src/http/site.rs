//! What a request is answered from.

use std::net::IpAddr;
use std::sync::Arc;

use crate::page::Page;
use crate::watched::Watched;

/// What the answers to requests are made from.
pub(super) struct Site {
    pub(super) watched: Arc<Watched>,
    pub(super) page: Page,
    /// The endpoint listens on the loopback device only.
    pub(super) is_local: bool,
}

/// Where a request comes from.
#[derive(Clone, Copy)]
pub(super) struct From {
    pub(super) peer: IpAddr,
    /// Over the loopback device.
    pub(super) is_local: bool,
}
