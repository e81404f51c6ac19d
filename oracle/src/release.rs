//! Releases of Cassandra, the SSTable versions that they write, and where they lie.

use std::path::PathBuf;

use crate::repository;

/// A release of Apache Cassandra.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Version {
    #[value(name = "5.0.9")]
    V5,
    #[value(name = "6.0-alpha2")]
    V6,
}

impl Version {
    pub const ALL: [Version; 2] = [Version::V5, Version::V6];

    pub fn name(self) -> &'static str {
        match self {
            Version::V5 => "5.0.9",
            Version::V6 => "6.0-alpha2",
        }
    }

    /// The newest BIG version that it writes.
    pub fn newest_format(self) -> Format {
        match self {
            Version::V5 => Format::Oa,
            Version::V6 => Format::Pa,
        }
    }
}

/// The SSTable version that a node writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Format {
    /// What 5.0 writes if its configuration does not say.
    Stock,
    Nb,
    Oa,
    Da,
    Pa,
    Ea,
}

impl Format {
    pub const ALL: [Format; 6] =
        [Format::Stock, Format::Nb, Format::Oa, Format::Da, Format::Pa, Format::Ea];

    pub fn name(self) -> &'static str {
        match self {
            Format::Stock => "stock",
            Format::Nb => "nb",
            Format::Oa => "oa",
            Format::Da => "da",
            Format::Pa => "pa",
            Format::Ea => "ea",
        }
    }

    /// The release that writes this version.
    pub fn release(self) -> Version {
        match self {
            Format::Stock | Format::Nb | Format::Oa | Format::Da => Version::V5,
            Format::Pa | Format::Ea => Version::V6,
        }
    }

    pub fn is_bti(self) -> bool {
        matches!(self, Format::Da | Format::Ea)
    }
}

/// Where the oracle lives.
pub fn home() -> PathBuf {
    std::env::var_os("HALCYON_ORACLE_DIR")
        .map_or_else(|| repository().join(".oracle"), PathBuf::from)
}
