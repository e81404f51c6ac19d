//! `halcyon plugin` on the files of a Cassandra that does not run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::golden::{TempFolder, halcyon, text};

const SCRIPT: &str = "# Sourced by bin/cassandra\nJVM_OPTS=\"$JVM_OPTS -Da=b\"\n";
/// What earlier releases of `install` wrote.
const OLD: &str = "-ea\n# Halcyon compacts for this node: `halcyon plugin remove` takes these lines away.\n-javaagent:/old/h.jar\n# End of Halcyon's lines.\n";
/// The end of an empty archive, which a jar ends with too.
const JAR: &[u8] = b"PK\x03\x04PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// A folder like that of the tarball, and a jar.
struct Installed {
    folder: TempFolder,
}

impl Installed {
    fn new(release: &str) -> Installed {
        let installed = Installed { folder: TempFolder::empty() };
        for folder in ["home/lib", "home/conf"] {
            fs::create_dir_all(installed.path(folder)).expect("created");
        }
        installed.write(&format!("home/lib/apache-cassandra-{release}.jar"), "");
        installed.write("home/lib/guava-32.0.1-jre.jar", "");
        installed.write("home/conf/cassandra-env.sh", SCRIPT);
        installed.write("home/conf/jvm-server.options", "-ea\n");
        fs::write(installed.path("h.jar"), JAR).expect("written");
        installed
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).expect("written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("read")
    }

    fn script(&self) -> String {
        self.read("home/conf/cassandra-env.sh")
    }

