//! What preparing a statement gives.

use super::metadata::{ResultColumns, Variables};
use super::requires::Requirement;

/// A statement whose names are looked up and whose terms have types.
#[derive(Debug, Clone)]
pub struct Prepared<P> {
    pub plan: P,
    pub variables: Variables,
    /// `None` if it has no result set.
    pub columns: Option<ResultColumns>,
    pub warnings: Vec<String>,
    /// Empty of what is executed as it was written (`requires::of_statement`).
    pub requires: Vec<Requirement>,
}

impl<P> Prepared<P> {
    /// The same with another plan.
    pub(crate) fn map<Q>(self, to: impl FnOnce(P) -> Q) -> Prepared<Q> {
        let Prepared { plan, variables, columns, warnings, requires } = self;
        Prepared { plan: to(plan), variables, columns, warnings, requires }
    }
}
