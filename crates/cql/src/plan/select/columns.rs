//! The columns that a selector names.

use halcyon_syntax::ast::{Name, RawSelector};

/// Calls back with each column that a selector names.
pub(super) fn columns_of(selector: &RawSelector, found: &mut impl FnMut(&Name)) {
    match selector {
        RawSelector::Column(name) => found(name),
        composed => {
            for part in parts(composed) {
                columns_of(part, found);
            }
        }
    }
}

/// Whether a selector names a column of a kind (`Selectable.selectColumns`). A literal of a map or a user type does, whatever the kind,
/// if one of its values does not: Cassandra has the test of values the wrong way round (`WithMapOrUdt`).
pub(super) fn selects(selector: &RawSelector, wanted: &dyn Fn(&Name) -> bool) -> bool {
    match selector {
        RawSelector::Column(name) => wanted(name),
        RawSelector::Map(entries) => entries.iter().any(|(key, value)| {
            let is_key = !matches!(key, RawSelector::Column(_)) && selects(key, wanted);
            is_key || !selects(value, wanted)
        }),
        composed => parts(composed).into_iter().any(|part| selects(part, wanted)),
    }
}

/// What a selector is made of.
fn parts(selector: &RawSelector) -> Vec<&RawSelector> {
    match selector {
        RawSelector::Column(_) | RawSelector::CountRows | RawSelector::Term(_) => Vec::new(),
        RawSelector::WriteTime(of)
        | RawSelector::MaxWriteTime(of)
        | RawSelector::Ttl(of)
        | RawSelector::Negate(of)
        | RawSelector::Cast { selector: of, .. }
        | RawSelector::Field { selector: of, .. }
        | RawSelector::Element { selector: of, .. }
        | RawSelector::Slice { selector: of, .. }
        | RawSelector::TypeHint { selector: of, .. } => vec![of],
        RawSelector::Call { arguments: items, .. }
        | RawSelector::List(items)
        | RawSelector::Set(items)
        | RawSelector::Tuple(items) => items.iter().collect(),
        RawSelector::Map(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
        RawSelector::Arithmetic { left, right, .. } => vec![left, right],
    }
}
