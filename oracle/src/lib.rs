//! The oracle: real Apache Cassandra, fetched from Maven Central, run beside the tests.
//!
//! ```text
//! .oracle/                      (HALCYON_ORACLE_DIR, git-ignored)
//!   5.0.9/   pom.xml  lib/*.jar  classes/  java          <- fetch
//!   6.0-alpha2/ ...
//!   nodes/<format>/  conf/  data/  node.log  node.json   <- start
//! ```
//!
//! 1. `fetch` resolves the jars once, compiles `e2e/oracle/*.java` against them, and writes the script `java`,
//!    so that everything else (and any script) can say `.oracle/5.0.9/java CLASS …`.
//! 2. `start` writes a configuration, starts a node that writes one SSTable version, and waits,
//!    bounded in time, until it answers on its native port.
//! 3. A [`Node`] kills its process, by pid, when it is dropped; `detach` keeps it for a later `stop`.

//!
//! Beside it is what every program that drives others needs: the repository's path, bounded commands, Debian packages, the tests' Python.

pub mod apt;
mod command;
mod config;
mod fetch;
mod jvm;
mod node;
pub mod python;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use command::{bounded, call};
pub use fetch::fetch;
pub use jvm::java_home;
pub use node::{Node, StartOptions, free_ports, offline_properties, stop_recorded};

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The root of the repository.
pub fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

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

/// One fetched release.
pub struct Oracle {
    version: Version,
    root: PathBuf,
}

impl Oracle {
    /// Opens a release, fetching it first if it is not here.
    pub fn open(version: Version) -> Result<Oracle> {
        fetch(version)?;
        Ok(Oracle { version, root: std::path::absolute(home())?.join(version.name()) })
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// The script that is `java` with the flags and the class path of this release.
    pub fn java_script(&self) -> PathBuf {
        self.root.join(fetch::JAVA)
    }

    /// Runs `class` with `properties` (`-Dname=value`), which win over those of the script.
    pub fn java(&self, properties: &[String], class: &str) -> Command {
        let mut command = Command::new(self.java_script());
        command.args(properties).arg(class);
        command
    }

    /// nodetool. Each call costs a JVM, so many calls belong to `e2e/oracle/Jmx.java`.
    pub fn nodetool(&self, jmx_port: u16, arguments: &[String]) -> Command {
        let port = ["-p".to_owned(), jmx_port.to_string()];
        self.tool(&[], "NodeTool", &[&port, arguments].concat())
    }

    /// One of Cassandra's tools.
    pub fn tool(&self, properties: &[String], class: &str, arguments: &[String]) -> Command {
        let properties = [&["-Xmx512m".to_owned()], properties].concat();
        let mut command = self.java(&properties, &format!("org.apache.cassandra.tools.{class}"));
        command.args(arguments);
        command
    }
}
