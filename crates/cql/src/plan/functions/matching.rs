//! Whether a value of one type may stand where another is expected (`AssignmentTestable`).

use halcyon_model::CqlType;
use halcyon_syntax::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    Exact,
    /// Could be taken for it: a literal, a marker, a type whose every value is one of the other.
    Weak,
    No,
}

/// An argument of a call while its overload is not chosen yet.
pub trait Argument {
    /// An error is that of a part that cannot stand anywhere.
    fn matches(&self, receiver: &CqlType) -> Result<Match>;

    /// The type that it has whatever receives it; `None` for markers and literals that fit several.
    fn exact_type(&self) -> Result<Option<CqlType>>;

    /// The type that it would have where nothing else decides: that of the argument of a native function that takes any.
    fn compatible_type(&self) -> Result<Option<CqlType>> {
        self.exact_type()
    }

    /// As messages show it.
    fn text(&self) -> String;

    /// Of a list that is written out: its elements.
    fn list_len(&self) -> Option<usize> {
        None
    }

    fn is_marker(&self) -> bool {
        false
    }
}

impl Match {
    pub fn is_assignable(self) -> bool {
        self != Match::No
    }

    /// The weaker of two.
    #[must_use]
    pub fn and(self, other: Match) -> Match {
        match (self, other) {
            (Match::No, _) | (_, Match::No) => Match::No,
            (Match::Weak, _) | (_, Match::Weak) => Match::Weak,
            _ => Match::Exact,
        }
    }
}

/// `AbstractType.testAssignment`: a value of type `from` where `to` is expected.
pub fn assignable(from: &CqlType, to: &CqlType) -> Match {
    let is_collection =
        |of: &CqlType| matches!(of, CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..));
    // Of cells, the elements have to sort alike, too.
    let are_cells = is_collection(from.base()) && is_collection(to.base());
    let (from, to) = (from.thawed(), to.thawed());
    if from == to || from.clone().freeze() == to.clone().freeze() {
        Match::Exact
    } else if sorts_alike(from, to) || !are_cells && value_compatible(from, to) {
        Match::Weak
    } else {
        Match::No
    }
}

/// Whether a value of a type may stand for one of another that is frozen if and only if the first is (`isValueCompatibleWith`).
pub fn type_matches(from: &CqlType, to: &CqlType) -> Match {
    let (from, to) = (from.base(), to.base());
    if from == to {
        return Match::Exact;
    }
    let has_cells = |of: &CqlType| of.thawed().is_multi_cell();
    if has_cells(from) && has_cells(to) && from.is_multi_cell() != to.is_multi_cell() {
        return Match::No;
    }
    assignable(from, to)
}

/// `AbstractType.testAssignment` of what an overload returns or a selector is: a frozen value may become cells, cells do not become a
/// frozen value.
pub fn returned(from: &CqlType, to: &CqlType) -> Match {
    if from.is_multi_cell() { type_matches(from, to) } else { assignable(from, to) }
}

/// Of the types of a literal's elements, the first that all of them may stand for (`Lists.getPreferredCompatibleType`). Elements whose type
/// is not known do not count.
pub fn preferred(types: impl Iterator<Item = Option<CqlType>>) -> Option<CqlType> {
    let types: Vec<CqlType> = types.flatten().collect();
    let takes_all = |to: &&CqlType| types.iter().all(|from| assignable(from, to).is_assignable());
    types.iter().find(takes_all).cloned()
}

/// Every value of `from` is one of `to` (`isValueCompatibleWith`).
fn value_compatible(from: &CqlType, to: &CqlType) -> bool {
    use CqlType as T;
    match (from.thawed(), to.thawed()) {
        (from, to) if from == to => true,
        (_, T::Blob)
        | (T::Ascii, T::Text)
        | (T::TimeUuid, T::Uuid)
        | (T::Timestamp | T::LegacyTimestamp, T::BigInt)
        | (T::BigInt, T::Timestamp | T::Time)
        | (T::Int | T::BigInt | T::Timestamp, T::Varint)
        | (T::Int, T::Date) => true,
        (T::List(a), T::List(b)) => value_compatible(a, b),
        (T::Set(a), T::Set(b)) => sorts_alike(a, b),
        (T::Map(k, v), T::Map(l, w)) => sorts_alike(k, l) && value_compatible(v, w),
        // A user type is a tuple, whatever it is called.
        (from @ (T::Tuple(_) | T::Udt(_)), to @ (T::Tuple(_) | T::Udt(_))) => {
            let (from, to) = (from.children(), to.children());
            from.len() <= to.len()
                && from.iter().zip(to).all(|(from, to)| value_compatible(from, to))
        }
        _ => false,
    }
}

/// Every value of `from` is one of `to`, in the same order (`isCompatibleWith`).
fn sorts_alike(from: &CqlType, to: &CqlType) -> bool {
    use CqlType as T;
    let all = |from: &[&CqlType], to: &[&CqlType]| {
        from.len() <= to.len() && from.iter().zip(to).all(|(from, to)| sorts_alike(from, to))
    };
    match (from.thawed(), to.thawed()) {
        (from, to) if from == to => true,
        (T::Ascii, T::Text) | (T::Ascii | T::Text, T::Blob) => true,
        (from @ T::List(_), to @ T::List(_))
        | (from @ T::Set(_), to @ T::Set(_))
        | (from @ T::Map(..), to @ T::Map(..))
        | (from @ (T::Tuple(_) | T::Udt(_)), to @ (T::Tuple(_) | T::Udt(_))) => {
            all(&from.children(), &to.children())
        }
        _ => false,
    }
}
