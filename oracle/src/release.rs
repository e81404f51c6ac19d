//! Releases of Cassandra, the SSTable versions that they write, and where they lie.

use std::path::PathBuf;

use crate::repository;

/// A release of Apache Cassandra.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Version {
    #[value(name = "4.1.10")]
    V41,
    #[value(name = "5.0.0")]
    V500,
    #[value(name = "5.0.1")]
    V501,
    #[value(name = "5.0.2")]
    V502,
    #[value(name = "5.0.3")]
    V503,
    #[value(name = "5.0.4")]
    V504,
    #[value(name = "5.0.5")]
    V505,
    #[value(name = "5.0.6")]
    V506,
    #[value(name = "5.0.7")]
    V507,
    #[value(name = "5.0.8")]
    V508,
    #[value(name = "5.0.9")]
    V5,
    #[value(name = "6.0-alpha2")]
    V6,
}

impl Version {
    /// Those that tests compare Halcyon with.
    pub const ALL: [Version; 2] = [Version::V5, Version::V6];

    pub fn name(self) -> &'static str {
        match self {
            Version::V41 => "4.1.10",
            Version::V500 => "5.0.0",
            Version::V501 => "5.0.1",
            Version::V502 => "5.0.2",
            Version::V503 => "5.0.3",
            Version::V504 => "5.0.4",
            Version::V505 => "5.0.5",
            Version::V506 => "5.0.6",
            Version::V507 => "5.0.7",
            Version::V508 => "5.0.8",
            Version::V5 => "5.0.9",
            Version::V6 => "6.0-alpha2",
        }
    }

    /// The newest BIG version that it writes.
    pub fn newest_format(self) -> Format {
        match self {
            Version::V41 => Format::Stock,
            Version::V6 => Format::Pa,
            _ => Format::Oa,
        }
    }

    /// The release of [`Version::ALL`] that has the same formats and settings, or more. The others are there for the plug-in.
    pub fn line(self) -> Version {
        match self {
            Version::V6 => Version::V6,
            _ => Version::V5,
        }
    }
}

/// The SSTable version that a node writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Format {
    /// What 5.0 writes if its configuration does not say, and 4.1 always.
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

    /// The release, of [`Version::ALL`], that writes this version.
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
