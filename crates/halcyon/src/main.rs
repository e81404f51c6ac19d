//! `halcyon`: serves CQL, and reads, verifies, dumps and compacts Apache Cassandra's SSTables.
//!
//! This file dispatches to the commands; each is a file.
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod allocator;
mod bars;
mod compact;
mod console;
mod describe;
mod doctor;
mod dump;
mod encryption;
mod failure;
mod fql;
mod nodetool;
mod plugin;
mod schema_args;
mod serve;
mod top;
mod verify;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use halcyon_io::{Disk, DiskOptions, block_on, ignore_file_size_signal, resources};

use console::{Console, Verbosity};
use failure::Failure;

/// A Cassandra-compatible database: a CQL server, and commands on Apache Cassandra's SSTables, offline.
#[derive(Debug, Parser)]
#[command(
    name = "halcyon",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 1 a problem was found in the files, 2 wrong command line, 3 cannot read or write.\n\
        `halcyon help VERB` and `halcyon VERB --help` show examples."
)]
struct Cli {
    #[command(flatten)]
    talk: Talk,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Args)]
struct Talk {
    /// Print details on standard error: I/O backend, access modes and their reasons, source of the schema
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Print only the result and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Serve(serve::ServeArgs),
    /// Inspect SSTables: describe, dump, verify
    #[command(subcommand)]
    Sstable(SSTableVerb),
    Compact(Box<compact::CompactArgs>),
    Doctor(doctor::DoctorArgs),
    /// Print and replay full query logs
    #[command(subcommand)]
    Fql(fql::FqlVerb),
    #[command(subcommand)]
    Plugin(plugin::PluginVerb),
    /// Operate a running node with the commands of Cassandra's nodetool; `halcyon nodetool help` lists them
    #[command(disable_help_flag = true)]
    Nodetool {
        /// As of nodetool: `[-h HOST] [-p PORT] [-u USER -pw PASSWORD] COMMAND [ARGUMENTS]`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Watch a running node on a terminal: latency of requests, and what causes it
    #[command(disable_help_flag = true)]
    Top {
        /// Those of nodetool, `--interval SECONDS`, `--once`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
enum SSTableVerb {
    Describe(describe::DescribeArgs),
    Dump(dump::DumpArgs),
    Verify(verify::VerifyArgs),
}

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(arguments) = nodetool::asked(&words) {
        return nodetool::run(arguments);
    }
    if let Some(arguments) = top::asked(&words) {
        return top::run(arguments);
    }
    let cli = Cli::parse();
    let verbosity = match (cli.talk.quiet, cli.talk.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    };
    let console = Console { verbosity };
    match run(&cli.verb, console) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::OutputClosed) {
                eprintln!("halcyon: {failure}");
            }
            failure.exit_code()
        }
    }
}

fn run(verb: &Verb, console: Console) -> failure::Result<()> {
    ignore_file_size_signal()?;
    if matches!(verb, Verb::Compact(args) if args.is_service()) {
        // Its files are Cassandra's, with the modes that Cassandra gives them.
        return compact::serve();
    }
    resources::create_privately();
    let options = match verb {
        Verb::Serve(args) => return serve::run(args, console),
        Verb::Compact(args) => args.disk_options(),
        Verb::Fql(verb) => return fql::run(verb, console),
        Verb::Sstable(_)
        | Verb::Doctor(_)
        | Verb::Plugin(_)
        | Verb::Nodetool { .. }
        | Verb::Top { .. } => DiskOptions::default(),
    };
    let disk = Disk::real(options);
    if let Some(refusal) = &disk.backend().refusal {
        return Err(Failure::unreadable(refusal.clone()));
    }
    if let Some(warning) = &disk.backend().warning {
        console.detail(warning);
    }
    console.detail(format_args!("I/O engine: {}", disk.backend().backend));
    match verb {
        // Handled above: one opens its own disk, the other needs none.
        Verb::Serve(_) | Verb::Fql(_) | Verb::Nodetool { .. } | Verb::Top { .. } => Ok(()),
        Verb::Compact(args) => compact::run(args, &disk, console),
        Verb::Doctor(args) => block_on(doctor::run(args, &disk, console)),
        Verb::Plugin(verb) => block_on(plugin::run(verb, &disk, console)),
        Verb::Sstable(SSTableVerb::Describe(args)) => block_on(describe::run(args, &disk, console)),
        Verb::Sstable(SSTableVerb::Dump(args)) => block_on(dump::run(args, &disk, console)),
        Verb::Sstable(SSTableVerb::Verify(args)) => block_on(verify::run(args, &disk, console)),
    }
}
