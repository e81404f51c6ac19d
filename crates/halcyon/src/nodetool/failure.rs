//! Why a command does not succeed, by what the exit code and the text are to be.

#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong use.
    Usage(String),
    /// Told already, in the verb's own way.
    Told,
    /// A table that is not there.
    NotFound(String),
    Unreachable(String),
    /// Not a failure: the list of commands is printed.
    AskedForHelp,
    Failed(String),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(super) fn usage<T>(what: impl Into<String>) -> Result<T> {
        Err(Failure::Usage(what.into()))
    }

    /// In the words of `NodeProbe.getCfsProxy`.
    pub(super) fn no_table<T>(keyspace: &str, table: &str) -> Result<T> {
        Err(Failure::NotFound(format!("ColumnFamilyStore for {keyspace}/{table} not found.")))
    }

    pub(super) fn failed<T>(what: impl Into<String>) -> Result<T> {
        Err(Failure::Failed(what.into()))
    }
}
