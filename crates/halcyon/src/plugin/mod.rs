//! `halcyon plugin`: puts the jar of `plugin/cassandra` into an Apache Cassandra's options, and takes it out again.
//!
//! 1. Look: the release, the script and the files of options, the jar and this program. What does not fit is refused before anything is
//!    asked; `check` ends here, and says more.
//! 2. Show what would change, as a unified diff.
//! 3. Ask, unless `--yes` answers.
//! 4. Keep the old file beside the new one, then replace it at once.
//!
//! Nothing is copied: jar and program stay where they are, and the script names them. A jar that is missing or cut off does not keep the
//! node from starting: the script leaves it out then.

mod check;
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
pub(crate) use home::too_old;
use lines::Lines;

const JAR: &str = "halcyon-cassandra.jar";
const BACKUP: &str = ".before-halcyon";
/// What a jar begins with.
const ZIP: &[u8] = b"PK\x03\x04";
const LARGEST_JAR: u64 = 64 << 20;
/// What a path may have beside letters and digits: a shell gives no other meaning to these, and the start script parts options at blanks.
const PLAIN: &str = "/._-+@%:,=";

/// Install or remove the plug-in by which an Apache Cassandra hands its compactions over (docs/operate/cassandra-plugin.md)
#[derive(Debug, Subcommand)]
pub(crate) enum PluginVerb {
    /// Say what `install` would change and what would happen then: release, jar, program, options; run it as Cassandra's user
    #[command(after_help = "Examples:
  sudo -u cassandra halcyon plugin check --cassandra-home /opt/cassandra

Exit codes: 0 compactions would be handed over, 1 they would not, 2 wrong command line or release, 3 cannot read.")]
    Check(CheckArgs),
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
pub(crate) struct CheckArgs {
    #[command(flatten)]
    place: CassandraArgs,
    #[command(flatten)]
    jar: JarArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    jar: JarArgs,
}

#[derive(Debug, Args)]
struct JarArgs {
    /// The jar, which stays where it is [default: halcyon-cassandra.jar beside this program]
    #[arg(long, value_name = "FILE")]
    jar: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct CassandraArgs {
    /// The directory that has Cassandra's lib/, or its jar
    #[arg(long, value_name = "DIR")]
    cassandra_home: PathBuf,
    /// The directory that has cassandra-env.sh [default: conf in Cassandra's home]
    #[arg(long, value_name = "DIR")]
    cassandra_conf: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    #[command(flatten)]
    place: CassandraArgs,
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
        PluginVerb::Check(args) => look(args, disk, console).await,
        PluginVerb::Install(args) => {
            let node = &args.node;
            home::installed(disk, &node.place.cassandra_home).await?;
            let ours = our_lines(disk, args.jar.jar.as_deref(), console).await?;
            let changes = changes(disk, &node.place, Some(&ours)).await?;
            make(disk, node, &changes).await
        }
        PluginVerb::Remove(node) => {
            let changes = changes(disk, &node.place, None).await?;
            make(disk, node, &changes).await
        }
    }
}

async fn look(args: &CheckArgs, disk: &Disk, console: Console) -> Result<()> {
    let installed = home::installed(disk, &args.place.cassandra_home).await?;
    let jar = find_jar(disk, args.jar.jar.as_deref()).await?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "ok: Cassandra {} in {}",
        installed.release,
        args.place.cassandra_home.display()
    )?;
    let mut problems = 0;
    for (kind, what) in check::ask(&installed, &jar, &own_program()?)? {
        writeln!(out, "{kind}: {what}")?;
        problems += usize::from(kind == "problem");
    }
    let ours = our_lines(disk, Some(&jar), console).await?;
    let changes = changes(disk, &args.place, Some(&ours)).await?;
    writeln!(out, "`halcyon plugin install` would make this change; nothing is changed now:")?;
    show(&changes)?;
    match problems {
        0 => Ok(()),
        _ => Err(Failure::problem(
            "compactions would stay Cassandra's: see the lines that begin with `problem`; the node would start all the same",
        )),
    }
}

/// What differs from the files that are there: the script has our lines, or none, and no other file has any.
async fn changes(
    disk: &Disk,
    place: &CassandraArgs,
    ours: Option<&[String]>,
) -> Result<Vec<Change>> {
    let found = home::options(disk, &place.cassandra_home, place.cassandra_conf.as_deref()).await?;
    for file in found.others.iter().chain([&found.script]) {
        if let Some(line) = Lines::of(&file.text).by_hand() {
            let what = format!(
                "`{line}` was written by hand; remove it first, for this command changes its own lines only"
            );
            return Err(Failure::usage(format!("{}: {what}", file.path.display())));
        }
    }
    let script = Lines::of(&found.script.text);
    let new = ours.map_or_else(|| script.without(), |ours| script.with(ours));
    let script = Change { file: found.script, new };
    let others = found.others.into_iter().map(|file| {
        let new = Lines::of(&file.text).without();
        Change { file, new }
    });
    Ok([script].into_iter().chain(others).filter(|change| change.new != change.file.text).collect())
}

fn show(changes: &[Change]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for Change { file, new } in changes {
        write!(out, "{}", lines::diff(&file.path.display().to_string(), &file.text, new))?;
    }
    if changes.is_empty() {
        writeln!(out, "nothing to change")?;
    }
    Ok(out.flush()?)
}

async fn make(disk: &Disk, node: &NodeArgs, changes: &[Change]) -> Result<()> {
    show(changes)?;
    if node.dry_run || changes.is_empty() {
        return Ok(());
    }
    agree(node.yes)?;
    for change in changes {
        change.make(disk).await?;
    }
    Ok(writeln!(std::io::stdout(), "done: it holds from the next start of the node")?)
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
        // Without our lines the copy is ours too, and nothing of ours is to stay.
        let is_over = match &replaced {
            Ok(()) => !Lines::of(&self.new).are_there(),
            Err(_) => keeps,
        };
        if is_over && disk.exists(&backup).await? {
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

/// Lines of the script. The end of a jar is what a copy that was cut off lacks.
async fn our_lines(disk: &Disk, jar: Option<&Path>, console: Console) -> Result<Vec<String>> {
    let program = own_program()?;
    let jar = find_jar(disk, jar).await?;
    let (jar, program) = (plain(&jar)?, plain(&program)?);
    console.detail(format_args!(
        "the user that runs Cassandra must be able to read {jar} and run {program}"
    ));
    Ok(vec![
        format!("if [ \"$(tail -c 22 {jar} 2>/dev/null | head -c 2)\" = PK ]; then"),
        format!("    JVM_OPTS=\"$JVM_OPTS -javaagent:{jar} -Dhalcyon.binary={program}\""),
        "elif [ \"${0##*/}\" = cassandra ]; then".to_owned(),
        format!(
            "    echo \"Halcyon: {jar} is missing, damaged or unreadable, and is left out: compactions stay Cassandra's\" >&2"
        ),
        "fi".to_owned(),
    ])
}

/// A path as the script may have it.
fn plain(path: &Path) -> Result<&str> {
    let is_plain = |letter: char| letter.is_alphanumeric() || PLAIN.contains(letter);
    path.to_str().filter(|text| text.chars().all(is_plain)).ok_or_else(|| {
        Failure::of_file(
            path,
            format!(
                "its path has a blank or another character beside letters, digits and {PLAIN}: Cassandra's start script cannot pass it on"
            ),
        )
    })
}
