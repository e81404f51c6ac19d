//! Why a command does not succeed, by what the exit code and the text are to be.

#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong use.
    Usage(String),
    /// Told already, in the verb's own way.
    Told,
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

    pub(super) fn failed<T>(what: impl Into<String>) -> Result<T> {
        Err(Failure::Failed(what.into()))
    }
}
