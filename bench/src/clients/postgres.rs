//! A PostgreSQL of its own, from Debian's package: a data directory beside the others', on loopback, run as an unprivileged user,
//! stopped by its process id. `pgbench` is its generator.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use halcyon_oracle::apt::{self, is_root};
use halcyon_oracle::{Result, call};

use crate::latency::Latencies;
use crate::load::{Completed, Table};
use crate::process::{CpuOf, signal};
use crate::record::Measurements;

const PACKAGED: &str = "/usr/lib/postgresql";
/// The package makes it.
const USER: &str = "postgres";
const READY_WITHIN: Duration = Duration::from_secs(60);
/// As many as there are connections of the other generator at most, and some.
const MAX_CONNECTIONS: u32 = 250;

const TABLE: &str =
    "CREATE TABLE clients (pk bigint PRIMARY KEY, number int, word text, data bytea)";

pub(super) struct Postgres {
    programs: PathBuf,
    dir: PathBuf,
    port: u16,
    child: Child,
    /// Of the postmaster.
    pid: u32,
}

/// Where its programs are, installed now if that is allowed.
fn programs() -> Result<PathBuf> {
    let installed = || {
        let versions = fs::read_dir(PACKAGED).into_iter().flatten().flatten();
        let folders = versions.map(|version| version.path().join("bin"));
        folders.filter(|folder| folder.join("initdb").exists()).max()
    };
    if let Some(found) = installed() {
        return Ok(found);
    }
    if is_root() {
        // Otherwise the package starts a server of its own.
        let settings = Path::new("/etc/postgresql-common/createcluster.d");
        fs::create_dir_all(settings)?;
        fs::write(settings.join("no-main-cluster.conf"), "create_main_cluster = false\n")?;
    }
    apt::install(&["postgresql"])?;
    installed().ok_or_else(|| "installed, but without initdb".into())
}

/// As the unprivileged user, if this is root; PostgreSQL refuses to be root.
fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    // It becomes the program: no process stands between, which would stop when that is frozen.
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={USER}")).arg(format!("--regid={USER}")).arg("--init-groups");
    command.arg(program);
    command
}

impl Postgres {
    pub(super) fn start(dir: &Path, port: u16) -> Result<Postgres> {
        let programs = programs()?;
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        fs::create_dir_all(dir)?;
        if is_root() {
            call(Command::new("chown").arg(USER).arg(dir))?;
        }
        let mut init = unprivileged(&programs.join("initdb"));
        init.args(["--auth=trust", "--username=bench", "--encoding=UTF8", "--locale=C", "-D"]);
        call(init.arg(dir).stdout(Stdio::null()).current_dir("/"))?;
        let log = File::create(dir.with_extension("log"))?;
        let mut server = unprivileged(&programs.join("postgres"));
        server.arg("-D").arg(dir).args(["-p", &port.to_string()]).arg("-k").arg(dir);
        for setting in [
            "listen_addresses=127.0.0.1",
            "fsync=on",
            "synchronous_commit=on",
            "full_page_writes=on",
        ] {
            server.args(["-c", setting]);
        }
        server.args(["-c", &format!("max_connections={MAX_CONNECTIONS}")]).current_dir("/");
        let child = server.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut postgres = Postgres { programs, dir: dir.to_owned(), port, child, pid: 0 };
        postgres.pid = postgres.wait_until_ready()?;
        postgres.psql(TABLE)?;
        Ok(postgres)
    }

    /// The process id, once it answers.
    fn wait_until_ready(&mut self) -> Result<u32> {
        let began = Instant::now();
        while let Err(error) = self.psql("SELECT 1") {
            if self.child.try_wait()?.is_some() || began.elapsed() > READY_WITHIN {
                let said = fs::read_to_string(self.dir.with_extension("log")).unwrap_or_default();
                return Err(format!("it does not start: {error}\n{said}").into());
            }
            sleep(Duration::from_millis(100));
        }
        let about = fs::read_to_string(self.dir.join("postmaster.pid"))?;
        Ok(about.lines().next().ok_or("no process id")?.trim().parse()?)
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        let port = self.port.to_string();
        command.args(["-h", "127.0.0.1", "-p", &port, "-U", "bench"]);
        command
    }

