//! The entry of this crate: prepares statements, and executes them on the shards that own their data.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use halcyon_cql::plan::{self, Execution, Plan, ResultColumns, Variables, Work};
use halcyon_engine::{Engine, Shard};
use halcyon_io::clock::{now, unix_micros};
use halcyon_io::random;
use halcyon_model::request::{BatchKind, Consistency, Value};
use halcyon_schema::catalog::{Catalog, TableKind};
use halcyon_syntax::Error as CqlError;
use halcyon_syntax::ast::StatementKind;

use crate::basis::Basis;
use crate::functions::SlowCalls;
use crate::memory::Reads;
use crate::pace::{self, Pace};
use crate::scan::{ReadLimits, ScanContext};
use crate::shards::on_shard;
use crate::views::{self, Views};
use crate::{
    Error, Outcome, QueryOptions, RequestLimits, RequestMemory, Result, VirtualTables, modify,
    schema, select,
};
use halcyon_model::uuid;

/// The state of a connection between requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Client {
    /// Set by USE.
    pub keyspace: Option<String>,
    /// The role that has logged in.
    pub role: Option<String>,
}

/// A statement that is ready to be executed; any thread may hold it.
#[derive(Debug)]
pub struct PreparedStatement {
    pub text: String,
    /// The keyspace in force when it was prepared.
    pub keyspace: Option<String>,
    pub variables: Variables,
    /// `None` if it has no result set.
    pub columns: Option<ResultColumns>,
    pub warnings: Vec<String>,
    pub(crate) plan: Plan,
    basis: Basis,
}

impl PreparedStatement {
    /// A copy for one shard, whose reference counts no other shard touches.
    #[must_use]
    pub fn for_shard(&self, shard: &Shard) -> PreparedStatement {
        let mut plan = self.plan.clone();
        plan.map_tables(|table| shard.own_table(table));
        let columns = self.columns.as_ref().map(|columns| columns.iter().cloned().collect());
        if let (Plan::Select(plan), Some(columns)) = (&mut plan, &columns) {
            Arc::make_mut(plan).columns = Arc::clone(columns);
        }
        PreparedStatement {
            text: self.text.clone(),
            keyspace: self.keyspace.clone(),
            variables: self.variables.clone(),
            columns,
            warnings: self.warnings.clone(),
            plan,
            basis: self.basis.for_shard(),
        }
    }

    /// Whether it need not be prepared again: nothing that it was prepared against has changed.
    pub fn is_current(&self, engine: &Engine) -> bool {
        engine.with_catalog(|catalog| self.basis.holds(catalog))
    }

    /// Whether Cassandra takes it for one whose meaning depends on USE: it does so of all that change the schema, and of no TRUNCATE.
    pub fn depends_on_use(&self) -> bool {
        match &self.plan {
            Plan::Other(statement) => !matches!(statement.kind, StatementKind::Truncate { .. }),
            _ => self.keyspace.is_some(),
        }
    }

    /// Whether it returns the rows of named partitions: only such reads count for the latency target.
    pub fn reads_partitions(&self) -> bool {
        match &self.plan {
            Plan::Select(plan) => {
                let has_storage = plan.table.kind != TableKind::Virtual;
                has_storage && plan.restrictions.key_restricted && !plan.is_aggregate()
            }
            _ => false,
        }
    }
}

/// One of a batch, with its own values in `values`.
pub struct BatchEntry<'a> {
    pub statement: Arc<PreparedStatement>,
    pub values: &'a [Value<'a>],
}

/// One per shard.
pub struct Coordinator {
    shard: Rc<Shard>,
    virtual_tables: Rc<dyn VirtualTables>,
    limits: RequestLimits,
    memory: Arc<RequestMemory>,
    /// Of named partitions, which are short, and which therefore do not wait for scans.
    reads: Reads,
    scans: Reads,
    uuids: uuid::Generator,
    views: Views,
}

/// The inputs of one request's terms: its values, time and source of UUIDs.
pub(crate) struct Request<'a> {
    values: &'a [Value<'a>],
    /// The statement's text.
    text: usize,
    now_micros: i64,
    now_seconds: i32,
    protocol_version: u8,
    uuids: &'a uuid::Generator,
    /// While it was bound.
    slow: SlowCalls,
}

