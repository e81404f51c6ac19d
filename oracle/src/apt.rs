//! Debian packages, installed where that needs no password.

use std::process::{Command, Stdio};

use crate::{Result, bounded, call};

const MINUTES: u32 = 20;

/// Installs packages as root, or by a `sudo` that asks nothing. Otherwise the error says which command does it.
pub fn install(packages: &[&str]) -> Result<()> {
    let by_hand = format!("run: sudo apt-get install --yes {}", packages.join(" "));
    let Some(prefix) = as_root().filter(|_| succeeds("apt-get", &["--version"])) else {
        return Err(by_hand.into());
    };
    eprintln!("installing {}", packages.join(" "));
    let apt = |arguments: &[&str]| {
        let words = [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]].concat();
        let (program, rest) = words.split_first().ok_or("no command")?;
        call(bounded(MINUTES, program).args(rest).args(arguments).stdin(Stdio::null()))
    };
    // A fresh container has no lists; where they cannot be renewed, the old ones may do.
    let _ = apt(&["update", "--quiet"]);
    let done =
        apt(&[&["install", "--quiet", "--yes", "--no-install-recommends"], packages].concat());
    done.map_err(|error| format!("{error}; {by_hand}").into())
}

/// The words before a command that needs root; none where a password would be asked for.
fn as_root() -> Option<&'static [&'static str]> {
    if is_root() {
        return Some(&[]);
    }
    succeeds("sudo", &["--non-interactive", "true"]).then_some(&["sudo", "--non-interactive"])
}

pub fn is_root() -> bool {
    let about = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = about.lines().find_map(|line| line.strip_prefix("Uid:"));
    line.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
