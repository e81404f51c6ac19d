//! WHERE of UPDATE and DELETE, and the key columns of INSERT: which partitions and rows are meant
//! (`StatementRestrictions`).

use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_model::schema::ColumnKind;

use super::columns::{column, spec_of};
use super::statement_type::StatementType;
use crate::plan::restrictions::{
    TupleList, TupleTerm, What, add_token, check_collection, check_operator, check_slice, entry,
    text, token, unindexed_like,
};
use crate::plan::term::{Preparation, Term};
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_syntax::ast::{Operator, RawTerm, Relation, RelationTarget, RelationValue};
use halcyon_syntax::{Error, Result};

#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub values: TupleTerm,
    /// Number of columns that it restricts.
    pub len: usize,
    pub inclusive: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Test {
    Equal(TupleTerm),
    In(TupleList),
    Slice { start: Option<Bound>, end: Option<Bound> },
}

/// A test of `len` columns of one kind that follow each other.
#[derive(Debug, Clone)]
pub(super) struct Restriction {
    pub first: usize,
    pub len: usize,
    pub test: Test,
}

#[derive(Debug, Clone)]
pub(super) struct Restrictions {
    /// By partition key column.
    pub key: Vec<Option<Restriction>>,
    /// In the order of their first columns.
    pub clustering: Vec<Restriction>,
    /// Which of the keys are meant.
    pub token: Option<What>,
}

pub(super) struct Scope<'a> {
    pub table: &'a Arc<Table>,
    pub kind: StatementType,
}

fn refuse<T>(message: String) -> Result<T> {
    Err(Error::InvalidRequest(message))
}

impl Restrictions {
    pub(super) fn new(table: &Table) -> Restrictions {
        let key = table.schema.partition_key.iter().map(|_| None).collect();
        Restrictions { key, clustering: Vec::new(), token: None }
    }

    /// `column = term`, of an INSERT.
    pub(super) fn add_equal(&mut self, column: ColumnRef, term: Term) {
        let first = usize::from(column.index);
        let test = Test::Equal(TupleTerm::One(term));
        self.insert(column.kind, Restriction { first, len: 1, test });
    }

    fn insert(&mut self, kind: ColumnKind, restriction: Restriction) {
        if kind == ColumnKind::PartitionKey {
            if let Some(slot) = self.key.get_mut(restriction.first) {
                *slot = Some(restriction);
            }
            return;
        }
        let at = self.clustering.partition_point(|other| other.first < restriction.first);
        self.clustering.insert(at, restriction);
    }

    pub(super) fn prepare(
        relations: &[Relation],
        scope: &Scope<'_>,
        only_static: bool,
        to: &mut Preparation<'_>,
    ) -> Result<Restrictions> {
        let mut restrictions = Restrictions::new(scope.table);
        let mut others: Vec<String> = Vec::new();
        if relations.iter().any(|r| matches!(r.target, RelationTarget::Expression(_))) {
            return refuse(EXPRESSION.to_owned());
        }
        for relation in relations {
            check_operator(relation)?;
            if matches!(relation.operator, Operator::Contains | Operator::ContainsKey) {
                return refuse(format!("Cannot use {} with {}", scope.kind, relation.operator));
            }
            match &relation.target {
                RelationTarget::Token(names) => {
                    let what = token(scope.table, names, relation, to)?;
                    let names: Vec<String> = names.iter().map(|name| name.text.clone()).collect();
                    add_token(&mut restrictions.token, what, &names)?;
                    continue;
                }
                RelationTarget::Element(name, _) => {
                    entry(scope.table, relation, to)?;
                    others.push(name.text.clone());
                    continue;
                }
                _ => {}
            }
            let (columns, shown) = columns_of(relation, scope)?;
            let test = prepare_test(relation, &columns, &shown, scope, to)?;
            let Some(first) = columns.first().copied() else { continue };
            if !first.kind.is_key() {
                others.push(shown);
                continue;
            }
            let restriction =
                Restriction { first: usize::from(first.index), len: columns.len(), test };
            restrictions.merge(first.kind, restriction, scope.table)?;
        }
        restrictions.check(scope.kind, scope.table, only_static)?;
        if !others.is_empty() {
            others.sort();
            return refuse(format!(
                "Non PRIMARY KEY columns found in where clause: {} ",
                others.join(", ")
            ));
        }
        Ok(restrictions)
    }

