//! `cargo x`: the one door for every chore.

mod apps;
mod corpus;
mod differential;
mod e2e;
mod fuzz;
mod needs;
mod nightly;
mod package;
mod plugin;
mod printed;
mod soak;
mod suite;
mod tidy;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};
use halcyon_oracle::{self as oracle, Format, Node, Result, StartOptions, Version};
use halcyon_oracle::{bounded, call, repository};

#[derive(Parser)]
#[command(
    name = "cargo x",
    about = "The one door for every chore of this repository",
    after_help = "CI runs `cargo x test`, and that runs format, clippy, `tidy`, the unit tests, each `bench … --tiny`, 20 seeds of `sim`, and `e2e`. \
                  The others are campaigns of their own: `apps`, `bench`, `differential`, `fuzz`, `sim` and `soak` take minutes to hours, and `nightly` runs them all; `corpus` rewrites testdata/."
)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything that must pass: format, clippy, tidy, unit tests, tiny experiments, golden files, the oracle.
    /// Installs what it needs, or says how
    Test {
        /// Leave Cassandra out
        #[arg(long)]
        no_oracle: bool,
    },
    /// What `test` runs, and every campaign: more seeds, kills and minutes, and others' software. Takes hours
    Nightly,
    /// The rules of CONTRIBUTING.md that a machine can check
    Tidy(tidy::Arguments),
    /// The binary against golden files and against Cassandra
    E2e(e2e::Arguments),
    /// Experiments against Apache Cassandra, on this machine, in one run: `cargo x bench --help`
    #[command(disable_help_flag = true)]
    Bench {
        /// Arguments of the program `halcyon-bench`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// A whole node under simulation, once for each seed: `cargo x sim 1 2 3`, `cargo x sim --campaign`
    #[command(disable_help_flag = true)]
    Sim {
        /// Arguments of the program `halcyon-sim`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The release build, tried for long: `cargo x soak crash`, `cargo x soak histories`
    #[command(subcommand)]
    Soak(soak::Soak),
    /// Statements that a seed makes, asked of Cassandra and of Halcyon; what differs is shrunk: `cargo x differential --minutes 30`
    Differential(differential::Arguments),
    /// Others' software against Halcyon and Cassandra, and how many of its tests pass on each: `cargo x apps temporal`
    Apps(apps::Arguments),
    /// The fuzz targets, for some minutes each
    Fuzz(fuzz::Arguments),
    /// Let Cassandra write a corpus that covers every data feature, in each SSTable version
    Corpus(corpus::Arguments),
    /// The program as people copy it: an archive for every Linux with GLIBC 2.28, and its debug information; or with the jar for Cassandra
    Package(package::Arguments),
    /// The jar that hands an Apache Cassandra's compactions to Halcyon: builds it, and prints where it is
    Plugin,
    /// Apache Cassandra, the oracle: fetch, start, stop, offline tools
    #[command(subcommand)]
    Oracle(OracleVerb),
}

#[derive(Subcommand)]
enum OracleVerb {
    /// Fetch a release (both when none is named) from Maven Central
    Fetch { version: Option<Version> },
    /// Start a node and leave it running; prints pid and ports as JSON
    Start {
        version: Version,
        /// The SSTable version to write [default: the newest BIG one of the release]
        #[arg(long)]
        format: Option<Format>,
        /// Where its configuration, data and log go [default: .oracle/nodes/<format>, emptied]
        #[arg(long)]
        dir: Option<PathBuf>,
        /// Native port; storage and JMX take the two after it [default: free ones above 19042]
        #[arg(long)]
        port: Option<u16>,
        #[arg(long, default_value = "127.0.0.1")]
        address: Ipv4Addr,
        /// The address and storage port of a node whose ring this one joins
        #[arg(long)]
        seed: Option<SocketAddr>,
        #[arg(long, default_value = "768m")]
        heap: String,
        /// A further line of cassandra.yaml, as often as needed
        #[arg(long = "set")]
        settings: Vec<String>,
        /// Options of the JVM that win over the defaults, such as an agent
        #[arg(long, default_value = "", allow_hyphen_values = true)]
        jvm: String,
    },
    /// Stop the node of one directory, or all that `start` left running
    Stop {
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// Run nodetool against a node that `start` left running
    Nodetool {
        version: Version,
        /// The JMX port that `start` printed
        jmx_port: u16,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run one of Cassandra's offline tools
    Tool {
        version: Version,
        /// The directory of a stopped node, whose schema and data `verify` and `scrub` need
        #[arg(long)]
        dir: Option<PathBuf>,
        tool: Tool,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Tool {
    Sstabledump,
    Verify,
    Metadata,
    Scrub,
}

impl Tool {
    fn class(self) -> &'static str {
        match self {
            Tool::Sstabledump => "SSTableExport",
            Tool::Verify => "StandaloneVerifier",
            Tool::Metadata => "SSTableMetadataViewer",
            Tool::Scrub => "StandaloneScrubber",
        }
    }
}

fn main() -> ExitCode {
    let done = match Arguments::parse().chore {
        Chore::Oracle(verb) => run_oracle(verb),
        Chore::Bench { arguments } => program("halcyon-bench", &arguments),
        Chore::Sim { arguments } => program("halcyon-sim", &arguments),
        Chore::Corpus(arguments) => corpus::run(&arguments),
        Chore::Test { no_oracle } => return suite::run(!no_oracle, suite::Matrices::OfALanding),
        Chore::Nightly => return nightly::run(),
        Chore::E2e(arguments) => e2e::run(&arguments),
        Chore::Soak(soak) => soak::run(&soak),
        Chore::Differential(arguments) => differential::run(&arguments),
        Chore::Apps(arguments) => apps::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Plugin => {
            let jar = e2e::built(plugin::NAME);
            plugin::build(&jar).map(|()| println!("{}", jar.display()))
        }
        Chore::Package(arguments) => package::run(&arguments),
        Chore::Tidy(arguments) => tidy::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo x: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A program of its own, so that no other chore has to compile it.
fn program(package: &str, arguments: &[String]) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--package", package, "--"]);
    call(cargo.args(arguments).current_dir(repository()))
}

fn run_oracle(verb: OracleVerb) -> Result<()> {
    match verb {
        OracleVerb::Fetch { version: Some(version) } => oracle::open(version).map(drop),
        OracleVerb::Fetch { version: None } => e2e::fetch_oracle().map_err(Into::into),
        OracleVerb::Start { version, format, dir, port, address, seed, heap, settings, jvm } => {
            let format = format.unwrap_or(version.newest_format());
            let options = StartOptions {
                dir,
                port,
                address,
                seed,
                heap,
                settings,
                jvm,
                ..StartOptions::for_format(format)
            };
            let node = Node::start(&oracle::open(version)?, &options)?;
            println!("{:#}", node.describe());
            node.detach();
            Ok(())
        }
        OracleVerb::Stop { dir } => {
            println!("{} stopped", oracle::stop_recorded(dir.as_deref())?);
            Ok(())
        }
        OracleVerb::Nodetool { version, jmx_port, arguments } => {
            call(&mut oracle::open(version)?.nodetool(jmx_port, &arguments))
        }
        OracleVerb::Tool { version, dir, tool, arguments } => {
            let oracle = oracle::open(version)?;
            let properties =
                dir.map_or_else(|| Ok(Vec::new()), |dir| oracle::offline_properties(&dir))?;
            call(&mut oracle.tool(&properties, tool.class(), &arguments))
        }
    }
}