    /// `JVM_OPTS` after a start script of this name has sourced the file, and what it wrote to standard error.
    fn sourced(&self, name: &str) -> (String, String) {
        self.write(name, "JVM_OPTS=; . \"$1\"; echo \"$JVM_OPTS\"\n");
        let mut shell = Command::new("sh");
        shell.arg(self.path(name)).arg(self.path("home/conf/cassandra-env.sh"));
        let output = shell.output().expect("sh runs");
        assert!(output.status.success());
        (text(&output.stdout), text(&output.stderr))
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let home = self.path("home").display().to_string();
        let output = halcyon(&[&["plugin"], arguments, &["--cassandra-home", &home]].concat());
        (output.status.code(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
    }

    fn install(&self, more: &[&str]) -> (Option<i32>, String) {
        let jar = self.path("h.jar").display().to_string();
        self.run(&[&["install", "--jar", &jar], more].concat())
    }

    /// Fails with this status and these words, and leaves everything as it was.
    fn refuses(&self, code: i32, words: &str) {
        let before = self.script();
        let (status, said) = self.install(&["--yes"]);
        assert_eq!(status, Some(code), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(self.script(), before);
        assert!(!self.path("home/conf/cassandra-env.sh.before-halcyon").exists());
    }
}

/// Proves that the change is shown before it is made, is made once, and goes again.
#[test]
fn lines_come_and_go() {
    let node = Installed::new("5.0.9");
    let file = node.path("home/conf/cassandra-env.sh");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
    let (status, shown) = node.install(&["--dry-run"]);
    let agent = format!("-javaagent:{} -Dhalcyon.binary=/", node.path("h.jar").display());
    assert_eq!(status, Some(0), "{shown}");
    assert!(shown.contains(" # Sourced by bin/cassandra\n") && shown.contains(&agent), "{shown}");
    assert_eq!(node.script(), SCRIPT);
    // There is no terminal to say yes on.
    let (status, said) = node.install(&[]);
    assert_eq!((status, node.script().as_str()), (Some(2), SCRIPT), "{said}");

    let (status, said) = node.install(&["--yes"]);
    assert!(status == Some(0) && said.starts_with(&shown), "{said}");
    let installed = node.script();
    assert!(installed.starts_with(SCRIPT) && installed.contains(&agent), "{installed}");
    assert_eq!(node.read("home/conf/cassandra-env.sh.before-halcyon"), SCRIPT);
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o640);
    let (status, said) = node.install(&["--yes"]);
    assert_eq!((status, said.as_str()), (Some(0), "nothing to change\n"));
    assert_eq!(node.script(), installed);

    let (status, said) = node.run(&["remove", "--yes"]);
    assert_eq!((status, node.script().as_str()), (Some(0), SCRIPT), "{said}");
    assert!(!node.path("home/conf/cassandra-env.sh.before-halcyon").exists());
    assert_eq!(node.run(&["remove", "--yes"]), (Some(0), "nothing to change\n".to_owned()));
    assert_eq!(node.read("home/conf/jvm-server.options"), "-ea\n");
}

/// Proves that a node starts without the agent where its jar is missing or cut off, and that only the server's script says so.
#[test]
fn a_missing_or_damaged_jar_is_left_out() {
    let node = Installed::new("5.0.9");
    assert_eq!(node.install(&["--yes"]).0, Some(0));
    let (options, said) = node.sourced("cassandra");
    assert!(options.contains("-Da=b -javaagent:/") && said.is_empty(), "{options}{said}");
    fs::write(node.path("h.jar"), &JAR[..JAR.len() - 1]).expect("written");
    for damage in ["cut off", "missing"] {
        let (options, said) = node.sourced("cassandra");
        assert_eq!(options.trim(), "-Da=b", "{damage}");
        assert!(said.contains("compactions stay Cassandra's"), "{damage}: {said}");
        assert_eq!(node.sourced("nodetool"), (options, String::new()), "{damage}");
        let _ = fs::remove_file(node.path("h.jar"));
    }
}

/// Proves that the lines of an earlier release's `install`, which no node starts with if the jar is missing, move or go.
#[test]
fn lines_of_earlier_releases_move() {
    let node = Installed::new("5.0.9");
    for verb in ["install", "remove"] {
        node.write("home/conf/jvm-server.options", OLD);
        let (status, said) = match verb {
            "install" => node.install(&["--yes"]),
            _ => node.run(&["remove", "--yes"]),
        };
        assert_eq!(status, Some(0), "{said}");
        assert_eq!(node.read("home/conf/jvm-server.options"), "-ea\n", "{verb}");
        assert_eq!(node.script().contains("-javaagent"), verb == "install");
    }
}

#[test]
fn homes_without_a_release_are_refused() {
    let words = "this is Cassandra 4.0.18, and the jar is for 4.1 and later";
    Installed::new("4.0.18").refuses(2, words);
    let node = Installed::new("5.0.9");
    fs::remove_file(node.path("home/lib/apache-cassandra-5.0.9.jar")).expect("removed");
    node.refuses(3, "not a Cassandra's home");
    node.write("home/apache-cassandra-5.0.8.jar", "");
    node.write("home/apache-cassandra-5.0.9.jar", "");
    node.refuses(3, "5.0.8, 5.0.9");
}

#[test]
fn what_does_not_fit_is_refused() {
    let node = Installed::new("5.0.9");
    for (file, line) in [
        ("home/conf/jvm-server.options", "-javaagent:/x/halcyon-cassandra.jar"),
        ("home/conf/jvm17-server.options", "-Dhalcyon.binary=/x"),
        ("home/conf/cassandra-env.sh", "JVM_OPTS=\"$JVM_OPTS -javaagent:/x/halcyon.jar\""),
    ] {
        let before = fs::read_to_string(node.path(file)).unwrap_or_default();
        node.write(file, &format!("{before}{line}\n"));
        node.refuses(2, &format!("`{line}` was written by hand"));
        node.write(file, &before);
    }
    fs::remove_file(node.path("home/conf/jvm17-server.options")).expect("removed");
    node.write("h.jar", "no zip");
    node.refuses(3, "not a jar");
    fs::remove_file(node.path("h.jar")).expect("removed");
    node.refuses(3, "no such file; --jar");
    fs::create_dir(node.path("h h")).expect("created");
    node.write("h h/h.jar", "PK\x03\x04");
    let blank = node.path("h h/h.jar").display().to_string();
    let (status, said) = node.run(&["install", "--yes", "--jar", &blank]);
    assert!(status == Some(3) && said.contains("has a blank"), "{said}");
    missing(&node, "--cassandra-conf");
}

/// A directory that is not there, either of the two.
fn missing(node: &Installed, option: &str) {
    let nowhere = Path::new("/nonexistent/cassandra").display().to_string();
    node.write("h.jar", "PK\x03\x04");
    let (status, said) = node.install(&["--yes", option, &nowhere]);
    assert!(status == Some(3) && said.contains("no such directory"), "{said}");
    let output = halcyon(&["plugin", "install", "--cassandra-home", &nowhere]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("no such directory"));
}