    /// Adds a restriction beside those that the same columns have.
    fn merge(&mut self, kind: ColumnKind, new: Restriction, table: &Table) -> Result<()> {
        let overlaps =
            |old: &Restriction| old.first < new.first + new.len && new.first < old.first + old.len;
        let existing = match kind {
            ColumnKind::PartitionKey => self.key.get_mut(new.first).and_then(Option::as_mut),
            _ => self.clustering.iter_mut().find(|old| overlaps(old)),
        };
        let Some(existing) = existing else {
            self.insert(kind, new);
            return Ok(());
        };
        let common = existing.first.max(new.first);
        let name = table.columns(kind).get(common).map_or("", |def| def.name.as_str());
        match (&mut existing.test, new.test) {
            (Test::Equal(_), _) => refuse(format!(
                "{name} cannot be restricted by more than one relation if it includes an Equal"
            )),
            (Test::In(_), _) => refuse(format!(
                "{name} cannot be restricted by more than one relation if it includes a IN"
            )),
            (Test::Slice { start, end }, Test::Slice { start: new_start, end: new_end }) => {
                for (old, new, what) in [(start, new_start, "start"), (end, new_end, "end")] {
                    if old.is_some() && new.is_some() {
                        return refuse(format!(
                            "More than one restriction was found for the {what} bound on {name}"
                        ));
                    }
                    if new.is_some() {
                        *old = new;
                    }
                }
                existing.len = existing.len.max(new.len);
                Ok(())
            }
            (Test::Slice { .. }, _) => refuse(format!(
                "Column \"{name}\" cannot be restricted by both an equality and an inequality relation"
            )),
        }
    }

    /// What Cassandra checks once all relations are known.
    pub(super) fn check(
        &self,
        kind: StatementType,
        table: &Table,
        only_static: bool,
    ) -> Result<()> {
        let schema = &table.schema;
        let is_slice = |restriction: &Restriction| matches!(restriction.test, Test::Slice { .. });
        self.check_order(table)?;
        let has_values = |found: &Option<Restriction>| found.as_ref().is_some_and(|r| !is_slice(r));
        if self.token.is_some() && !self.key.iter().all(has_values) {
            return refuse(format!(
                "The token function cannot be used in WHERE clauses for {kind} statements"
            ));
        }
        let missing: Vec<&str> = schema
            .partition_key
            .iter()
            .zip(&self.key)
            .filter_map(|(def, found)| found.is_none().then_some(def.name.as_str()))
            .collect();
        if !missing.is_empty() {
            return refuse(format!("Some partition key parts are missing: {}", missing.join(", ")));
        }
        if self.key.iter().flatten().any(is_slice) {
            return refuse(format!(
                "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for {kind} statements"
            ));
        }
        if only_static && self.has_clustering() && kind != StatementType::Insert {
            return refuse(format!(
                "Invalid restrictions on clustering columns since the {kind} statement modifies only static columns"
            ));
        }
        if kind == StatementType::Delete {
            return self.check_prefix(table);
        }
        if self.clustering.iter().any(is_slice) {
            return refuse(format!(
                "Slice restrictions are not supported on the clustering columns in {kind} statements"
            ));
        }
        let missing: Vec<&str> = schema
            .clustering
            .iter()
            .enumerate()
            .filter_map(|(i, def)| (!self.restricts(i)).then_some(def.name.as_str()))
            .collect();
        if schema.options.compact_storage && self.has_clustering() {
            // Its rows may have the first values of their clustering alone.
            return self.check_prefix(table);
        }
        if !only_static && !missing.is_empty() {
            return refuse(format!("Some clustering keys are missing: {}", missing.join(", ")));
        }
        Ok(())
    }

    /// Nothing may follow a slice.
    fn check_order(&self, table: &Table) -> Result<()> {
        let name = |i: usize| table.schema.clustering.get(i).map_or("", |def| def.name.as_str());
        for pair in self.clustering.windows(2) {
            if let [first, second] = pair
                && matches!(first.test, Test::Slice { .. })
            {
                return refuse(format!(
                    "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                    name(second.first),
                    name(first.first + first.len - 1)
                ));
            }
        }
        Ok(())
    }

