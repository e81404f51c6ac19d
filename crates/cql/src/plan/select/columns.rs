//! The columns that a selector names.

use halcyon_syntax::ast::{Name, RawSelector};

/// Calls back with each column that a selector names.
pub(super) fn columns_of(selector: &RawSelector, found: &mut impl FnMut(&Name)) {
    match selector {
        RawSelector::Column(name) => found(name),
        RawSelector::CountRows | RawSelector::Term(_) => {}
        RawSelector::WriteTime(of)
        | RawSelector::MaxWriteTime(of)
        | RawSelector::Ttl(of)
        | RawSelector::Negate(of)
        | RawSelector::Cast { selector: of, .. }
        | RawSelector::Field { selector: of, .. }
        | RawSelector::Element { selector: of, .. }
        | RawSelector::Slice { selector: of, .. }
        | RawSelector::TypeHint { selector: of, .. } => columns_of(of, found),
        RawSelector::Call { arguments: items, .. }
        | RawSelector::List(items)
        | RawSelector::Set(items)
        | RawSelector::Tuple(items) => {
            for item in items {
                columns_of(item, found);
            }
        }
        RawSelector::Map(entries) => {
            for (key, value) in entries {
                columns_of(key, found);
                columns_of(value, found);
            }
        }
        RawSelector::UserType(fields) => {
            for (_, value) in fields {
                columns_of(value, found);
            }
        }
        RawSelector::Arithmetic { left, right, .. } => {
            columns_of(left, found);
            columns_of(right, found);
        }
    }
}
