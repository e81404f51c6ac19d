//! Fetches a release: jars by Maven, the Java desks of `e2e/oracle` by javac, and the `java` that runs them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::files::{modified, write};
use crate::installed::Oracle;
use crate::release::Version;
use crate::{Result, call, config, jvm, repository};

const JVM_ARGS: &str = "jvm.args";
const LOGBACK: &str = "logback.xml";
const DESKS: [&str; 2] = ["Tools.java", "Jmx.java"];
const DESKS_JAR: &str = "desks.jar";

/// Makes sure that a release can run. Does nothing when it already can. Answers whether the classes that it loads are archived.
pub(super) fn fetch(oracle: &Oracle) -> Result<bool> {
    let (version, root) = (oracle.version(), oracle.root());
    fetch_jars(oracle)?;
    let logback = root.join(LOGBACK);
    write(&logback, include_str!("logback.xml"))?;
    let data = root.join("tool-data");
    let yaml = config::write_for_tools(version, &root.join("tool-conf"), &data)?;
    let properties = [
        format!("-Dlogback.configurationFile={}", logback.display()),
        format!("-Dcassandra.config=file://{}", yaml.display()),
        format!("-Dcassandra.storagedir={}", data.display()),
    ];
    // The desks of 5.0 serve it too.
    if version != Version::V41 {
        compile_desks(&jvm::java_home()?, root)?;
    }
    let java = jvm::java(version, root)?;
    let arguments = root.join(JVM_ARGS);
    let class_path = format!("{0}/{DESKS_JAR}:{0}/lib/*", root.display());
    let extra = format!("${{EXTRA_CLASSPATH:+-cp \"{class_path}:$EXTRA_CLASSPATH\"}}");
    let line = format!("exec '{}' '@{}' {extra} \"$@\"", java.display(), arguments.display());
    // As Cassandra's own script takes more of a class path.
    write_script(&oracle.java_script(), &line)?;
    let archive = archive(oracle);
    let is_archived = modified(&archive) > modified(&root.join(DESKS_JAR));
    let archived = is_archived.then_some(archive.as_path());
    write(&arguments, &jvm::argument_file(version, &class_path, &properties, archived))?;
    Ok(is_archived)
}

/// Without what runs them.
pub(super) fn fetch_jars(oracle: &Oracle) -> Result<()> {
    let (version, root) = (oracle.version(), oracle.root());
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
        maven.args(goals).env("JAVA_HOME", jvm::java_home()?).current_dir(root);
        // Even when quiet it prints escape sequences, and what runs us may read our own output.
        call(maven.stdout(io::stderr()))?;
    }
    Ok(())
}

/// The file of classes that a JVM need not load.
pub(super) fn archive(oracle: &Oracle) -> PathBuf {
    oracle.root().join("classes.jsa")
}

fn write_script(path: &Path, line: &str) -> Result<()> {
    write(path, &format!("#!/bin/sh\n{line}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

fn compile_desks(java_home: &Path, root: &Path) -> Result<()> {
    let (classes, jar) = (root.join("classes"), root.join(DESKS_JAR));
    let sources = DESKS.map(|name| repository().join("e2e/oracle").join(name));
    let newest = sources.iter().map(|path| modified(path)).max();
    if modified(&jar) > newest.unwrap_or(SystemTime::UNIX_EPOCH) {
        return Ok(());
    }
    let class_path = format!("{}/lib/*", root.display());
    let mut javac = Command::new(java_home.join("bin/javac"));
    javac.args(["-nowarn", "-Xlint:-removal", "-cp", &class_path, "-d"]).arg(&classes);
    call(javac.args(&sources))?;
    let mut pack = Command::new(java_home.join("bin/jar"));
    call(pack.args(["--create", "--file"]).arg(&jar).arg("-C").arg(&classes).arg("."))
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