    /// A deletion's restrictions leave out no column in front of another.
    fn check_prefix(&self, table: &Table) -> Result<()> {
        let name = |i: usize| table.schema.clustering.get(i).map_or("", |def| def.name.as_str());
        let mut next = 0;
        for restriction in &self.clustering {
            if restriction.first > next {
                return refuse(format!(
                    "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is not restricted",
                    name(restriction.first),
                    name(next)
                ));
            }
            next = restriction.first + restriction.len;
        }
        Ok(())
    }

    fn restricts(&self, i: usize) -> bool {
        self.clustering.iter().any(|r| (r.first..r.first + r.len).contains(&i))
    }

    pub(super) fn has_clustering(&self) -> bool {
        !self.clustering.is_empty()
    }

    pub(super) fn key_has_in(&self) -> bool {
        self.key.iter().flatten().any(|r| matches!(r.test, Test::In(_)))
    }

    pub(super) fn clustering_has_in(&self) -> bool {
        self.clustering.iter().any(|r| matches!(r.test, Test::In(_)))
    }

    /// Whether every clustering column has values rather than a range.
    pub(super) fn is_full_clustering(&self, table: &Table) -> bool {
        let sliced = self.clustering.iter().any(|r| matches!(r.test, Test::Slice { .. }));
        !sliced && (0..table.schema.clustering.len()).all(|i| self.restricts(i))
    }

    /// Whether every key column is restricted by `=`.
    pub(super) fn is_whole_key(&self, table: &Table) -> bool {
        let equal = |r: &Restriction| matches!(r.test, Test::Equal(_) | Test::In(_));
        self.is_full_clustering(table)
            && self.key.iter().flatten().chain(&self.clustering).all(equal)
    }
}

const EXPRESSION: &str =
    "Custom index expressions cannot be used in WHERE clauses for UPDATE or DELETE statements";

/// The columns of a relation, and how messages name them.
fn columns_of(relation: &Relation, scope: &Scope<'_>) -> Result<(Vec<ColumnRef>, String)> {
    match &relation.target {
        RelationTarget::Column(name) => Ok((vec![column(scope.table, name)?], name.text.clone())),
        // None of them names columns of the key.
        RelationTarget::Token(_) | RelationTarget::Expression(_) | RelationTarget::Element(..) => {
            Ok((Vec::new(), String::new()))
        }
        RelationTarget::Columns(names) => {
            let names_text: Vec<&str> = names.iter().map(|name| name.text.as_str()).collect();
            let shown = format!("({})", names_text.join(", "));
            let mut columns: Vec<ColumnRef> = Vec::with_capacity(names.len());
            for name in names {
                let found = column(scope.table, name)?;
                if found.kind != ColumnKind::Clustering {
                    return refuse(format!(
                        "Multi-column relations can only be applied to clustering columns but was applied to: {}",
                        name.text
                    ));
                }
                if columns.contains(&found) {
                    return refuse(format!(
                        "Column \"{}\" appeared twice in a relation: {}",
                        name.text,
                        text(relation)
                    ));
                }
                if columns.last().is_some_and(|last| last.index + 1 != found.index) {
                    return refuse(format!(
                        "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {}",
                        text(relation)
                    ));
                }
                columns.push(found);
            }
            Ok((columns, shown))
        }
    }
}

