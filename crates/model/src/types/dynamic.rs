//! `DynamicCompositeType`: composites in whose values each component names its type.
//!
//! ```text
//!  value     := component*
//!  component := u16 0x80aa                  aa: an alias of the type, a character
//!               | u16 length, class name    the top bit is not set
//!               u16 length, bytes, end-of-component byte (signed)
//! ```
//!
//! Components of different types are in the order of the names of their classes. A class that holds such a composite again, which no
//! alias does either, is not looked into.

use std::cmp::Ordering;

use super::CqlType;
use super::frames::{component_message, take_component};

/// Types by the character that stands for them.
pub type Aliases = [(u8, CqlType)];

/// What names the type of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparator<'a> {
    Alias(u8),
    Class(&'a str),
}

impl Comparator<'_> {
    pub(crate) fn type_in(self, aliases: &Aliases) -> Option<CqlType> {
        match self {
            Comparator::Alias(alias) => {
                aliases.iter().find(|(known, _)| *known == alias).map(|(_, of)| of.clone())
            }
            Comparator::Class(name) => {
                let is_known = |of: &CqlType| {
                    !matches!(of.base(), CqlType::Custom(_) | CqlType::DynamicComposite(_))
                };
                CqlType::parse(name).ok().filter(is_known)
            }
        }
    }
}

pub(crate) struct Component<'a> {
    pub(crate) comparator: Comparator<'a>,
    pub(crate) of: CqlType,
    pub(crate) value: &'a [u8],
    pub(crate) end: i8,
}

/// Aliases in the order in which Java's hash map has them, each once: the last type that it is given.
pub(super) fn in_order(given: Vec<(u8, CqlType)>) -> Vec<(u8, CqlType)> {
    let mut aliases: Vec<(u8, CqlType)> = Vec::with_capacity(given.len());
    for (alias, of) in given {
        match aliases.iter_mut().find(|(known, _)| *known == alias) {
            Some(known) => known.1 = of,
            None => aliases.push((alias, of)),
        }
    }
    let buckets = (aliases.len() * 4).div_ceil(3).next_power_of_two().clamp(16, 128);
    aliases.sort_by_key(|(alias, _)| usize::from(*alias) & (buckets - 1));
    aliases
}

/// The next component; the error is the message of what is missing.
fn read<'a>(aliases: &Aliases, rest: &mut &'a [u8], i: usize) -> Result<Component<'a>, String> {
    let Some((header, tail)) = rest.split_first_chunk::<2>() else {
        return Err(format!("Not enough bytes to header of the comparator part of component {i}"));
    };
    let unknown = || format!("Cannot find comparator for component {i}");
    let (comparator, mut tail) = match header {
        [0x80..=0xff, alias] => (Comparator::Alias(*alias), tail),
        length => {
            let length = usize::from(u16::from_be_bytes(*length));
            let Some((name, tail)) = tail.split_at_checked(length) else {
                return Err(format!("Not enough bytes to read comparator name of component {i}"));
            };
            (Comparator::Class(std::str::from_utf8(name).map_err(|_| unknown())?), tail)
        }
    };
    let of = comparator.type_in(aliases).ok_or_else(unknown)?;
    let Some((value, end)) = take_component(&mut tail) else {
        return Err(component_message(tail, i));
    };
    *rest = tail;
    Ok(Component { comparator, of, value, end })
}

pub(crate) fn take<'a>(aliases: &Aliases, rest: &mut &'a [u8]) -> Option<Component<'a>> {
    read(aliases, rest, 0).ok()
}

pub(super) fn validate(aliases: &Aliases, v: &[u8]) -> Result<(), String> {
    let mut rest = v;
    let mut i = 0;
    while !rest.is_empty() {
        let component = read(aliases, &mut rest, i)?;
        component.of.validate(component.value)?;
        if component.end != 0 && !rest.is_empty() {
            return Err(format!(
                "Invalid bytes remaining after an end-of-component at component{i}"
            ));
        }
        i += 1;
    }
    Ok(())
}

pub(super) fn compare(aliases: &Aliases, mut a: &[u8], mut b: &[u8]) -> Ordering {
    loop {
        if a.is_empty() || b.is_empty() {
            return b.is_empty().cmp(&a.is_empty());
        }
        let order = match (take(aliases, &mut a), take(aliases, &mut b)) {
            (Some(l), Some(r)) => by_class(&l.of, &r.of)
                .then_with(|| l.of.compare(l.value, r.value))
                .then(l.end.cmp(&r.end)),
            (None, None) => return a.cmp(b),
            // What cannot be read is last.
            (l, r) => r.is_some().cmp(&l.is_some()),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The order of types: by the simple names of their classes, then by the full ones. Of two reversed types it is that of their bases.
fn by_class(l: &CqlType, r: &CqlType) -> Ordering {
    let (l, r) = match (l, r) {
        (CqlType::Reversed(l), CqlType::Reversed(r)) => (&**l, &**r),
        other => other,
    };
    if l == r {
        return Ordering::Equal;
    }
    let ((l_simple, l_full), (r_simple, r_full)) = (class_names(l), class_names(r));
    l_simple.cmp(&r_simple).then(l_full.cmp(&r_full))
}

/// The simple and the full name of a type's class.
pub(crate) fn class_names(of: &CqlType) -> (String, String) {
    let spelled = of.to_string();
    let full = spelled.split('(').next().unwrap_or_default().to_owned();
    (full.rsplit('.').next().unwrap_or_default().to_owned(), full)
}
