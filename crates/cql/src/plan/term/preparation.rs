//! The context in which a statement's terms are prepared.

use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::access::Resource;

use super::raw;
use crate::plan::execution::Work;
use crate::plan::functions::{Body, Function};
use crate::plan::metadata::Variables;
use halcyon_schema::catalog::{Catalog, Keyspace};
use halcyon_syntax::Result;
use halcyon_syntax::ast::TypeText;

/// What names are looked up in, and where bind markers and calls are noted, while a statement is prepared.
#[derive(Debug)]
pub struct Preparation<'a> {
    pub catalog: &'a Catalog,
    /// The keyspace of the statement: that of its table.
    pub keyspace: &'a str,
    pub variables: &'a mut Variables,
    pub work: &'a Work<'a>,
    /// The user-defined functions that the statement calls, each once.
    pub calls: Vec<Resource>,
}

impl<'a> Preparation<'a> {
    pub fn own(&self) -> Option<&'a Arc<Keyspace>> {
        self.catalog.keyspace(self.keyspace)
    }

    pub fn new(
        catalog: &'a Catalog,
        keyspace: &'a str,
        variables: &'a mut Variables,
        work: &'a Work<'a>,
    ) -> Preparation<'a> {
        Preparation { catalog, keyspace, variables, work, calls: Vec::new() }
    }

    /// Notes a call: of a user-defined aggregate, with the functions that it is made of.
    pub(crate) fn note_call(&mut self, function: &Function) {
        let mut note = |keyspace: &String, name: &String, arguments: Vec<CqlType>| {
            let (keyspace, name) = (keyspace.clone(), name.clone());
            let called = Resource::Function { keyspace, name, arguments };
            if !self.calls.contains(&called) {
                self.calls.push(called);
            }
        };
        if function.is_user_defined() {
            note(&function.keyspace, &function.name, function.arguments.clone());
        }
        if let Body::Fold(fold) = &function.body {
            for part in [Some(&fold.state_function), fold.final_function.as_ref()] {
                let Some(part) = part else { continue };
                note(&part.keyspace, &part.name, part.argument_types().cloned().collect());
            }
        }
    }

    /// The type that a text names, in the keyspace of the statement.
    pub fn cql_type(&self, text: &TypeText) -> Result<CqlType> {
        raw::resolve_type(text, self.catalog, self.keyspace)
    }
}