fn prepare_test(
    relation: &Relation,
    columns: &[ColumnRef],
    shown: &str,
    scope: &Scope<'_>,
    to: &mut Preparation<'_>,
) -> Result<Test> {
    let specs: Vec<ColumnSpec> = columns.iter().map(|c| spec_of(scope.table, *c)).collect();
    let tuples = matches!(relation.target, RelationTarget::Columns(_));
    specs.iter().try_for_each(|spec| check_collection(spec, relation.operator))?;
    if matches!(
        relation.operator,
        Operator::Greater | Operator::GreaterOrEqual | Operator::Less | Operator::LessOrEqual
    ) {
        specs.iter().try_for_each(check_slice)?;
    }
    let value = |to: &mut Preparation<'_>| match &relation.value {
        RelationValue::One(term) => values(term, &specs, tuples, to),
        RelationValue::Many(_) => refuse(format!("Unsupported restriction: {shown}")),
    };
    let bound = |to: &mut Preparation<'_>, inclusive| -> Result<Option<Bound>> {
        Ok(Some(Bound { values: value(to)?, len: specs.len(), inclusive }))
    };
    Ok(match relation.operator {
        Operator::Equal => Test::Equal(value(to)?),
        Operator::Greater => Test::Slice { start: bound(to, false)?, end: None },
        Operator::GreaterOrEqual => Test::Slice { start: bound(to, true)?, end: None },
        Operator::Less => Test::Slice { start: None, end: bound(to, false)? },
        Operator::LessOrEqual => Test::Slice { start: None, end: bound(to, true)? },
        Operator::In => match &relation.value {
            RelationValue::Many(terms) => match terms.as_slice() {
                [only] => Test::Equal(values(only, &specs, tuples, to)?),
                terms => {
                    let each = terms.iter().map(|term| values(term, &specs, tuples, to));
                    Test::In(TupleList::Each(each.collect::<Result<_>>()?))
                }
            },
            RelationValue::One(term) => {
                let term = Term::prepare(term, &in_spec(&specs, tuples), to)?;
                Test::In(TupleList::List { term, tuples })
            }
        },
        operator => {
            if operator == Operator::Like {
                value(to)?;
            }
            let value = match &relation.value {
                RelationValue::One(term) => term.to_string(),
                RelationValue::Many(_) => String::new(),
            };
            let shown = format!("{shown} {operator} {value}");
            return refuse(match operator {
                Operator::Like => unindexed_like(&shown),
                _ => format!("Unsupported \"{operator}\" relation: {shown}"),
            });
        }
    })
}

/// What receives a tuple for several columns: `(c,d)`.
fn tuple_spec(specs: &[ColumnSpec]) -> ColumnSpec {
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    ColumnSpec {
        name: format!("({})", names.join(",")),
        cql_type: CqlType::Tuple(specs.iter().map(|spec| spec.cql_type.clone()).collect()),
        ..specs.first().cloned().unwrap_or_default()
    }
}

/// What receives the list of `IN ?`: `in(c)`.
fn in_spec(specs: &[ColumnSpec], tuples: bool) -> ColumnSpec {
    let (name, element) = match specs {
        [only] if !tuples => (format!("in({})", only.name), only.cql_type.clone()),
        _ => {
            let tuple = tuple_spec(specs);
            (format!("in{}", tuple.name), tuple.cql_type)
        }
    };
    ColumnSpec {
        name,
        cql_type: CqlType::List(Box::new(element)).freeze(),
        ..specs.first().cloned().unwrap_or_default()
    }
}

fn values(
    term: &RawTerm,
    specs: &[ColumnSpec],
    tuples: bool,
    to: &mut Preparation<'_>,
) -> Result<TupleTerm> {
    match (specs, term) {
        (specs, RawTerm::Bind { .. }) if tuples => {
            Ok(TupleTerm::Whole(Term::prepare(term, &tuple_spec(specs), to)?))
        }
        ([only], RawTerm::Tuple(terms)) if terms.len() == 1 && !is_tuple(only) => {
            let Some(term) = terms.first() else { return refuse(String::new()) };
            let term = Term::prepare(term, only, to)?;
            Ok(if tuples { TupleTerm::Columns(vec![term]) } else { TupleTerm::One(term) })
        }
        ([only], term) => Ok(TupleTerm::One(Term::prepare(term, only, to)?)),
        (specs, RawTerm::Tuple(terms)) => {
            if terms.len() != specs.len() {
                return refuse(format!(
                    "Expected {} elements in value tuple, but got {}: {term}",
                    specs.len(),
                    terms.len()
                ));
            }
            let each = terms.iter().zip(specs).map(|(term, spec)| Term::prepare(term, spec, to));
            Ok(TupleTerm::Columns(each.collect::<Result<_>>()?))
        }
        (specs, term) => Ok(TupleTerm::Whole(Term::prepare(term, &tuple_spec(specs), to)?)),
    }
}

fn is_tuple(spec: &ColumnSpec) -> bool {
    matches!(spec.cql_type.thawed(), CqlType::Tuple(_) | CqlType::Udt(_))
}
