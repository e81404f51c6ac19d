//! Executes everything that is neither SELECT nor a modification.
//!
//! A schema change runs on shard 0, one at a time: it takes the catalog as it then is, makes the next one, and hands both
//! it and the rows that say so to the engine.

mod describe;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use halcyon_cql::plan::mask::column_mask;
use halcyon_cql::plan::requires::of_statement;
use halcyon_cql::plan::term::constant;
use halcyon_cql::plan::{Work, find_table};
use halcyon_engine::{Engine, Shard};
use halcyon_functions as functions;
use halcyon_guardrails::{Guard, Said};
use halcyon_io::clock::{self, unix_micros};
use halcyon_io::compute;
use halcyon_model::CqlType;
use halcyon_model::access::Principal;
use halcyon_schema::catalog::{Catalog, Keyspace, Table, TableKind, refuse_derived};
use halcyon_schema::change::{self, Change, Context};
use halcyon_schema::mask::MaskedColumn;
use halcyon_schema::refuse_modification;
use halcyon_schema::rows::{WriteTime, difference};
use halcyon_stream::Mutation;
use halcyon_syntax::ast::{
    CreateFunction, MaskText, QualifiedName, RawTerm, Statement, StatementKind, TableChange,
};

use crate::access::{self, Changed};
use crate::coordinator::Coordinator;
use crate::guard;
use crate::invalidated::Invalidated;
use crate::shards::on_shard;
use crate::{Error, Outcome, QueryOptions, Result, views};

/// How long the body of a function may wait for its compiler: a JVM starts.
const COMPILATION_MAX: Duration = Duration::from_secs(90);

pub(crate) async fn execute_schema(
    coordinator: &Coordinator,
    statement: &Statement,
    options: &QueryOptions<'_>,
    principal: &Principal,
) -> Result<Outcome> {
    let keyspace = options.keyspace;
    match &statement.kind {
        StatementKind::Use { keyspace } => {
            coordinator.check_keyspace(keyspace)?;
            Ok(Outcome::SetKeyspace(keyspace.clone()))
        }
        StatementKind::Truncate { name } => truncate(coordinator, name, keyspace).await,
        StatementKind::Auth(statement) => {
            access::execute(coordinator, statement, options, principal).await
        }
        StatementKind::Describe(wanted) => describe::execute(coordinator, wanted, options).await,
        _ => change_schema(coordinator, statement, options, principal).await,
    }
}

/// The checks of a statement at its preparation. Removes the options that guardrails ignore.
pub(crate) fn validate(
    coordinator: &Coordinator,
    kind: &mut StatementKind,
    keyspace: Option<&str>,
    guard: &Guard,
) -> Result<()> {
    match kind {
        StatementKind::Truncate { name } => guard::truncates(coordinator, name, keyspace, guard),
        kind => {
            let catalog = coordinator.shard().tables().catalog();
            let terms = Terms::new(&catalog);
            let engine = coordinator.engine();
            let context = for_validation(engine, &catalog, keyspace, &terms, guard);
            Ok(change::validate(&catalog, kind, &context)?)
        }
    }
}

async fn truncate(
    coordinator: &Coordinator,
    name: &QualifiedName,
    keyspace: Option<&str>,
) -> Result<Outcome> {
    let engine = coordinator.engine();
    let find = || find_table(name, &engine.tables().catalog(), keyspace).cloned();
    let table = find()?;
    refuse_modification(&table.schema.keyspace)?;
    match table.kind {
        TableKind::Regular => refuse_derived(&table, "truncating")?,
        TableKind::View => {
            let what =
                "Cannot TRUNCATE materialized view directly; must truncate base table instead";
            return Err(Error::Invalid(what.to_owned()));
        }
        TableKind::Virtual => {
            coordinator.virtual_tables().truncate(&table)?;
            return Ok(Outcome::Void);
        }
    }
    let mut truncated = Ok(());
    if table.views.is_empty() {
        truncated = engine.schema().truncate(table.id).await.map_err(Error::from);
    }
    // A view that came meanwhile may have been built of deleted rows.
    let table = find().ok().filter(|known| known.id == table.id).unwrap_or(table);
    if truncated.is_ok() && !table.views.is_empty() {
        truncated = truncate_with_views(coordinator, &table).await;
    }
    truncated.map_err(|e| Error::Truncate(format!("Error during truncate: {e}")))?;
    Ok(Outcome::Void)
}