impl Request<'_> {
    /// Bytes of text and values, which are counted with the request. A value that has a name stands for each marker of that name, and is
    /// counted once: those that stand behind each other in the message are.
    pub(crate) fn bytes(&self) -> u64 {
        let (mut end, mut bytes) = (0, self.text);
        for value in self.values {
            if let Value::Bytes(value) = value
                && value.as_ptr().addr() >= end
            {
                end = value.as_ptr().addr() + value.len();
                bytes += value.len();
            }
        }
        bytes as u64
    }

    pub(crate) fn now_micros(&self) -> i64 {
        self.now_micros
    }

    pub(crate) fn slow_calls(&self) -> &SlowCalls {
        &self.slow
    }

    pub(crate) fn execution<'w>(&'w self, work: &'w Work<'w>) -> Execution<'w> {
        Execution {
            values: self.values,
            now_micros: self.now_micros,
            now_seconds: self.now_seconds,
            protocol_version: self.protocol_version,
            uuids: self.uuids,
            json: &[],
            work,
        }
    }

    pub(crate) fn scan_context(&self, consistency: Consistency, limits: ReadLimits) -> ScanContext {
        ScanContext {
            limits,
            now_micros: self.now_micros,
            now_seconds: self.now_seconds,
            protocol_version: self.protocol_version,
            uuids: self.uuids.fork(),
            consistency,
        }
    }
}

impl Coordinator {
    pub fn new(
        shard: Rc<Shard>,
        virtual_tables: Rc<dyn VirtualTables>,
        limits: RequestLimits,
        memory: &RequestMemory,
    ) -> Coordinator {
        let mut random = random();
        let seed = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
        let uuids = uuid::Generator::seeded(seed);
        let (memory, shards) = (memory.for_shard(), shard.engine().shard_count());
        let (reads, scans) = (Reads::of_shard(&memory, shards), Reads::of_shard(&memory, shards));
        Coordinator {
            shard,
            virtual_tables,
            limits,
            memory,
            reads,
            scans,
            uuids,
            views: Views::default(),
        }
    }

    pub(crate) fn views(&self) -> &Views {
        &self.views
    }

    pub fn shard(&self) -> &Rc<Shard> {
        &self.shard
    }

    pub(crate) fn limits(&self) -> &RequestLimits {
        &self.limits
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
        match self.shard.engine().with_catalog(exists) {
            true => Ok(()),
            false => Err(Error::Invalid(format!("Keyspace '{keyspace}' does not exist"))),
        }
    }

    /// Parses and prepares against the current catalog. Synchronous, however long it takes: for texts of the server itself.
    pub fn prepare(&self, text: &str, client: &Client) -> Result<PreparedStatement> {
        let work = Work::while_there_is_time(&|| true);
        let catalog = self.shard.engine().catalog();
        checked(prepared(text, &catalog, client, &work)?, &catalog, client)
    }

