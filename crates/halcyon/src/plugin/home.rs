//! An installed Cassandra: its release, its class path, and the files that its start script reads.

use std::path::{Path, PathBuf};

use halcyon_io::Disk;

use crate::failure::{Failure, Result};

/// The first with the interface of strategies that the jar has: `plugin/cassandra/halcyon/cassandra/Releases.java`.
const OLDEST: &str = "4.1";
/// The script that our lines go into: unlike the files below, it can leave out an agent whose jar is missing, with which no JVM starts.
const ENVIRONMENT: &str = "cassandra-env.sh";
/// Files of options that may have lines of ours from earlier releases, or an operator's.
const OF_JVMS: [&str; 3] = ["jvm-server.options", "jvm11-server.options", "jvm17-server.options"];
/// Far longer than any real one.
const LONGEST: u64 = 4 << 20;

pub(super) struct OptionsFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// Where our lines go, and where they may be from before.
pub(super) struct Options {
    pub(super) script: OptionsFile,
    pub(super) others: Vec<OptionsFile>,
}

/// The files of the node whose home this is; `conf` is where packages put it elsewhere.
pub(super) async fn options(disk: &Disk, home: &Path, conf: Option<&Path>) -> Result<Options> {
    let conf = conf.map_or_else(|| home.join("conf"), Path::to_owned);
    list(disk, &conf, "is there another --cassandra-conf?").await?;
    let Some(script) = read(disk, conf.join(ENVIRONMENT)).await? else {
        let what = format!("no {ENVIRONMENT}: is there another --cassandra-conf?");
        return Err(Failure::of_file(&conf, what));
    };
    let mut others = Vec::new();
    for name in OF_JVMS {
        others.extend(read(disk, conf.join(name)).await?);
    }
    Ok(Options { script, others })
}

/// What is installed.
pub(super) struct Installed {
    pub(super) release: String,
    /// As the JVM takes it.
    pub(super) class_path: String,
}

/// Fails unless one release is installed there, and no older than the jar can be for.
pub(super) async fn installed(disk: &Disk, home: &Path) -> Result<Installed> {
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
        [found] if is_too_old(found) => {
            Err(Failure::usage(format!("{}: {}", home.display(), too_old(found))))
        }
        [found] => Ok(Installed {
            release: (*found).to_owned(),
            class_path: format!("{0}/lib/*:{0}/*", home.display()),
        }),
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

fn is_too_old(release: &str) -> bool {
    line(release).is_some_and(|found| line(OLDEST).is_some_and(|oldest| found < oldest))
}

/// Major and minor number.
fn line(release: &str) -> Option<(u32, u32)> {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// What an operator of an old release reads.
pub(crate) fn too_old(found: &str) -> String {
    format!(
        "this is Cassandra {found}, and the jar is for {OLDEST} and later: older ones have another interface for compactions; upgrade the cluster first"
    )
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

    /// Proves that the program refuses what the jar would.
    #[test]
    fn the_oldest_release_is_the_jars() {
        let releases = include_str!("../../../../plugin/cassandra/halcyon/cassandra/Releases.java");
        assert!(releases.contains(&format!("OLDEST = \"{OLDEST}\";")));
    }

    #[test]
    fn releases_are_read_from_jars() {
        assert_eq!(release("apache-cassandra-5.0.9.jar"), Some("5.0.9"));
        assert_eq!(release("apache-cassandra-6.0-alpha2.jar"), Some("6.0-alpha2"));
        assert_eq!(release("apache-cassandra-5.0.9-javadoc.txt"), None);
        assert_eq!(release("apache-cassandra-thrift-3.11.jar"), None);
        assert!(is_too_old("4.0.18") && is_too_old("3.11.19"));
        assert!(
            !is_too_old("4.1.10")
                && !is_too_old("5.0-rc2")
                && !is_too_old("6.0-alpha2")
                && !is_too_old("5.0.10")
        );
    }
}