    fn psql(&self, statement: &str) -> Result<()> {
        let mut psql = self.client("psql");
        let output = psql.args(["-q", "-c", statement, "postgres"]).output()?;
        let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(said().into()) }
    }

    /// The postmaster and all its children.
    fn processes(&self) -> Vec<u32> {
        let path = format!("/proc/{0}/task/{0}/children", self.pid);
        let children = fs::read_to_string(path).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        std::iter::once(self.pid).chain(children).collect()
    }

    pub(super) fn freeze(&self) -> Result<()> {
        self.signal_all("-STOP")
    }

    pub(super) fn thaw(&self) -> Result<()> {
        self.signal_all("-CONT")
    }

    /// The postmaster first, so that it makes no more of them.
    fn signal_all(&self, name: &str) -> Result<()> {
        signal(name, self.pid)?;
        for pid in self.processes().into_iter().filter(|pid| *pid != self.pid) {
            // One that served a connection may have ended with it.
            let _ =
                Command::new("kill").args([name, &pid.to_string()]).stderr(Stdio::null()).status();
        }
        Ok(())
    }

    /// What all processes used: those that serve a connection end with it, and their time goes to the postmaster.
    fn cpu_seconds(&self) -> f64 {
        let own =
            self.processes().into_iter().map(|pid| CpuOf::Process(pid).seconds()).sum::<f64>();
        own + CpuOf::EndedChildrenOf(self.pid).seconds()
    }

    pub(super) fn turn(&self, table: Table, clients: usize, seconds: f64) -> Result<Measurements> {
        let script = self.dir.with_extension("pgbench");
        let blob = "5a".repeat(table.blob);
        let insert = format!(
            "\\set key random(1, {})\n\\set number random(1, 1000000)\nINSERT INTO clients (pk, number, word, data) \
             VALUES (:key, :number, 'row', '\\x{blob}') ON CONFLICT (pk) DO NOTHING;\n",
            table.rows
        );
        fs::write(&script, insert)?;
        let log = self.dir.with_extension("transactions");
        let whole = (seconds.ceil() as u64).max(1).to_string();
        let mut pgbench = self.client("pgbench");
        pgbench.args(["--no-vacuum", "--protocol=prepared", "--time", &whole, "--log"]);
        pgbench.args(["--client", &clients.to_string(), "--jobs", &clients.min(2).to_string()]);
        pgbench.arg("--log-prefix").arg(&log).arg("--file").arg(&script).arg("postgres");
        let own = CpuOf::EndedChildren;
        let (cpu_before, client_before) = (self.cpu_seconds(), own.seconds());
        let output = pgbench.output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let client_cpu_seconds = own.seconds() - client_before;
        let server_cpu_seconds = self.cpu_seconds() - cpu_before;
        let nanos = transactions(&log)?;
        let completed = Completed {
            operations: nanos.len() as u64,
            seconds: whole.parse()?,
            latencies: Latencies::of(nanos),
            client_cpu_seconds,
        };
        Ok(completed.figures(server_cpu_seconds))
    }
}

/// Latencies out of the logs, which are deleted afterwards: one for each thread, `PREFIX.PID[.THREAD]`.
fn transactions(prefix: &Path) -> Result<Vec<u64>> {
    let (Some(folder), Some(name)) = (prefix.parent(), prefix.file_name()) else {
        return Err("no folder for logs".into());
    };
    let name = format!("{}.", name.to_string_lossy());
    let mut nanos = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&name) {
            nanos.extend(fs::read_to_string(entry.path())?.lines().filter_map(latency));
            fs::remove_file(entry.path())?;
        }
    }
    Ok(nanos)
}

/// `client transaction latency_us script seconds_of_epoch µs`
fn latency(line: &str) -> Option<u64> {
    Some(1000 * line.split(' ').nth(2)?.parse::<u64>().ok()?)
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.pid != 0 {
            let _ = self.thaw();
            // Fast shutdown.
            let _ = signal("-INT", self.pid);
        } else {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_log() {
        assert_eq!(latency("0 199 2241 0 1175850568 995598"), Some(2_241_000));
        assert_eq!(latency("nonsense"), None);
    }
}
