//! Range tombstones as conditions on clustering columns.
//!
//! A range has two bounds, each a clustering prefix in the file's order. Columns of their common prefix are compared with `=`, the
//! following ones with inequalities, one column alone or several as a tuple:
//! ```text
//! start (1, 2) incl, end (1, 9) excl      a = 1 AND b >= 2 AND b < 9
//! start (1, 2) excl, end (3) incl         (a, b) > (1, 2) AND (a) <= (3)
//! ```
//! Descending columns invert the operators. CQL has no condition for tuples over columns of mixed order.

use halcyon_model::CqlType;

/// Values of a bound as literals; `None` is null.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) values: Vec<Option<String>>,
    pub(super) inclusive: bool,
}

/// The condition that selects the range between two bounds; `None` if CQL has none.
pub(super) fn condition(
    names: &[String],
    types: &[CqlType],
    start: &Bound,
    end: &Bound,
) -> Option<String> {
    let has_null = |bound: &Bound| bound.values.contains(&None);
    if has_null(start) || has_null(end) {
        return None;
    }
    let common = start.values.iter().zip(&end.values).take_while(|(a, b)| a == b).count();
    let mut conditions: Vec<String> = Vec::new();
    for (name, value) in names.iter().zip(&start.values).take(common) {
        conditions.push(format!("{name} = {}", value.as_deref()?));
    }
    // CQL does not allow tuples and single columns in one range.
    let as_tuples = start.values.len().max(end.values.len()) > common + 1;
    for (bound, is_start) in [(start, true), (end, false)] {
        let rest = bound.values.get(common..).unwrap_or_default();
        if rest.is_empty() {
            // A bound at the common prefix itself selects all its rows, if it is inclusive.
            if common > 0 && !bound.inclusive {
                return None;
            }
            continue;
        }
        let rest_types = types.get(common..common + rest.len())?;
        let is_reversed = |t: &CqlType| matches!(t, CqlType::Reversed(_));
        let reversed = rest_types.first().is_some_and(is_reversed);
        if rest_types.iter().any(|t| is_reversed(t) != reversed) {
            return None;
        }
        let sign = if is_start == reversed { '<' } else { '>' };
        let equal = if bound.inclusive { "=" } else { "" };
        let rest_names = names.get(common..common + rest.len())?;
        let values: Option<Vec<&str>> = rest.iter().map(Option::as_deref).collect();
        let (names, values) = (rest_names.join(", "), values?.join(", "));
        conditions.push(match as_tuples {
            false => format!("{names} {sign}{equal} {values}"),
            true => format!("({names}) {sign}{equal} ({values})"),
        });
    }
    Some(conditions.join(" AND "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(values: &[&str], inclusive: bool) -> Bound {
        Bound { values: values.iter().map(|v| Some((*v).to_owned())).collect(), inclusive }
    }

    #[test]
    fn ranges_become_conditions() {
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        let plain = [CqlType::Int, CqlType::Int, CqlType::Int];
        let mixed = [CqlType::Int, CqlType::Reversed(Box::new(CqlType::Int)), CqlType::Int];
        let say = |types: &[CqlType], start: &Bound, end: &Bound| {
            condition(&names, types, start, end).unwrap_or_else(|| "none".into())
        };
        let i = |values: &[&str]| bound(values, true);
        let x = |values: &[&str]| bound(values, false);
        assert_eq!(say(&plain, &i(&["1"]), &x(&["5"])), "a >= 1 AND a < 5");
        assert_eq!(say(&plain, &i(&["1"]), &i(&["1"])), "a = 1");
        assert_eq!(say(&plain, &i(&["1", "2"]), &i(&["1"])), "a = 1 AND b >= 2");
        assert_eq!(say(&plain, &i(&[]), &i(&["1"])), "a <= 1");
        assert_eq!(
            say(&plain, &x(&["1", "2"]), &i(&["3", "4"])),
            "(a, b) > (1, 2) AND (a, b) <= (3, 4)"
        );
        assert_eq!(say(&plain, &i(&["1", "2"]), &x(&["3"])), "(a, b) >= (1, 2) AND (a) < (3)");
        assert_eq!(say(&plain, &x(&["1"]), &x(&["1", "2"])), "none");
        assert_eq!(say(&mixed, &i(&["1", "9"]), &x(&["1", "2"])), "a = 1 AND b <= 9 AND b > 2");
        assert_eq!(say(&mixed, &i(&["1", "9"]), &x(&["2", "2"])), "none");
    }
}
