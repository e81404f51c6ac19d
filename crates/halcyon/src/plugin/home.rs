//! An installed Cassandra: its release, and the files of options that its start script reads.

use std::path::{Path, PathBuf};

use halcyon_io::Disk;

use crate::failure::{Failure, Result};

/// What the jar was compiled against, as `plugin/cassandra/halcyon/cassandra/Releases.java` has it: it does nothing on another.
const RELEASE: &str = "5.0.9";
/// Read on every JVM; else there is one for each that may run.
const SERVER: &str = "jvm-server.options";
const OF_JVMS: [&str; 2] = ["jvm11-server.options", "jvm17-server.options"];
/// A script that may have options too.
const ENVIRONMENT: &str = "cassandra-env.sh";
/// Far longer than any real one.
const LONGEST: u64 = 4 << 20;

pub(super) struct OptionsFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// The files whose options the node gets, and those that are only looked at.
pub(super) struct Options {
    pub(super) edited: Vec<OptionsFile>,
    pub(super) others: Vec<OptionsFile>,
}

/// The files of the node whose home this is; `conf` is where packages put it elsewhere.
pub(super) async fn options(disk: &Disk, home: &Path, conf: Option<&Path>) -> Result<Options> {
    let conf = conf.map_or_else(|| home.join("conf"), Path::to_owned);
    list(disk, &conf, "is there another --cassandra-conf?").await?;
    let mut of_jvms = Vec::new();
    for name in OF_JVMS {
        of_jvms.extend(read(disk, conf.join(name)).await?);
    }
    let mut others: Vec<OptionsFile> =
        read(disk, conf.join(ENVIRONMENT)).await?.into_iter().collect();
    let edited = match read(disk, conf.join(SERVER)).await? {
        Some(server) => {
            others.append(&mut of_jvms);
            vec![server]
        }
        None => of_jvms,
    };
    if edited.is_empty() {
        let what = format!(
            "neither {SERVER} nor {}: is there another --cassandra-conf?",
            OF_JVMS.join(" nor ")
        );
        return Err(Failure::of_file(&conf, what));
    }
    Ok(Options { edited, others })
}

/// Fails unless the jar runs on what is installed there.
pub(super) async fn check_release(disk: &Disk, home: &Path) -> Result<()> {
    let mut names =
        list(disk, home, "--cassandra-home names the directory that has Cassandra's lib/").await?;
    let lib = home.join("lib");
    match disk.list(&lib).await {
        Ok(entries) => names.extend(entries.into_iter().map(|entry| entry.name)),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error.into()),
    }
    let mut releases: Vec<&str> = names.iter().filter_map(|name| release(name)).collect();
    releases.sort_unstable();
    releases.dedup();
    match releases.as_slice() {
        [] => Err(Failure::of_file(
            home,
            "no apache-cassandra-RELEASE.jar here or in lib/: this is not a Cassandra's home",
        )),
        [found] if *found == RELEASE => Ok(()),
        [found] => Err(Failure::usage(format!("{}: {}", home.display(), refusal(found)))),
        several => {
            let what = format!(
                "jars of several releases ({}): remove those of the old ones",
                several.join(", ")
            );
            Err(Failure::of_file(home, what))
        }
    }
}

/// `apache-cassandra-5.0.9.jar`
fn release(name: &str) -> Option<&str> {
    let release = name.strip_prefix("apache-cassandra-")?.strip_suffix(".jar")?;
    release.starts_with(|first: char| first.is_ascii_digit()).then_some(release)
}

/// What an operator of another release reads.
pub(crate) fn refusal(found: &str) -> String {
    let what = match found.split('.').next() {
        _ if found.starts_with("5.0.") || found.starts_with("5.0-") => {
            "its internals differ, although it is a 5.0; bring the node to that release first"
        }
        Some("0" | "1" | "2" | "3" | "4") => {
            "older ones have another interface for compactions; upgrade the cluster first"
        }
        _ => "newer ones have another interface for compactions, and there is no jar for them yet",
    };
    format!("this is Cassandra {found}, and the jar is for {RELEASE}: {what}")
}

async fn list(disk: &Disk, directory: &Path, hint: &str) -> Result<Vec<String>> {
    let entries = disk.list(directory).await.map_err(|error| match error.is_not_found() {
        true => Failure::of_file(directory, format!("no such directory; {hint}")),
        false => error.into(),
    })?;
    Ok(entries.into_iter().map(|entry| entry.name).collect())
}

async fn read(disk: &Disk, path: PathBuf) -> Result<Option<OptionsFile>> {
    let bytes = match disk.read(&path, LONGEST).await {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(OptionsFile { path, text })),
        Err(_) => Err(Failure::of_file(&path, "not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what is installed is what the jar takes to be its release.
    #[test]
    fn the_release_is_the_jars() {
        let releases = include_str!("../../../../plugin/cassandra/halcyon/cassandra/Releases.java");
        assert!(releases.contains(&format!("RELEASES = Set.of(\"{RELEASE}\");")));
    }

    #[test]
    fn releases_are_read_from_jars() {
        assert_eq!(release("apache-cassandra-5.0.9.jar"), Some("5.0.9"));
        assert_eq!(release("apache-cassandra-6.0-alpha2.jar"), Some("6.0-alpha2"));
        assert_eq!(release("apache-cassandra-5.0.9-javadoc.txt"), None);
        assert_eq!(release("apache-cassandra-thrift-3.11.jar"), None);
        assert!(refusal("4.1.5").contains("older") && refusal("6.0-alpha2").contains("newer"));
        assert!(
            refusal("5.0.3").contains("although it is a 5.0") && refusal("5.1.0").contains("newer")
        );
    }
}
