//! Why the settings of TLS cannot be used. Each text names the setting and the file, and ends with the cure.

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The value of a setting must change.
    #[error("{setting}: {what}; {cure}")]
    Setting { setting: String, what: String, cure: String },
    /// A store, or its password, must change.
    #[error("{setting} {file}: {what}; {cure}")]
    Store { setting: String, file: String, what: String, cure: String },
}

impl Error {
    pub(crate) fn setting(setting: &str, what: impl Into<String>, cure: &str) -> Error {
        let setting = format!("client_encryption_options.{setting}");
        Error::Setting { setting, what: what.into(), cure: cure.to_owned() }
    }
}
