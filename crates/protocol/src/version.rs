//! Protocol versions and compressions.

use std::fmt;

/// `V6` is Cassandra 5.0's beta: the bytes of `V5`, allowed only with the USE_BETA flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V3 = 3,
    V4 = 4,
    V5 = 5,
    V6 = 6,
}

impl Version {
    pub const SUPPORTED: [Version; 4] = [Version::V3, Version::V4, Version::V5, Version::V6];

    /// The version of answers to a client whose version is unknown.
    pub const CURRENT: Version = Version::V5;

    pub fn from_number(number: u8) -> Option<Version> {
        Version::SUPPORTED.into_iter().find(|version| version.number() == number)
    }

    pub fn number(self) -> u8 {
        self as u8
    }

    pub fn is_beta(self) -> bool {
        self == Version::V6
    }

    /// Whether envelopes are framed after the answer to STARTUP.
    pub fn is_framed(self) -> bool {
        self >= Version::V5
    }

    /// `PROTOCOL_VERSIONS` of a SUPPORTED message.
    pub fn supported() -> Vec<String> {
        Version::SUPPORTED.iter().map(Version::to_string).collect()
    }

    pub(crate) fn unsupported(number: u8) -> String {
        let supported = Version::supported().join(", ");
        format!(
            "Invalid or unsupported protocol version ({number}); supported versions are ({supported})"
        )
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beta = if self.is_beta() { "-beta" } else { "" };
        write!(f, "{0}/v{0}{beta}", self.number())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    None,
    Lz4,
    /// Not in v5.
    Snappy,
}
