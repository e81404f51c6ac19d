//! What the execution of statements needs of its shard: one for each shard.

use std::rc::Rc;
use std::sync::Arc;

use halcyon_access::Access;
use halcyon_engine::{Engine, Shard};
use halcyon_guardrails::LocalGuardrails;
use halcyon_io::random;
use halcyon_model::uuid;
use halcyon_scan::RequestMemory;
use halcyon_schema::catalog::Catalog;

use crate::access_state::AccessState;
use crate::denylist::LocalDenylist;
use crate::turns::Reads;
use crate::views::Views;
use crate::{ClientRequests, Error, RequestLimits, Result, VirtualTables};

/// One per shard.
pub struct Coordinator {
    engine: Arc<Engine>,
    shard: Rc<Shard>,
    virtual_tables: Rc<dyn VirtualTables>,
    limits: RequestLimits,
    memory: Arc<RequestMemory>,
    requests: Arc<ClientRequests>,
    /// Of named partitions, which are short, and which therefore do not wait for scans.
    reads: Reads,
    scans: Reads,
    uuids: uuid::Generator,
    views: Views,
    denylist: Option<LocalDenylist>,
    access: AccessState,
    guardrails: LocalGuardrails,
}

impl Coordinator {
    pub fn new(
        engine: Arc<Engine>,
        shard: Rc<Shard>,
        virtual_tables: Rc<dyn VirtualTables>,
        limits: RequestLimits,
        (memory, requests): (&RequestMemory, Arc<ClientRequests>),
    ) -> Coordinator {
        let mut random = random();
        let seed = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
        let uuids = uuid::Generator::seeded(seed);
        let (memory, shards) = (memory.for_shard(), shard.tables().shard_count());
        let (reads, scans) = (Reads::of_shard(&memory, shards), Reads::of_shard(&memory, shards));
        let guardrails = LocalGuardrails::of(engine.options().guardrails.clone());
        Coordinator {
            engine,
            shard,
            virtual_tables,
            limits,
            memory,
            requests,
            reads,
            scans,
            uuids,
            views: Views::default(),
            denylist: None,
            access: AccessState::new(Arc::default()),
            guardrails,
        }
    }

    /// The same, with partitions that are denied.
    #[must_use]
    pub fn denying(self, denylist: Option<LocalDenylist>) -> Coordinator {
        Coordinator { denylist, ..self }
    }

    /// `None`: no partition is denied.
    pub fn denylist(&self) -> Option<&LocalDenylist> {
        self.denylist.as_ref()
    }

    /// With roles and permissions; without, the node allows everything.
    #[must_use]
    pub fn with_access(self, access: Arc<Access>) -> Coordinator {
        Coordinator { access: AccessState::new(access), ..self }
    }

    pub(crate) fn access(&self) -> &AccessState {
        &self.access
    }

    pub(crate) fn views(&self) -> &Views {
        &self.views
    }

    /// What a shard does not have: the schema's changes, flushes and compactions of the node.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn shard(&self) -> &Rc<Shard> {
        &self.shard
    }

    pub(crate) fn guardrails(&self) -> &LocalGuardrails {
        &self.guardrails
    }

    pub(crate) fn limits(&self) -> &RequestLimits {
        &self.limits
    }

    pub(crate) fn requests(&self) -> &ClientRequests {
        &self.requests
    }

    pub(crate) fn reads(&self) -> &Reads {
        &self.reads
    }

    pub(crate) fn scans(&self) -> &Reads {
        &self.scans
    }

    pub(crate) fn memory(&self) -> &Arc<RequestMemory> {
        &self.memory
    }

    pub fn uuids(&self) -> &uuid::Generator {
        &self.uuids
    }

    pub fn virtual_tables(&self) -> &dyn VirtualTables {
        self.virtual_tables.as_ref()
    }

    /// Checks that the keyspace of a USE exists.
    pub fn check_keyspace(&self, keyspace: &str) -> Result<()> {
        let exists = |catalog: &Catalog| catalog.keyspace(keyspace).is_some();
        match self.shard.tables().with_catalog(exists) {
            true => Ok(()),
            false => Err(Error::Invalid(format!("Keyspace '{keyspace}' does not exist"))),
        }
    }
}
