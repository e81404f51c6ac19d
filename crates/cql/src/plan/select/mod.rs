//! SELECT: its plan, and what each execution makes of it.
//!
//! `prepare` checks in Cassandra's order (`SelectStatement.RawStatement.prepare`): some of the names that are selected, restrictions, the
//! selection, DISTINCT, GROUP BY, ORDER BY, so that the first fault that a client reads is the same.

mod bind;
mod columns;
mod grouping;
mod ordering;
mod plan;

use std::sync::Arc;
use std::time::Duration;

use halcyon_model::request::ColumnSpec;
use halcyon_model::schema::ColumnKind;
use halcyon_model::value::parse_duration;
use halcyon_model::{CqlType, Cursor};

use super::execution::Work;
use super::metadata::{ResultColumns, Variables};
use super::names::find_table;
use super::prepared::Prepared;
use super::requires;
use super::restrictions::{Context, Restrictions};
use super::selection::{Preparing, Selection, Selector, qualify};
use super::term::{Preparation, Term};
use columns::selects;
use halcyon_schema::catalog::{Catalog, ColumnRef, Keyspace, Table};
use halcyon_syntax::ast::{self, RawSelector, RawTerm, SelectItem};
use halcyon_syntax::{Error, Result};

pub use bind::{BoundSelect, Limits, NO_LIMIT};
pub use grouping::Grouping;
pub use plan::SelectPlan;

pub fn prepare(
    select: &ast::Select,
    catalog: &Catalog,
    keyspace: Option<&str>,
    work: &Work<'_>,
) -> Result<Prepared<Arc<SelectPlan>>> {
    let table = find_table(&select.table, catalog, keyspace)?.clone();
    let mut variables = Variables::default();
    let own = table.schema.keyspace.clone();
    let mut to = Preparation::new(catalog, &own, &mut variables, work);
    let items = qualified(items(select, &table), catalog.keyspace(to.keyspace));
    let mut preparing = Preparing::new(&table, &mut to);
    let (only_statics, looked_up) = only_statics(&table, select, &items);
    let selectors = selectors(&mut preparing, &items, looked_up)?;
    let mut selection = std::mem::take(&mut preparing.selection);
    let context = Context { allow_filtering: select.allow_filtering, only_statics };
    let nearest = ordering::nearest(&table, &select.order_by, &mut to)?;
    let restrictions = Restrictions::prepare(&table, &select.relations, nearest, context, &mut to)?;
    let (selectors, specs) = selectors?;
    selection.selectors = selectors;
    if select.distinct {
        check_distinct(select, &table, &selection, &restrictions)?;
    }
    let grouping = grouping::prepare(select, &table, &restrictions, &mut selection, &mut to)?;
    if select.per_partition_limit.is_some() && selection.is_aggregate() && grouping.is_none() {
        return Err(Error::invalid_request(
            "PER PARTITION LIMIT is not allowed with aggregate queries.",
        ));
    }
    let (reversed, sort) =
        ordering::prepare(&select.order_by, &table, &restrictions, &mut selection)?;
    restrictions.check_filtering(&table, context)?;
    let filter_fetch = restrictions
        .filters
        .iter()
        .flat_map(|entry| entry.columns.iter())
        .map(|column| (*column, selection.fetch(*column, false)))
        .collect();
    let nearest = restrictions.nearest.map(|column| selection.fetch(column, false));
    let row_limit = limit(select.limit.as_ref(), "[limit]", &table, &mut to)?;
    let per_partition_limit =
        limit(select.per_partition_limit.as_ref(), "[per_partition_limit]", &table, &mut to)?;
    let timeout = select.timeout.as_deref().map(timeout).transpose()?;
    let requires = requires::of_select(&table, &restrictions, to.calls);
    variables.find_partition_key(table.schema.partition_key.iter().map(|c| c.name.as_str()));
    let (columns, json) = result_columns(select.json, &table, specs);
    let plan = SelectPlan {
        table,
        columns: columns.clone(),
        json,
        distinct: select.distinct,
        allow_filtering: select.allow_filtering,
        selection,
        restrictions,
        reversed,
        sort,
        nearest,
        filter_fetch,
        grouping,
        limit: row_limit,
        per_partition_limit,
        timeout,
    };
    let (plan, columns) = (Arc::new(plan), Some(columns));
    Ok(Prepared { plan, variables, columns, warnings: Vec::new(), requires })
}

/// The items, in which the keyspace's functions and types have their full names.
fn qualified(mut items: Vec<SelectItem>, keyspace: Option<&Arc<Keyspace>>) -> Vec<SelectItem> {
    if let Some(own) =
        keyspace.filter(|own| !own.functions.scalars.is_empty() || !own.types.is_empty())
    {
        items.iter_mut().for_each(|item| qualify(&mut item.selector, own));
    }
    items
}

/// The items that are selected; `*` is all columns: key, clustering, statics and regulars by name.
fn items(select: &ast::Select, table: &Table) -> Vec<SelectItem> {
    let names = |kind: ColumnKind| -> Vec<String> {
        let columns = table.in_select_order(kind);
        columns.into_iter().filter_map(|at| Some(table.column(at)?.name.clone())).collect()
    };
    match &select.selection {
        ast::Selection::Items(items) => items.clone(),
        ast::Selection::All => {
            let kinds = [
                ColumnKind::PartitionKey,
                ColumnKind::Clustering,
                ColumnKind::Static,
                ColumnKind::Regular,
            ];
            let item = |text: String| SelectItem {
                selector: RawSelector::Column(ast::Name { location: select.table.location, text }),
                alias: None,
            };
            kinds.into_iter().flat_map(names).map(item).collect()
        }
    }
}

