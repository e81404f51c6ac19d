//! User-defined functions and aggregates, as the catalog has them. What their texts do is known only to who runs them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use halcyon_model::CqlType;

/// The name and, in CQL, the types of the arguments: what tells overloads apart (`Function.typesMatch`).
pub type Signature = (String, Vec<String>);

/// The languages of functions that can be made. A catalog may have others from earlier versions of Cassandra.
pub const JAVA: &str = "java";
/// Ours; Cassandra reads such a function as one that it cannot load.
pub const WASM: &str = "wasm";

/// The type of an argument, as messages and DESCRIBE show it.
pub fn spelled_argument(of: &CqlType) -> String {
    without_needless(&of.cql_name()).to_owned()
}

/// A type without the `frozen` of a tuple or a vector, which are frozen by nature.
pub(crate) fn without_needless(text: &str) -> &str {
    let thawed = text.strip_prefix("frozen<").and_then(|rest| rest.strip_suffix('>'));
    thawed.filter(|of| of.starts_with("tuple<") || of.starts_with("vector<")).unwrap_or(text)
}

/// What settings say about functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionSettings {
    /// `user_defined_functions_enabled`
    pub are_enabled: bool,
    /// `user_defined_functions_fail_timeout`
    pub fail_timeout: Duration,
    /// `user_defined_functions_warn_timeout`; zero: no warning.
    pub warn_timeout: Duration,
}

impl Default for FunctionSettings {
    fn default() -> FunctionSettings {
        FunctionSettings {
            are_enabled: false,
            fail_timeout: Duration::from_millis(1_500),
            warn_timeout: Duration::from_millis(500),
        }
    }
}

/// The functions of a keyspace, in the order of names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Functions {
    pub scalars: BTreeMap<Signature, Arc<UserFunction>>,
    pub aggregates: BTreeMap<Signature, Arc<UserAggregate>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct UserFunction {
    pub keyspace: String,
    pub name: String,
    /// Names and types.
    pub arguments: Vec<(String, CqlType)>,
    pub returns: CqlType,
    pub called_on_null: bool,
    pub language: String,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct UserAggregate {
    pub keyspace: String,
    pub name: String,
    pub arguments: Vec<CqlType>,
    pub state: CqlType,
    pub state_function: String,
    pub final_function: Option<String>,
    pub returns: CqlType,
    /// INITCOND, as a literal of CQL.
    pub initial: Option<String>,
}

pub fn signature<'a>(name: &str, arguments: impl IntoIterator<Item = &'a CqlType>) -> Signature {
    (name.to_owned(), arguments.into_iter().map(CqlType::cql_name).collect())
}

impl UserFunction {
    pub fn argument_types(&self) -> impl Iterator<Item = &CqlType> {
        self.arguments.iter().map(|(_, of)| of)
    }

    pub fn signature(&self) -> Signature {
        signature(&self.name, self.argument_types())
    }

    /// Every type that it names.
    pub fn types(&self) -> impl Iterator<Item = &CqlType> {
        self.argument_types().chain([&self.returns])
    }

    /// The same with other types.
    #[must_use]
    pub fn with_types(&self, change: impl Fn(&CqlType) -> CqlType) -> UserFunction {
        let arguments = self.arguments.iter().map(|(name, of)| (name.clone(), change(of)));
        UserFunction {
            arguments: arguments.collect(),
            returns: change(&self.returns),
            ..self.clone()
        }
    }
}

impl UserAggregate {
    pub fn signature(&self) -> Signature {
        signature(&self.name, &self.arguments)
    }

    /// Every type that it names.
    pub fn types(&self) -> impl Iterator<Item = &CqlType> {
        self.arguments.iter().chain([&self.state, &self.returns])
    }

    /// Of the function that takes the state and one row's arguments.
    pub fn state_signature(&self) -> Signature {
        signature(&self.state_function, std::iter::once(&self.state).chain(&self.arguments))
    }

    /// Of the function that makes the result of the last state.
    pub fn final_signature(&self) -> Option<Signature> {
        self.final_function.as_ref().map(|name| signature(name, [&self.state]))
    }

    pub fn uses(&self, function: &Signature) -> bool {
        self.state_signature() == *function || self.final_signature().as_ref() == Some(function)
    }

    /// The same with other types.
    #[must_use]
    pub fn with_types(&self, change: impl Fn(&CqlType) -> CqlType) -> UserAggregate {
        UserAggregate {
            arguments: self.arguments.iter().map(&change).collect(),
            state: change(&self.state),
            returns: change(&self.returns),
            ..self.clone()
        }
    }
}

impl Functions {
    /// All overloads of a scalar function.
    pub fn scalars_named<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Arc<UserFunction>> {
        self.scalars.values().filter(move |function| function.name == name)
    }

    /// All overloads of an aggregate.
    pub fn aggregates_named<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Arc<UserAggregate>> {
        self.aggregates.values().filter(move |aggregate| aggregate.name == name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.scalars_named(name).next().is_some() || self.aggregates_named(name).next().is_some()
    }

    /// Every type that one of them names.
    pub fn types(&self) -> impl Iterator<Item = &CqlType> {
        let scalars = self.scalars.values().flat_map(|function| function.types());
        scalars.chain(self.aggregates.values().flat_map(|aggregate| aggregate.types()))
    }

    /// The same with other types.
    #[must_use]
    pub fn with_types(&self, change: impl Fn(&CqlType) -> CqlType) -> Functions {
        let scalars = self.scalars.values().map(|function| function.with_types(&change));
        let aggregates = self.aggregates.values().map(|aggregate| aggregate.with_types(&change));
        Functions {
            scalars: scalars.map(|f| (f.signature(), Arc::new(f))).collect(),
            aggregates: aggregates.map(|a| (a.signature(), Arc::new(a))).collect(),
        }
    }
}
