//! Calls of user-defined functions get the keyspace that they leave out: results show their full names.

use halcyon_schema::function::Functions;
use halcyon_syntax::ast::RawSelector;

/// Native names that are often shadowed by overloads: which one is meant is known only when arguments have types.
const AGGREGATES: [&str; 5] = ["count", "min", "max", "sum", "avg"];

/// Qualifies the calls in a selector of a statement on the keyspace with these functions.
pub fn qualify(selector: &mut RawSelector, keyspace: &str, functions: &Functions) {
    let each = |selector: &mut RawSelector| qualify(selector, keyspace, functions);
    match selector {
        RawSelector::Call { name, arguments } => {
            let is_own = functions.has(&name.name) && !AGGREGATES.contains(&&*name.name);
            if name.keyspace.is_none() && is_own {
                name.keyspace = Some(keyspace.to_owned());
            }
            arguments.iter_mut().for_each(each);
        }
        RawSelector::WriteTime(of)
        | RawSelector::MaxWriteTime(of)
        | RawSelector::Ttl(of)
        | RawSelector::Negate(of)
        | RawSelector::Cast { selector: of, .. }
        | RawSelector::Field { selector: of, .. }
        | RawSelector::Element { selector: of, .. }
        | RawSelector::Slice { selector: of, .. }
        | RawSelector::TypeHint { selector: of, .. } => each(of),
        RawSelector::List(items) | RawSelector::Set(items) | RawSelector::Tuple(items) => {
            items.iter_mut().for_each(each);
        }
        RawSelector::Map(entries) => {
            for (key, value) in entries {
                qualify(key, keyspace, functions);
                qualify(value, keyspace, functions);
            }
        }
        RawSelector::UserType(fields) => fields.iter_mut().map(|(_, of)| of).for_each(each),
        RawSelector::Arithmetic { left, right, .. } => {
            qualify(left, keyspace, functions);
            qualify(right, keyspace, functions);
        }
        RawSelector::Column(_) | RawSelector::CountRows | RawSelector::Term(_) => {}
    }
}
