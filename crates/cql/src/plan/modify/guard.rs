//! The guardrails on the sizes of terms of storage-attached indexes: `sai_string_term_size`, `sai_frozen_term_size`,
//! `sai_vector_term_size`.

use std::sync::{Arc, Mutex, PoisonError};

use halcyon_model::CqlType;
use halcyon_schema::index::Index;
use halcyon_syntax::{Error, Result};

/// Bytes; `None`: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermThresholds {
    pub warn: Option<u64>,
    pub fail: Option<u64>,
}

/// By the types of terms. Cassandra's defaults are the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermLimits {
    pub string: TermThresholds,
    pub frozen: TermThresholds,
    pub vector: TermThresholds,
}

impl Default for TermLimits {
    fn default() -> TermLimits {
        let of_kib = |warn: u64, fail: u64| TermThresholds {
            warn: Some(warn << 10),
            fail: Some(fail << 10),
        };
        TermLimits { string: of_kib(1, 8), frozen: of_kib(1, 8), vector: of_kib(16, 32) }
    }
}

/// What a request's terms are measured by, and what they were warned of.
#[derive(Debug, Clone, Default)]
pub struct TermGuard {
    limits: TermLimits,
    warned: Arc<Mutex<Vec<String>>>,
}

impl TermGuard {
    pub fn new(limits: TermLimits) -> TermGuard {
        TermGuard { limits, warned: Arc::default() }
    }

    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warned.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A term's size before its analysis and after it. As in Cassandra, what it does not warn of does not fail either.
    pub(super) fn check(
        &self,
        index: &Index,
        term_type: &CqlType,
        size: usize,
        analysed: impl FnOnce() -> usize,
    ) -> Result<()> {
        let (name, limits) = match term_type {
            CqlType::Vector(..) => ("sai_vector_term_size", self.limits.vector),
            of_type if is_frozen(of_type) => ("sai_frozen_term_size", self.limits.frozen),
            _ => ("sai_string_term_size", self.limits.string),
        };
        let exceeds = |size: usize, threshold: Option<u64>| {
            threshold.filter(|threshold| size as u64 > *threshold)
        };
        if exceeds(size, limits.warn).is_none() {
            return Ok(());
        }
        let size = analysed();
        let violated = |kind, threshold| {
            format!(
                "Guardrail {name} violated: Value of column '{}' has size {size}, this exceeds the {kind} threshold of {threshold}.",
                index.column
            )
        };
        if let Some(threshold) = exceeds(size, limits.fail) {
            return Err(Error::InvalidRequest(violated("failure", threshold)));
        }
        if let Some(threshold) = exceeds(size, limits.warn) {
            let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
            // More do not fit into an answer.
            if warned.len() < usize::from(u16::MAX) {
                warned.push(violated("warning", threshold));
            }
        }
        Ok(())
    }
}

/// `IndexTermType.isFrozen`
fn is_frozen(term_type: &CqlType) -> bool {
    matches!(
        term_type.base().thawed(),
        CqlType::List(_)
            | CqlType::Set(_)
            | CqlType::Map(..)
            | CqlType::Tuple(_)
            | CqlType::Udt(..)
    )
}