/// A crash in between leaves the views to be built again: they are truncated first, so that this brings nothing back.
async fn truncate_with_views(coordinator: &Coordinator, table: &Table) -> Result<()> {
    let (shard, engine) = (coordinator.shard(), coordinator.engine());
    let catalog = engine.tables().catalog();
    let keyspace = &table.schema.keyspace;
    let views = || table.views.iter().filter_map(|name| catalog.table(keyspace, name));
    // A write in between would be in one of them only.
    let _held = hold_writes(coordinator).await?;
    let built = engine.tables().built_views().await?;
    let was_built =
        |view: &&Arc<Table>| built.contains(&(keyspace.clone(), view.schema.name.clone()));
    let truncate = async {
        for view in views().filter(was_built) {
            engine.tables().note_built_view(view, false).await?;
        }
        for view in views() {
            engine.schema().truncate(view.id).await?;
        }
        engine.schema().truncate(table.id).await?;
        for view in views().filter(was_built) {
            engine.tables().note_built_view(view, true).await?;
        }
        Ok(())
    };
    let truncated = truncate.await;
    if truncated.is_err() {
        views().filter(was_built).for_each(|view| views::build(shard, view.id));
    }
    truncated
}

/// While a view becomes known. A write that does not know it takes no lock: one that does could compute the view's rows without it.
async fn hold_unaware_writes(
    coordinator: &Coordinator,
    kind: &StatementKind,
) -> Result<Option<Vec<views::Lease>>> {
    match kind {
        StatementKind::CreateView(_) => hold_writes(coordinator).await.map(Some),
        _ => Ok(None),
    }
}

/// Keeps writes from beginning on all shards.
async fn hold_writes(coordinator: &Coordinator) -> Result<Vec<views::Lease>> {
    let hold = |shard: Rc<Shard>| async move { views::lease(shard.writes().hold().await) };
    let held = coordinator.shard().tables().mesh().on_each(hold).await;
    held.into_iter().map(|held| held.map_err(|gone| Error::Server(gone.to_string()))).collect()
}

const SCHEMA_HAS_CHANGED: &str =
    "the schema has changed meanwhile, and with it what the statement requires; try again";

async fn change_schema(
    coordinator: &Coordinator,
    statement: &Statement,
    options: &QueryOptions<'_>,
    principal: &Principal,
) -> Result<Outcome> {
    let (kind, keyspace) = (statement.kind.clone(), options.keyspace);
    let guard = options.guard.map(Guard::fresh).unwrap_or_default();
    let drops_columns = matches!(
        kind,
        StatementKind::AlterTable { change: TableChange::Drop { timestamp: None, .. }, .. }
    );
    let own = keyspace.map(str::to_owned);
    let table_id = coordinator.uuids().time_based(unix_micros());
    if let StatementKind::CreateFunction(create) = &kind {
        check_body(coordinator, create, keyspace, table_id).await?;
    }
    let permitted = access::permit_change(coordinator, &kind, keyspace, principal).await?;
    let held = hold_unaware_writes(coordinator, &kind).await?;
    let engine = coordinator.engine().clone();
    let made = on_shard(coordinator.shard(), 0, move |_| async move {
        let lock = engine.schema().lock().await;
        let (catalog, at) = (engine.tables().catalog(), engine.tables().write_time());
        if permitted.is_some_and(|known| known != of_statement(&kind, &catalog, own.as_deref())) {
            return Err(Error::Unauthorized(SCHEMA_HAS_CHANGED.to_owned()));
        }
        let before = catalog.clone();
        let (made, said) = change_apart(&engine, catalog, kind, own, (table_id, at), guard).await?;
        let (made, rows) = match made {
            Ok(made) => made,
            Err(refused) => return Ok((Err(refused), said)),
        };
        let mut changed = Changed::default();
        if let Some(event) = &made.event {
            changed = Changed::of(&before, &made.catalog, &event.keyspace);
            engine.schema().change(&lock, Arc::new(made.catalog.clone()), rows).await?;
            if drops_columns {
                let rest = change::drop_time(at.micros).saturating_add(1) - at.micros;
                clock::sleep(Duration::from_micros(rest.unsigned_abs())).await;
            }
        }
        Ok((Ok((made, changed)), said))
    });
    let made = made.await;
    drop(held);
    let (made, said) = made?;
    if let Some(guard) = options.guard {
        guard.say(said);
    }
    let (made, changed) = made?;
    if let StatementKind::CreateIndex(create) = &statement.kind {
        // Not with the lock, which other changes of the schema wait for.
        let engine = coordinator.engine();
        let found = find_table(&create.table, &made.catalog, keyspace);
        if let Ok(table) = found {
            engine.indexes().wait(table.id).await;
        }
    }
    if let StatementKind::CreateView(create) = &statement.kind
        && made.event.is_some()
        && let Ok(view) = find_table(&create.name, &made.catalog, keyspace)
    {
        views::build(coordinator.shard(), view.id);
    }
    access::follow(coordinator, &statement.kind, &changed, principal).await?;
    Ok(outcome(made, &changed))
}

