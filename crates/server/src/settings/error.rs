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
}
