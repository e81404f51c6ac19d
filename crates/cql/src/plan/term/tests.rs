//! The work of preparing a term: counted in steps of inference, not in time.

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_schema::catalog::Catalog;
use halcyon_syntax::ast::{ArithmeticOperator, LiteralKind, RawTerm, TypeText};
use halcyon_syntax::lexer::Location;

use super::prepare::{Preparing, prepare_node};
use super::{Preparation, raw};
use crate::plan::execution::Work;
use crate::plan::metadata::Variables;

fn one() -> RawTerm {
    RawTerm::Literal { kind: LiteralKind::Integer, text: "1".into() }
}

fn nested(depth: usize, first: RawTerm, around: impl Fn(RawTerm) -> RawTerm) -> RawTerm {
    (0..depth).fold(first, |inner, _| around(inner))
}

/// Steps of inference that preparing the term takes.
fn steps(term: &RawTerm, cql_type: CqlType) -> u64 {
    let (catalog, mut variables) = (Catalog::default(), Variables::default());
    let work = Work::while_there_is_time(&|| true);
    let mut to = Preparation::new(&catalog, "ks", &mut variables, &work);
    let receiver = ColumnSpec { name: "v".into(), cql_type, ..ColumnSpec::default() };
    let mut preparing = Preparing::new(&mut to);
    prepare_node(term, &receiver, &mut preparing).unwrap();
    preparing.steps()
}

fn is_linear(what: &str, of: impl Fn(usize) -> (RawTerm, CqlType)) {
    let [once, twice] = [50, 100].map(|depth| {
        let (term, cql_type) = of(depth);
        steps(&term, cql_type)
    });
    assert!(twice <= 2 * once + 100, "{what}: {once} steps become {twice} for twice the depth");
}

/// Proves that a chain of operators, nested calls, casts and literals take steps in proportion to their depth, although each level has many
/// overloads and asks the level below for each of them.
#[test]
fn preparing_is_linear_in_depth() {
    let plus = |operator| {
        move |left| RawTerm::Arithmetic { operator, left: Box::new(left), right: Box::new(one()) }
    };
    let numbers = [CqlType::Int, CqlType::SmallInt, CqlType::BigInt, CqlType::Varint];
    for number in numbers.into_iter().chain([CqlType::Double, CqlType::Decimal]) {
        is_linear("a sum", |depth| {
            (nested(depth, one(), plus(ArithmeticOperator::Subtract)), number.clone())
        });
    }
    let both = |inner: RawTerm| RawTerm::Arithmetic {
        operator: ArithmeticOperator::Divide,
        left: Box::new(one()),
        right: Box::new(inner),
    };
    is_linear("from the right", |depth| (nested(depth, one(), both), CqlType::Double));
    let negate = |inner| RawTerm::Negate(Box::new(inner));
    is_linear("negations", |depth| (nested(depth, one(), negate), CqlType::Int));
    let call = |name: &'static str| {
        move |inner| RawTerm::Call { name: raw::native(name), arguments: vec![inner] }
    };
    is_linear("calls", |depth| (nested(depth, one(), call("abs")), CqlType::Int));
    is_linear("masks", |depth| (nested(depth, one(), call("mask_null")), CqlType::Int));
    let hint = |inner| RawTerm::TypeHint {
        to: TypeText { location: Location { line: 1, column: 0 }, text: "int".into() },
        term: Box::new(inner),
    };
    is_linear("hints", |depth| (nested(depth, one(), hint), CqlType::Int));
}

/// Proves the same of collections in collections, whose elements are checked on each level.
#[test]
fn preparing_is_linear_in_width_and_depth() {
    let list_type =
        |depth| (0..depth).fold(CqlType::Int, |inner, _| CqlType::List(Box::new(inner)).freeze());
    is_linear("lists", |depth| {
        let wide = RawTerm::List(vec![one(); 100]);
        (nested(depth, wide, |inner| RawTerm::List(vec![inner])), list_type(depth + 1))
    });
    is_linear("tuples", |width| {
        (RawTerm::Tuple(vec![one(); width]), CqlType::Tuple(vec![CqlType::Int; width]))
    });
}
