//! What columns of a result are called when they have no alias.

use std::collections::{HashMap, HashSet};

use halcyon_syntax::Error;
use halcyon_syntax::ast::{QualifiedName, RawSelector, RawTerm};

use crate::plan::functions::{COUNT_ROWS, cast_target};
use crate::plan::term::shown_type;

fn bound(term: &Option<RawTerm>) -> String {
    term.as_ref().map(RawTerm::to_string).unwrap_or_default()
}

/// What is known of selectors, by their place in the statement, once they are prepared.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Casts to the type that their selector has already: they are not shown.
    pub(super) own_casts: HashSet<*const RawSelector>,
    /// The keyspaces of user-defined functions that are called without it.
    pub(super) keyspaces: HashMap<*const RawSelector, String>,
}

/// The name of a selector. A native function is shown with its keyspace.
pub(super) fn name(selector: &RawSelector) -> String {
    shown(selector, &Known::default())
}

/// Whether it is `count` of a constant.
pub(super) fn counts_rows(name: &QualifiedName, arguments: &[RawSelector]) -> bool {
    name.name == "count" && matches!(arguments, [RawSelector::Term(RawTerm::Literal { .. })])
}

/// Of a term, as it is shown.
pub(super) fn cannot_infer(shown: &str) -> Error {
    Error::InvalidRequest(format!(
        "Cannot infer type for term {shown} in selection clause (try using a cast to force a type)"
    ))
}

/// The name of a selector that is prepared.
pub(super) fn shown(selector: &RawSelector, known: &Known) -> String {
    let name = |of: &RawSelector| shown(of, known);
    let place = std::ptr::from_ref(selector);
    let joined = |items: &[RawSelector]| items.iter().map(name).collect::<Vec<_>>().join(", ");
    match selector {
        RawSelector::Cast { selector: of, .. } if known.own_casts.contains(&place) => name(of),
        RawSelector::Column(column) => column.text.clone(),
        RawSelector::CountRows => "count".to_owned(),
        RawSelector::WriteTime(of) => format!("writetime({})", name(of)),
        RawSelector::MaxWriteTime(of) => format!("maxwritetime({})", name(of)),
        RawSelector::Ttl(of) => format!("ttl({})", name(of)),
        RawSelector::Call { name: function, arguments, .. } => {
            let own = || known.keyspaces.get(&place).map(String::as_str);
            let keyspace = function.keyspace.as_deref().or_else(own).unwrap_or("system");
            if counts_rows(function, arguments) {
                return "count".to_owned();
            }
            if keyspace == "system" {
                match (cast_target(&function.name), arguments.as_slice()) {
                    (Some(to), [of]) => return format!("cast({} as {to})", name(of)),
                    _ if COUNT_ROWS.contains(&&*function.name) => return "count".to_owned(),
                    _ => {}
                }
            }
            format!("{keyspace}.{}({})", function.name, joined(arguments))
        }
        RawSelector::Cast { selector, to } => {
            format!("cast({} as {})", name(selector), to.text.to_lowercase())
        }
        RawSelector::Field { selector, field } => format!("{}.{}", name(selector), field.text),
        RawSelector::Element { selector, key } => format!("{}[{key}]", name(selector)),
        RawSelector::Slice { selector, from, to } => {
            format!("{}[{}..{}]", name(selector), bound(from), bound(to))
        }
        RawSelector::Term(term) => term.to_string(),
        RawSelector::TypeHint { to, selector } => {
            let shown = match &**selector {
                RawSelector::Map(entries) if !to.text.contains('<') => user_type(entries),
                other => name(other),
            };
            format!("({}){shown}", shown_type(&to.text))
        }
        RawSelector::List(items) => format!("[{}]", joined(items)),
        RawSelector::Set(items) => format!("{{{}}}", joined(items)),
        RawSelector::Map(entries) => {
            let entry = |(key, value): &(RawSelector, RawSelector)| {
                format!("{}: {}", name(key), name(value))
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        RawSelector::Tuple(items) => format!("({})", joined(items)),
        RawSelector::Arithmetic { operator, left, right } => {
            format!("{} {operator} {}", name(left), name(right))
        }
        RawSelector::Negate(of) => format!("-{}", name(of)),
    }
}

/// A literal of a user type. Of several values of one field the last one is shown.
fn user_type(entries: &[(RawSelector, RawSelector)]) -> String {
    let last: HashMap<String, &RawSelector> =
        entries.iter().map(|(field, value)| (name(field), value)).collect();
    let mut seen = HashSet::new();
    let fields =
        entries.iter().map(|(field, _)| name(field)).filter(|field| seen.insert(field.clone()));
    let shown = |field: String| {
        let value = last.get(&field).map_or_else(String::new, |value| name(value));
        format!("{field}: {value}")
    };
    format!("{{{}}}", fields.map(shown).collect::<Vec<_>>().join(", "))
}

/// `writetime` and its like, as messages name them.
pub(super) fn time_function(selector: &RawSelector) -> &'static str {
    match selector {
        RawSelector::WriteTime(_) => "writetime",
        RawSelector::MaxWriteTime(_) => "maxwritetime",
        _ => "ttl",
    }
}

/// What elements, slices and fields are of, at any depth.
pub(super) fn timed_column(of: &RawSelector) -> &RawSelector {
    match of {
        RawSelector::Element { selector, .. }
        | RawSelector::Slice { selector, .. }
        | RawSelector::Field { selector, .. } => timed_column(selector),
        other => other,
    }
}
