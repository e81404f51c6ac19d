//! Fetches a release: jars by Maven, the Java desks of `e2e/oracle` by javac, and the `java` that runs them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use super::{Version, config, home, jvm};
use crate::{Result, call, repository};

/// A script that is `java` with the right flags and class path.
pub(super) const JAVA: &str = "java";
const JVM_ARGS: &str = "jvm.args";
const LOGBACK: &str = "logback.xml";
const DESKS: [&str; 2] = ["Tools.java", "Jmx.java"];

/// Makes sure that `version` is ready to run. Does nothing when it already is.
pub fn fetch(version: Version) -> Result<()> {
    let java_home = jvm::java_home()?;
    let root = std::path::absolute(home())?.join(version.name());
    fs::create_dir_all(&root)?;
    if !root.join("lib").join(format!("cassandra-all-{}.jar", version.name())).exists() {
        eprintln!("oracle: fetching Apache Cassandra {} from Maven Central", version.name());
        fs::write(root.join("pom.xml"), pom(version))?;
        let goals = [
            "-q",
            "-B",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-DoutputDirectory=lib",
        ];
        let mut maven = Command::new("mvn");
        maven.args(goals).env("JAVA_HOME", &java_home).current_dir(&root);
        // Even when quiet it prints escape sequences, and what runs us may read our own output.
        call(maven.stdout(io::stderr()))?;
    }
    let logback = root.join(LOGBACK);
    write(&logback, include_str!("logback.xml"))?;
    let data = root.join("tool-data");
    let yaml = config::write_for_tools(&root.join("tool-conf"), &data)?;
    let properties = [
        format!("-Dlogback.configurationFile={}", logback.display()),
        format!("-Dcassandra.config=file://{}", yaml.display()),
        format!("-Dcassandra.storagedir={}", data.display()),
    ];
    let class_path = format!("{0}/classes:{0}/lib/*", root.display());
    let arguments = root.join(JVM_ARGS);
    write(&arguments, &jvm::argument_file(&class_path, &properties))?;
    let (java, arguments) = (java_home.join("bin/java"), arguments.display());
    // As Cassandra's own script takes more of a class path.
    let extra = format!("${{EXTRA_CLASSPATH:+-cp \"{class_path}:$EXTRA_CLASSPATH\"}}");
    let line = format!("exec '{}' '@{arguments}' {extra} \"$@\"", java.display());
    write_script(&root.join(JAVA), &line)?;
    compile_desks(&java_home, &root)
}

fn write_script(path: &Path, line: &str) -> Result<()> {
    write(path, &format!("#!/bin/sh\n{line}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Writes a file that a program which starts just now may be reading: it sees the old one or the new one, and none that has the same text.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let fresh = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&fresh, text)?;
    Ok(fs::rename(fresh, path)?)
}

fn compile_desks(java_home: &Path, root: &Path) -> Result<()> {
    let classes = root.join("classes");
    let sources = DESKS.map(|name| repository().join("e2e/oracle").join(name));
    let newest = sources.iter().map(|path| modified(path)).max();
    if modified(&classes.join("Jmx.class")) > newest.unwrap_or(SystemTime::UNIX_EPOCH) {
        return Ok(());
    }
    let class_path = format!("{}/lib/*", root.display());
    let mut javac = Command::new(java_home.join("bin/javac"));
    javac.args(["-nowarn", "-Xlint:-removal", "-cp", &class_path, "-d"]).arg(&classes);
    call(javac.args(&sources))
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn pom(version: Version) -> String {
    format!(
        r#"<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>halcyon</groupId><artifactId>oracle</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId><version>{}</version>
  </dependency></dependencies>
</project>
"#,
        version.name()
    )
}