/// What a statement makes of the catalog, and the rows that say so. Not on a shard: even a change of one among a thousand tables walks all
/// of them, and a new type is read back with all that use it.
async fn change_apart(
    engine: &Arc<Engine>,
    catalog: Arc<Catalog>,
    kind: StatementKind,
    keyspace: Option<String>,
    (table_id, at): ([u8; 16], WriteTime),
    guard: Guard,
) -> Result<(Result<(Change, Vec<Mutation>)>, Vec<Said>)> {
    let engine = engine.clone();
    let make = move |guard: &Guard| {
        let (terms, mut kind) = (Terms::new(&catalog), kind);
        let made_by = (table_id, at);
        let context = context(&engine, &catalog, keyspace.as_deref(), &terms, made_by, guard);
        change::validate(&catalog, &mut kind, &context)?;
        let made = change::change(&catalog, &kind, &context)?;
        let mut rows = Vec::new();
        if made.event.is_some() {
            rows = difference(&catalog, &made.catalog, at);
            rows.extend(views::not_built(&catalog, &made.catalog, engine.tables().host_id(), at));
        }
        Ok((made, rows))
    };
    let job = move || {
        let made = make(&guard);
        (made, guard.take_said())
    };
    Ok(compute(job).await.map_err(halcyon_engine::Error::from)?)
}

/// What the terms of schema statements mean.
struct Terms<'a> {
    evaluate: Box<change::Evaluate<'a>>,
    find_mask: Box<change::FindMask<'a>>,
}

impl<'a> Terms<'a> {
    fn new(catalog: &'a Catalog) -> Terms<'a> {
        let evaluate = |keyspace: &Keyspace, term: &RawTerm, to: &CqlType| {
            constant(catalog, &keyspace.name, term, to, &Work::small())
        };
        let find_mask = |column: MaskedColumn<'_>, mask: &MaskText| {
            column_mask(catalog, column, mask, &Work::small())
        };
        Terms { evaluate: Box::new(evaluate), find_mask: Box::new(find_mask) }
    }
}

fn context<'a>(
    engine: &'a Engine,
    catalog: &'a Catalog,
    keyspace: Option<&'a str>,
    terms: &'a Terms<'a>,
    (table_id, at): ([u8; 16], WriteTime),
    guard: &'a Guard,
) -> Context<'a> {
    let options = engine.options();
    Context {
        keyspace,
        data_center: catalog.data_center(),
        default_compaction: options.default_compaction.as_ref(),
        default_factor: u32::try_from(options.default_keyspace_rf.get()).unwrap_or(u32::MAX),
        guard,
        indexes: &options.indexes,
        functions: &options.functions,
        views: &options.views,
        view_rows: halcyon_cql::plan::view::restricted,
        evaluate: &*terms.evaluate,
        masks: options.masks,
        find_mask: &*terms.find_mask,
        drops_compact_storage: options.drops_compact_storage,
        table_id,
        at,
    }
}

/// The context of a statement that is validated and not executed.
fn for_validation<'a>(
    engine: &'a Engine,
    catalog: &'a Catalog,
    keyspace: Option<&'a str>,
    terms: &'a Terms<'a>,
    guard: &'a Guard,
) -> Context<'a> {
    let at = WriteTime { micros: 0, seconds: 0 };
    context(engine, catalog, keyspace, terms, ([0; 16], at), guard)
}

/// Compiles the body of a function that is about to be made, before the schema is locked.
async fn check_body(
    coordinator: &Coordinator,
    create: &CreateFunction,
    keyspace: Option<&str>,
    id: [u8; 16],
) -> Result<()> {
    let function = {
        let engine = coordinator.engine();
        let catalog = engine.tables().catalog();
        let terms = Terms::new(&catalog);
        let (at, guard) = (WriteTime { micros: 0, seconds: 0 }, Guard::default());
        let context = context(engine, &catalog, keyspace, &terms, (id, at), &guard);
        change::new_function(&catalog, create, &context)?
    };
    let deadline = clock::now() + COMPILATION_MAX;
    let late = || Error::Overloaded("the function's body waits too long to be compiled".into());
    let checked = functions::check(function, deadline).await;
    Ok(checked.map_err(|gone| Error::Server(gone.to_string()))?.ok_or_else(late)??)
}

fn outcome(made: Change, changed: &Changed) -> Outcome {
    match (made.event, made.warnings) {
        (Some(change), warnings) => Outcome::SchemaChange {
            change,
            invalidated: Invalidated::of(changed.before.as_deref(), changed.after.as_deref()),
            warnings,
        },
        (None, warnings) if warnings.is_empty() => Outcome::Void,
        (None, warnings) => Outcome::Warned(warnings),
    }
}
