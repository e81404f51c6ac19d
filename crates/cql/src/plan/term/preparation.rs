//! The context in which a statement's terms are prepared.

use std::sync::Arc;

use halcyon_model::CqlType;

use super::raw;
use crate::plan::execution::Work;
use crate::plan::metadata::Variables;
use halcyon_schema::catalog::{Catalog, Keyspace};
use halcyon_syntax::Result;
use halcyon_syntax::ast::TypeText;

/// What names are looked up in, and where bind markers are noted, while a statement is prepared.
#[derive(Debug)]
pub struct Preparation<'a> {
    pub catalog: &'a Catalog,
    /// The keyspace of the statement: that of its table.
    pub keyspace: &'a str,
    pub variables: &'a mut Variables,
    pub work: &'a Work<'a>,
}

impl<'a> Preparation<'a> {
    pub fn own(&self) -> Option<&'a Arc<Keyspace>> {
        self.catalog.keyspace(self.keyspace)
    }

    /// The type that a text names, in the keyspace of the statement.
    pub fn cql_type(&self, text: &TypeText) -> Result<CqlType> {
        raw::resolve_type(text, self.catalog, self.keyspace)
    }
}
