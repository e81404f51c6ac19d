//! Why settings were refused. All are cured by an edit of the file or of the command line.

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("Invalid yaml: {0}")]
    Syntax(String),
    #[error("Invalid yaml. Please remove properties [{}] from your cassandra.yaml", .0.join(", "))]
    Unknown(Vec<String>),
    #[error("Invalid value `{value}` of {key}; allowed: {allowed}")]
    Wrong { key: String, value: String, allowed: String },
    /// The value is understood, but cannot be had here; the text says what to do.
    #[error("{0}")]
    Refused(String),
    /// All that is wrong with a file: who cures one thing at a time starts as often.
    #[error("{}", .0.iter().map(Error::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<Error>),
}

impl Error {
    fn of(mut errors: Vec<Error>) -> Option<Error> {
        if errors.len() > 1 { Some(Error::Several(errors)) } else { errors.pop() }
    }
}

/// What was found wrong so far.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<Error>);

impl Errors {
    pub(super) fn add(&mut self, error: Error) {
        match error {
            Error::Several(errors) => errors.into_iter().for_each(|error| self.add(error)),
            // Several settings depend on one.
            error if self.0.contains(&error) => {}
            error => self.0.push(error),
        }
    }

    /// What is right of a result.
    pub(super) fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    pub(super) fn check(self) -> Result<()> {
        Error::of(self.0).map_or(Ok(()), Err)
    }
}
