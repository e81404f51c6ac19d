//! What the tests need beside Rust and a C compiler, and how a Debian machine gets it.
//!
//! 1. Each need is looked for as the tests use it (a JDK 17 in its folder, a Python that can make a virtual environment), because a
//!    package's presence says little: a container may have Maven from elsewhere, and Debian's `python3` has no `venv`.
//! 2. Missing packages are installed where that needs no password; elsewhere the error is the line that installs them.

use std::process::{Command, Stdio};

use halcyon_oracle::{apt, java_home};

use crate::{Result, call};

struct Need {
    /// For a person whose system has no apt.
    name: &'static str,
    packages: &'static [&'static str],
    is_met: fn() -> bool,
}

/// The one list of what `cargo x test` uses from outside.
const NEEDS: [Need; 9] = [
    Need {
        name: "a JDK 17",
        packages: &["openjdk-17-jdk-headless"],
        is_met: || java_home().is_ok() && runs("javac", &["-version"]),
    },
    Need { name: "Maven", packages: &["maven"], is_met: || runs("mvn", &["-v"]) },
    Need { name: "Go", packages: &["golang-go"], is_met: || runs("go", &["version"]) },
    Need {
        name: "Node.js with npm",
        packages: &["nodejs", "npm"],
        is_met: || runs("node", &["--version"]) && runs("npm", &["--version"]),
    },
    Need {
        name: "Python 3 with venv",
        packages: &["python3", "python3-venv"],
        is_met: || runs("python3", &["-c", "import venv, ensurepip"]),
    },
    Need { name: "OpenSSL", packages: &["openssl"], is_met: || runs("openssl", &["version"]) },
    Need {
        name: "Prometheus",
        packages: &["prometheus"],
        is_met: || runs("prometheus", &["--version"]) && runs("promtool", &["--version"]),
    },
    Need { name: "Chromium", packages: &["chromium"], is_met: || runs("chromium", &["--version"]) },
    Need {
        name: "testssl.sh",
        packages: &["testssl.sh"],
        is_met: || runs("testssl", &["--version"]),
    },
];

/// Components of the toolchain that a minimal installation of Rust lacks.
const COMPONENTS: [(&str, &str); 2] = [("clippy", "clippy"), ("fmt", "rustfmt")];

/// Installs what is missing; an error if that is not possible.
pub(crate) fn meet() -> Result<()> {
    for (command, component) in COMPONENTS {
        if !runs("cargo", &[command, "--version"]) {
            call(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !(need.is_met)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|need| need.name).collect();
    let packages: Vec<&str> = missing.iter().flat_map(|need| need.packages).copied().collect();
    apt::install(&packages).map_err(|error| format!("missing: {}; {error}", names.join(", ")))?;
    match missing.iter().find(|need| !(need.is_met)()) {
        None => Ok(()),
        Some(need) => {
            Err(format!("{} is still not found after its installation", need.name).into())
        }
    }
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
