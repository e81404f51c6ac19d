//! User-defined functions and types get the keyspace that they leave out: results show their full names. Of a function whose name a
//! native one has too, the types of its arguments decide which is meant, when overloads are chosen.

use std::sync::Arc;

use halcyon_schema::catalog::Keyspace;
use halcyon_syntax::ast::{RawSelector, RawTerm};

use crate::plan::functions::is_native;
use crate::plan::term::with_keyspace;

/// Qualifies the calls and type hints in a selector of a statement on the keyspace.
pub fn qualify(selector: &mut RawSelector, own: &Arc<Keyspace>) {
    let each = |selector: &mut RawSelector| qualify(selector, own);
    match selector {
        RawSelector::Call { name, arguments, is_implied } => {
            let is_own = own.functions.has(&name.name) && !is_native(&name.name);
            if name.keyspace.is_none() && is_own {
                name.keyspace = Some(own.name.clone());
                *is_implied = true;
            }
            arguments.iter_mut().for_each(each);
        }
        RawSelector::WriteTime(of)
        | RawSelector::MaxWriteTime(of)
        | RawSelector::Ttl(of)
        | RawSelector::Negate(of)
        | RawSelector::Cast { selector: of, .. }
        | RawSelector::Field { selector: of, .. } => each(of),
        RawSelector::Element { selector: of, key } => {
            qualify_term(key, own);
            each(of);
        }
        RawSelector::Slice { selector: of, from, to } => {
            [from, to].into_iter().flatten().for_each(|limit| qualify_term(limit, own));
            each(of);
        }
        RawSelector::TypeHint { to, selector: of } => {
            to.text = with_keyspace(to, Some(own));
            each(of);
        }
        RawSelector::List(items) | RawSelector::Set(items) | RawSelector::Tuple(items) => {
            items.iter_mut().for_each(each);
        }
        RawSelector::Map(entries) => {
            for (key, value) in entries {
                qualify(key, own);
                qualify(value, own);
            }
        }
        RawSelector::Arithmetic { left, right, .. } => {
            qualify(left, own);
            qualify(right, own);
        }
        RawSelector::Column(_) | RawSelector::CountRows | RawSelector::Term(_) => {}
    }
}

fn qualify_term(term: &mut RawTerm, own: &Arc<Keyspace>) {
    if let RawTerm::TypeHint { to, term } = term {
        to.text = with_keyspace(to, Some(own));
        qualify_term(term, own);
    }
}