    /// As `prepare`, for the text of a client: what is large is prepared apart, and refused if that takes too long.
    pub fn prepare_in_time<'a>(
        &'a self,
        text: &'a str,
        client: &'a Client,
    ) -> LocalBoxFuture<'a, Result<PreparedStatement>> {
        Box::pin(async move {
            let catalog = self.shard.engine().catalog();
            if text.len() <= SHORT_TEXT {
                match prepared(text, &catalog, client, &Work::small()) {
                    Err(CqlError::Exhausted) => {}
                    outcome => return checked(outcome?, &catalog, client),
                }
            }
            let (text, own, in_force) = (text.to_owned(), client.clone(), catalog.clone());
            let job = move |work: &Work<'_>| prepared(&text, &in_force, &own, work);
            let done = Box::pin(pace::until(now() + PREPARATION_MAX, job)).await?;
            // Cassandra's words for a request that it takes up too late.
            let late = || Error::Overloaded("Query timed out before it could start".to_owned());
            checked(done.ok_or_else(late)?, &catalog, client)
        })
    }

    /// Executes a statement; prepares it again if the schema has changed.
    pub fn execute<'a>(
        &'a self,
        statement: &'a Arc<PreparedStatement>,
        options: &'a QueryOptions<'a>,
        client: &'a Client,
    ) -> LocalBoxFuture<'a, Result<Outcome>> {
        Box::pin(async move {
            let _running = match &statement.plan {
                Plan::Modification(_) | Plan::Batch(_) => Some(self.shard.writes().begin().await),
                Plan::Select(_) | Plan::Other(_) => None,
            };
            let statement = self.up_to_date(statement).await?;
            check_value_count(&statement.variables, options.values)?;
            if options.consistency == Consistency::NodeLocal {
                return Err(Error::Invalid(
                "NODE_LOCAL consistency level is highly dangerous and should be used only for debugging purposes"
                    .to_owned(),
            ));
            }
            let request = self.request(&statement, options.values, options);
            let outcome = match &statement.plan {
                Plan::Select(plan) => select::execute_select(self, plan, &request, options).await?,
                Plan::Modification(plan) => {
                    modify::execute_modification(self, plan, &request, options).await?
                }
                Plan::Batch(plan) => {
                    Box::pin(modify::execute_batch(self, plan, &request, options)).await?
                }
                Plan::Other(statement) => {
                    Box::pin(schema::execute_schema(self, statement, options, client)).await?
                }
            };
            Ok(outcome.warned(request.slow.take()))
        })
    }

    /// A BATCH message (a BATCH statement in CQL text goes through `execute`).
    pub fn batch<'a>(
        &'a self,
        kind: BatchKind,
        entries: &'a [BatchEntry<'a>],
        options: &'a QueryOptions<'a>,
    ) -> LocalBoxFuture<'a, Result<Outcome>> {
        Box::pin(async move {
            let _running = self.shard.writes().begin().await;
            let mut statements = Vec::with_capacity(entries.len());
            let mut pace = Pace::new();
            for entry in entries {
                if pace.step() {
                    pace.pause().await;
                }
                let statement = self.up_to_date(&entry.statement).await?;
                check_value_count(&statement.variables, entry.values)?;
                let request = self.request(&statement, entry.values, options);
                statements.push((statement, request));
            }
            let outcome = modify::execute_batch_message(self, kind, &statements, options).await?;
            let slow = statements.iter().flat_map(|(_, request)| request.slow.take());
            Ok(outcome.warned(slow.collect()))
        })
    }

    /// The statement itself, or a new preparation of its text if what it was prepared against has changed.
    async fn up_to_date(
        &self,
        statement: &Arc<PreparedStatement>,
    ) -> Result<Arc<PreparedStatement>> {
        if statement.is_current(self.shard.engine()) {
            return Ok(statement.clone());
        }
        let client = Client { keyspace: statement.keyspace.clone(), role: None };
        Ok(Arc::new(self.prepare_in_time(&statement.text, &client).await?))
    }

    /// The inputs of one statement's terms in this request.
    pub(crate) fn request<'a>(
        &'a self,
        statement: &PreparedStatement,
        values: &'a [Value<'a>],
        options: &QueryOptions<'_>,
    ) -> Request<'a> {
        let now_micros = unix_micros();
        let now_seconds = now_micros.div_euclid(1_000_000);
        Request {
            values,
            text: statement.text.len(),
            now_micros,
            now_seconds: options
                .now_in_seconds
                .unwrap_or_else(|| i32::try_from(now_seconds).unwrap_or(i32::MAX)),
            protocol_version: options.protocol_version,
            uuids: &self.uuids,
            slow: SlowCalls::default(),
        }
    }

    /// Has the views built that are not, once the node may be written to.
    pub fn resume_view_builds(&self) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(views::resume(&self.shard))
    }

    /// Runs a job on the shard that owns a token.
    pub(crate) async fn on_owner<R, F>(
        &self,
        token: i64,
        job: impl FnOnce(Rc<Shard>) -> F + Send + 'static,
    ) -> Result<R>
    where
        R: Send + 'static,
        F: Future<Output = Result<R>> + 'static,
    {
        self.on_shard(self.shard.engine().owner(token), job).await
    }

    /// Runs a job on one shard.
    pub(crate) async fn on_shard<R, F>(
        &self,
        index: usize,
        job: impl FnOnce(Rc<Shard>) -> F + Send + 'static,
    ) -> Result<R>
    where
        R: Send + 'static,
        F: Future<Output = Result<R>> + 'static,
    {
        on_shard(&self.shard, index, job).await
    }
}

/// The longest text that is prepared where it arrives.
const SHORT_TEXT: usize = 4 << 10;
/// How long a statement is prepared: Cassandra's `native_transport_timeout`.
const PREPARATION_MAX: Duration = Duration::from_secs(12);

fn prepared(
    text: &str,
    catalog: &Catalog,
    client: &Client,
    work: &Work<'_>,
) -> Result<PreparedStatement, CqlError> {
    let statement = halcyon_syntax::parse_statement(text)?;
    let prepared = plan::prepare(&statement, catalog, client.keyspace.as_deref(), work)?;
    Ok(PreparedStatement {
        text: text.to_owned(),
        keyspace: client.keyspace.clone(),
        variables: prepared.variables,
        columns: prepared.columns,
        warnings: prepared.warnings,
        basis: Basis::of(&prepared.plan, catalog),
        plan: prepared.plan,
    })
}

/// What of the schema and of logins a statement needs that has no plan.
fn checked(
    prepared: PreparedStatement,
    catalog: &Catalog,
    client: &Client,
) -> Result<PreparedStatement> {
    if let Plan::Other(statement) = &prepared.plan {
        schema::check(statement, catalog, client)?;
    }
    Ok(prepared)
}

fn check_value_count(variables: &Variables, values: &[Value<'_>]) -> Result<()> {
    if variables.specs.len() == values.len() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "there were {} markers(?) in CQL but {} bound variables",
        variables.specs.len(),
        values.len()
    )))
}
