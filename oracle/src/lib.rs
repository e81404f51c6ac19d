//! The oracle: real Apache Cassandra, fetched from Maven Central, run beside the tests.
//!
//! ```text
//! .oracle/                      (HALCYON_ORACLE_DIR, git-ignored)
//!   5.0.9/   pom.xml  lib/*.jar  desks.jar  classes.jsa  java   <- open
//!   6.0-alpha2/ ...     4.1.10/ has packages/, a Java 11, and no desks
//!   nodes/<format>/  conf/  data/  node.log  node.json         <- start
//! ```
//!
//! 1. [`open`] resolves the jars once, compiles `e2e/oracle/*.java` against them, writes the script `java`, so that
//!    everything else (and any script) can say `.oracle/5.0.9/java CLASS …`, and archives the classes that a node loads.
//! 2. `start` writes a configuration, starts a node that writes one SSTable version, and waits,
//!    bounded in time, until it answers on its native port.
//! 3. A [`Node`] kills its process, by pid, when it is dropped; `detach` keeps it for a later `stop`.
//!
//! Beside it is what every program that drives others needs: the repository's path, bounded commands, Debian packages, the tests' Python.

pub mod apt;
mod command;
mod config;
mod fetch;
mod files;
mod installed;
mod jvm;
mod node;
mod open;
pub mod python;
mod release;

use std::path::{Path, PathBuf};

pub use command::{bounded, call};
pub use files::modified;
pub use installed::Oracle;
pub use jvm::java_home;
pub use node::{Node, StartOptions, free_ports, offline_properties, stop_recorded};
pub use open::{jars, open};
pub use release::{Format, Version, home};

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The root of the repository.
pub fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}
