//! A release that is ready to run, and the commands that run it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::release::{Version, home};

/// A script that is `java` with the right flags and class path.
const JAVA: &str = "java";

/// One fetched release.
pub struct Oracle {
    version: Version,
    root: PathBuf,
}

impl Oracle {
    pub(super) fn at(version: Version) -> Result<Oracle> {
        Ok(Oracle { version, root: std::path::absolute(home())?.join(version.name()) })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// The script that is `java` with the flags and the class path of this release.
    pub fn java_script(&self) -> PathBuf {
        self.root.join(JAVA)
    }

    /// Runs `class` with `properties` (`-Dname=value`), which win over those of the script.
    pub fn java(&self, properties: &[String], class: &str) -> Command {
        let mut command = Command::new(self.java_script());
        command.args(properties).arg(class);
        command
    }

    /// Runs nodetool. Each call starts a JVM; for many calls, use `e2e/oracle/Jmx.java`.
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
