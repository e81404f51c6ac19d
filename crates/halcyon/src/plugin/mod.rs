//! `halcyon plugin`: puts the jar of `plugin/cassandra` into an Apache Cassandra's options, and takes it out again.
//!
//! 1. Look: the release, the files of options, the jar and this program. What does not fit is refused before anything is asked.
//! 2. Show what would change, as a unified diff.
//! 3. Ask, unless `--yes` answers.
//! 4. Keep the old file beside the new one, then replace it at once.
//!
//! Nothing is copied: jar and program stay where they are, and the options name them.

mod home;
mod lines;

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use halcyon_io::{Disk, Purpose, replace};

use crate::console::Console;
use crate::failure::{Failure, Result};
use home::OptionsFile;
pub(crate) use home::refusal;
use lines::Lines;

const JAR: &str = "halcyon-cassandra.jar";
const BACKUP: &str = ".before-halcyon";
/// What a jar begins with.
const ZIP: &[u8] = b"PK\x03\x04";
const LARGEST_JAR: u64 = 64 << 20;

/// Install or remove the plug-in by which an Apache Cassandra hands its compactions over (docs/operate/cassandra-plugin.md)
#[derive(Debug, Subcommand)]
pub(crate) enum PluginVerb {
    /// Add the jar to the options of Cassandra's JVM, after showing the change; the node must be restarted then
    #[command(after_help = "Examples:
  halcyon plugin install --cassandra-home /opt/cassandra --dry-run                             what would be changed
  halcyon plugin install --cassandra-home /opt/cassandra --jar /opt/halcyon/halcyon-cassandra.jar
  halcyon plugin install --cassandra-home /usr/share/cassandra --cassandra-conf /etc/cassandra --yes

Exit codes: 0 done, or nothing to do, 2 wrong command line, release or answer, 3 cannot read or write.")]
    Install(InstallArgs),
    /// Take the lines of `install` out again, after showing the change; the node must be restarted then
    Remove(NodeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    node: NodeArgs,
    /// The jar, which stays where it is [default: halcyon-cassandra.jar beside this program]
    #[arg(long, value_name = "FILE")]
    jar: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// The directory that has Cassandra's lib/, or its jar
    #[arg(long, value_name = "DIR")]
    cassandra_home: PathBuf,
    /// The directory that has jvm-server.options [default: conf in Cassandra's home]
    #[arg(long, value_name = "DIR")]
    cassandra_conf: Option<PathBuf>,
    /// Show the change and do nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// A file whose text changes.
struct Change {
    file: OptionsFile,
    new: String,
}

pub(crate) async fn run(verb: &PluginVerb, disk: &Disk, console: Console) -> Result<()> {
    match verb {
        PluginVerb::Install(args) => {
            home::check_release(disk, &args.node.cassandra_home).await?;
            let options = jvm_options(disk, args.jar.as_deref(), console).await?;
            change(disk, &args.node, |lines| lines.with(&options)).await
        }
        PluginVerb::Remove(node) => change(disk, node, |lines| lines.without()).await,
    }
}

async fn change(disk: &Disk, node: &NodeArgs, new: impl Fn(&Lines<'_>) -> String) -> Result<()> {
    let found = home::options(disk, &node.cassandra_home, node.cassandra_conf.as_deref()).await?;
    for file in found.edited.iter().chain(&found.others) {
        if let Some(line) = Lines::of(&file.text).by_hand() {
            let what = format!(
                "`{line}` was written by hand; remove it first, for this command changes its own lines only"
            );
            return Err(Failure::usage(format!("{}: {what}", file.path.display())));
        }
    }
    let changed = found.edited.into_iter().map(|file| {
        let new = new(&Lines::of(&file.text));
        Change { file, new }
    });
    let changes: Vec<Change> = changed.filter(|change| change.new != change.file.text).collect();
    let mut out = std::io::stdout().lock();
    for Change { file, new } in &changes {
        write!(out, "{}", lines::diff(&file.path.display().to_string(), &file.text, new))?;
    }
    if changes.is_empty() {
        writeln!(out, "nothing to change")?;
    }
    out.flush()?;
    if node.dry_run || changes.is_empty() {
        return Ok(());
    }
    agree(node.yes)?;
    for change in &changes {
        change.make(disk).await?;
    }
    writeln!(out, "done: it holds from the next start of the node")?;
    Ok(())
}

impl Change {
    async fn make(&self, disk: &Disk) -> Result<()> {
        let mut backup = OsString::from(&self.file.path);
        backup.push(BACKUP);
        let backup = PathBuf::from(backup);
        // It is what the operator had: a second install does not replace it by what we wrote.
        let keeps = !Lines::of(&self.file.text).are_there();
        if keeps {
            if disk.exists(&backup).await? {
                disk.remove(&backup).await?;
            }
            disk.write_new(&backup, self.file.text.as_bytes(), Purpose::Flush).await?;
        }
        let replaced = replace(&self.file.path, self.new.as_bytes());
        if replaced.is_err() && keeps {
            disk.remove(&backup).await?;
        }
        Ok(replaced?)
    }
}

/// Fails unless an operator says yes.
fn agree(yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    let mut input = std::io::stdin().lock();
    if !input.is_terminal() {
        return Err(Failure::usage(
            "nothing was changed: without a terminal to ask on, --yes says yes",
        ));
    }
    eprint!("Change this? [y/N] ");
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::usage("nothing was changed")),
    }
}

fn own_program() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|error| Failure::unreadable(format!("this program's own path: {error}")))
}

/// The jar that was named, else the one beside this program.
pub(crate) async fn find_jar(disk: &Disk, named: Option<&Path>) -> Result<PathBuf> {
    let jar = match named {
        Some(jar) => std::path::absolute(jar).map_err(|error| Failure::of_file(jar, error))?,
        None => own_program()?.with_file_name(JAR),
    };
    let head = disk.read(&jar, LARGEST_JAR).await.map_err(|error| match error.is_not_found() {
        true => {
            Failure::of_file(&jar, "no such file; --jar names the jar that `cargo x plugin` built")
        }
        false => error.into(),
    })?;
    if !head.starts_with(ZIP) {
        return Err(Failure::of_file(&jar, "not a jar"));
    }
    Ok(jar)
}

/// Arguments of the JVM. The start script parts options at blanks, and has no way to quote them.
async fn jvm_options(disk: &Disk, jar: Option<&Path>, console: Console) -> Result<Vec<String>> {
    let program = own_program()?;
    let jar = find_jar(disk, jar).await?;
    for path in [&jar, &program] {
        match path.to_str() {
            Some(text) if !text.contains(char::is_whitespace) => {}
            _ => {
                return Err(Failure::of_file(
                    path,
                    "its path has a blank, or is not UTF-8: Cassandra's start script cannot pass it on",
                ));
            }
        }
    }
    console.detail(format_args!(
        "the user that runs Cassandra must be able to read {} and run {}",
        jar.display(),
        program.display()
    ));
    Ok(vec![
        format!("-javaagent:{}", jar.display()),
        format!("-Dhalcyon.binary={}", program.display()),
    ])
}
