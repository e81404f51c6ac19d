//! `halcyon plugin` on the files of a Cassandra that does not run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::golden::{TempFolder, halcyon, text};

const OPTIONS: &str = "# Options of the server\n-ea\n-XX:+UseThreadPriorities\n";

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
        installed.write("home/conf/jvm-server.options", OPTIONS);
        installed.write("home/conf/jvm11-server.options", "# of 11\n");
        installed.write("h.jar", "PK\x03\x04");
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

    fn options(&self) -> String {
        self.read("home/conf/jvm-server.options")
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
        let before = self.options();
        let (status, said) = self.install(&["--yes"]);
        assert_eq!(status, Some(code), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(self.options(), before);
        assert!(!self.path("home/conf/jvm-server.options.before-halcyon").exists());
    }
}

/// Proves that the change is shown before it is made, is made once, and goes again.
#[test]
fn options_come_and_go() {
    let node = Installed::new("5.0.9");
    let file = node.path("home/conf/jvm-server.options");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
    let (status, shown) = node.install(&["--dry-run"]);
    let agent = format!("+-javaagent:{}\n", node.path("h.jar").display());
    assert_eq!(status, Some(0), "{shown}");
    assert!(
        shown.contains(" -ea\n") && shown.contains(&agent) && shown.contains("+-Dhalcyon.binary=/"),
        "{shown}"
    );
    assert_eq!(node.options(), OPTIONS);
    // There is no terminal to say yes on.
    let (status, said) = node.install(&[]);
    assert_eq!((status, node.options().as_str()), (Some(2), OPTIONS), "{said}");

    let (status, said) = node.install(&["--yes"]);
    assert!(status == Some(0) && said.starts_with(&shown), "{said}");
    let installed = node.options();
    assert!(installed.starts_with(OPTIONS) && installed.contains("\n-javaagent:"), "{installed}");
    assert_eq!(node.read("home/conf/jvm-server.options.before-halcyon"), OPTIONS);
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o640);
    let (status, said) = node.install(&["--yes"]);
    assert_eq!((status, said.as_str()), (Some(0), "nothing to change\n"));
    assert_eq!(node.options(), installed);

    let (status, said) = node.run(&["remove", "--yes"]);
    assert_eq!((status, node.options().as_str()), (Some(0), OPTIONS), "{said}");
    assert_eq!(node.run(&["remove", "--yes"]), (Some(0), "nothing to change\n".to_owned()));
    assert_eq!(node.read("home/conf/jvm11-server.options"), "# of 11\n");
}

/// Proves that a Cassandra without the file of all JVMs gets the options in each of theirs.
#[test]
fn files_of_each_jvm_will_do() {
    let node = Installed::new("5.0.9");
    fs::remove_file(node.path("home/conf/jvm-server.options")).expect("removed");
    node.write("home/conf/jvm17-server.options", "");
    let (status, said) = node.install(&["--yes"]);
    assert_eq!(status, Some(0), "{said}");
    for file in ["home/conf/jvm11-server.options", "home/conf/jvm17-server.options"] {
        assert!(node.read(file).contains("\n-Dhalcyon.binary="), "{file}");
    }
}

#[test]
fn releases_without_a_jar_are_refused() {
    for (release, words) in [
        ("4.1.9", "this is Cassandra 4.1.9, and the jar is for 5.0.9: older"),
        ("5.0.3", "although it is a 5.0"),
        ("6.0-alpha2", "newer"),
    ] {
        Installed::new(release).refuses(2, words);
    }
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
        ("home/conf/jvm11-server.options", "-Dhalcyon.binary=/x"),
        ("home/conf/cassandra-env.sh", "JVM_OPTS=\"$JVM_OPTS -javaagent:/x/halcyon.jar\""),
    ] {
        let before = fs::read_to_string(node.path(file)).unwrap_or_default();
        node.write(file, &format!("{before}{line}\n"));
        node.refuses(2, &format!("`{line}` was written by hand"));
        node.write(file, &before);
    }
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