/// Whether static columns are selected, and nothing else but the partition key; and of how many items Cassandra has looked up columns,
/// functions and types when it knows that, before it looks at the restrictions.
fn only_statics(table: &Table, select: &ast::Select, items: &[SelectItem]) -> (bool, usize) {
    let has_statics = !table.schema.statics.is_empty() && !table.schema.is_static_compact();
    if select.selection == ast::Selection::All || !has_statics {
        return (false, 0);
    }
    let up_to = |wanted: fn(ColumnKind) -> bool| {
        let is_wanted =
            |name: &ast::Name| table.find_column(&name.text).is_some_and(|c| wanted(c.kind));
        items.iter().position(|item| selects(&item.selector, &is_wanted)).map(|place| place + 1)
    };
    let Some(first_static) = up_to(|kind| kind == ColumnKind::Static) else {
        return (false, items.len());
    };
    let of_rows = up_to(|kind| matches!(kind, ColumnKind::Clustering | ColumnKind::Regular));
    (of_rows.is_none(), first_static.max(of_rows.unwrap_or(items.len())))
}

/// What is selected. The outer error is about names that Cassandra looks up before the restrictions; the inner one is the first of
/// the others.
fn selectors(
    preparing: &mut Preparing<'_, '_>,
    items: &[SelectItem],
    looked_up: usize,
) -> Result<Result<(Vec<Selector>, Vec<ColumnSpec>)>> {
    let first = items.iter().take(looked_up).map(|item| preparing.resolve(&item.selector));
    let mut first = first.collect::<Result<Vec<_>>>()?.into_iter();
    let mut selectors = Vec::with_capacity(items.len());
    let mut specs = Vec::with_capacity(items.len());
    for item in items {
        let of = first.next().map_or_else(|| preparing.resolve(&item.selector), Ok);
        let made = of.and_then(|of| preparing.item(&of));
        let (prepared, name) = match made {
            Ok(made) => made,
            Err(error) => return Ok(Err(error)),
        };
        let name = item.alias.as_ref().map_or(name, |alias| alias.text.clone());
        specs.push(ColumnSpec::of(&preparing.table.schema, name, prepared.cql_type));
        selectors.push(prepared.selector);
    }
    Ok(Ok((selectors, specs)))
}

fn result_columns(
    json: bool,
    table: &Table,
    specs: Vec<ColumnSpec>,
) -> (ResultColumns, Option<Vec<(String, CqlType)>>) {
    if !json {
        return (specs.into(), None);
    }
    let text = ColumnSpec::of(&table.schema, "[json]", CqlType::Text);
    ([text].into(), Some(specs.into_iter().map(|spec| (spec.name, spec.cql_type)).collect()))
}

fn limit(
    raw: Option<&RawTerm>,
    name: &str,
    table: &Table,
    to: &mut Preparation<'_>,
) -> Result<Option<Term>> {
    let spec = ColumnSpec::of(&table.schema, name, CqlType::Int);
    raw.map(|raw| Term::prepare(raw, &spec, to)).transpose()
}

/// The milliseconds of `USING TIMEOUT`.
fn timeout(text: &str) -> Result<Duration> {
    let refuse = |why: &str| {
        Err(Error::InvalidRequest(format!(
            "the timeout {text} {why}: write it in milliseconds, as 500ms"
        )))
    };
    let bytes = parse_duration(text).map_err(Error::InvalidRequest)?;
    let mut cursor = Cursor::new(&bytes);
    let parts = [cursor.svint(), cursor.svint(), cursor.svint()].map(|part| part.unwrap_or(-1));
    let [months, days, nanos] = parts;
    if months != 0 || days != 0 {
        return refuse("has months or days");
    }
    match u64::try_from(nanos) {
        Ok(nanos) if nanos > 0 && nanos % 1_000_000 == 0 => Ok(Duration::from_nanos(nanos)),
        _ => refuse("is not a positive number of milliseconds"),
    }
}

fn check_distinct(
    select: &ast::Select,
    table: &Table,
    selection: &Selection,
    restrictions: &Restrictions,
) -> Result<()> {
    if select.per_partition_limit.is_some() {
        return Err(Error::invalid_request(
            "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries",
        ));
    }
    if restrictions.clustering_restricted || restrictions.regulars_restricted {
        return Err(Error::invalid_request(
            "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.",
        ));
    }
    // What rows of several partitions are sorted by is requested too.
    let sorted = select.order_by.iter().filter(|_| restrictions.keys_in);
    let sorted: Vec<ColumnRef> =
        sorted.filter_map(|order| table.find_column(&order.column.text)).collect();
    let columns = || selection.fetch.iter().map(|fetch| fetch.column).chain(sorted.iter().copied());
    let other =
        columns().find(|c| !matches!(c.kind, ColumnKind::PartitionKey | ColumnKind::Static));
    if let Some(other) = other {
        return Err(Error::InvalidRequest(format!(
            "SELECT DISTINCT queries must only request partition key columns and/or static columns (not {})",
            table.column(other).map_or("", |column| column.name.as_str())
        )));
    }
    if !restrictions.key_range {
        return Ok(());
    }
    for column in &table.schema.partition_key {
        let wanted = table.find_column(&column.name);
        if !columns().any(|column| Some(column) == wanted) {
            return Err(Error::InvalidRequest(format!(
                "SELECT DISTINCT queries must request all the partition key columns (missing {})",
                column.name
            )));
        }
    }
    Ok(())
}
