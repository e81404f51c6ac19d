//! `halcyon nodetool`: Cassandra's commands for a running node, with its arguments, output and exit codes, over CQL instead of JMX.
//!
//! 1. `arguments` reads the command line as Cassandra's does, by the options that `verbs` lists. Also when the binary is called
//!    `nodetool`, through a link.
//! 2. A verb asks the node (`node`): rows of `system`, `system_views` and `halcyon_views`; commands are rows that it inserts into
//!    `halcyon_views.commands`. It writes its text to [`Call::out`].
//! 3. Exit codes are Cassandra's: 1 for wrong use, with a text on standard output, and for a node that does not answer; 2 for a command
//!    that failed.
//!
//! A new verb is a function in the file of its family, and an entry in `verbs`. There are no stack traces.

mod arguments;
mod caches;
mod cidr;
mod clients;
mod compaction;
mod data_paths;
mod failure;
mod format;
mod guardrails;
mod help;
mod histograms;
mod history;
mod node;
mod profiles;
mod request_logs;
mod rewrite;
mod ring;
mod running_settings;
mod settings;
mod snapshots;
mod sstables;
mod status;
mod tables;
mod tablestats;
mod text;
mod verbs;
mod views;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use halcyon_io::block_on;

use arguments::Call;
pub(crate) use arguments::{Choice, Destination, GLOBAL, destination, options};
pub(crate) use failure::Failure;
use failure::Result;
use node::Node;
pub(crate) use node::connect;
pub(crate) use text::file_size;
use verbs::{Verb, Work};

/// The arguments of nodetool, if the binary was called so, or if that is its first word.
pub(crate) fn asked(words: &[String]) -> Option<&[String]> {
    let (program, rest) = words.split_first()?;
    if Path::new(program).file_name().is_some_and(|name| name == "nodetool") {
        return Some(rest);
    }
    rest.split_first().filter(|(verb, _)| *verb == "nodetool").map(|(_, rest)| rest)
}

pub(crate) fn run(words: &[String]) -> ExitCode {
    let mut out = String::new();
    let outcome = asked_for(words).and_then(|(verb, call)| block_on(execute(verb, call, &mut out)));
    let code = match outcome {
        Ok(()) => 0,
        Err(Failure::Usage(what)) => {
            out +=
                &format!("nodetool: {what}\nSee 'nodetool help' or 'nodetool help <command>'.\n");
            1
        }
        Err(Failure::AskedForHelp) => {
            out += &help::of(&[]);
            0
        }
        Err(Failure::Told) => 1,
        Err(Failure::NotFound(what)) => {
            eprintln!("{what}");
            1
        }
        Err(Failure::Unreachable(what)) => {
            eprintln!("nodetool: {what}");
            1
        }
        Err(Failure::Failed(what)) => {
            eprintln!("error: {what}");
            2
        }
    };
    // A reader that has gone (`| head`) needs no message.
    let _ = std::io::stdout().write_all(out.as_bytes());
    ExitCode::from(code)
}

/// The command and its arguments; no command: help.
fn asked_for(words: &[String]) -> Result<(Option<&'static Verb>, Call)> {
    let (mut global, words) = options(GLOBAL, words)?;
    let destination = destination(&mut global)?;
    let Some((name, words)) = words.split_first().filter(|(name, _)| *name != "help") else {
        let names = words.get(1..).unwrap_or_default().to_vec();
        return Ok((None, Call::new(destination, names)));
    };
    let Some(verb) = verbs::find(name) else {
        return arguments::unexpected([std::slice::from_ref(name), words].concat().as_slice());
    };
    Ok((Some(verb), arguments::of_command(&verb.syntax, words, destination)?))
}

async fn execute(verb: Option<&Verb>, call: Call, out: &mut String) -> Result<()> {
    let Some(verb) = verb else {
        out.push_str(&help::of(&call.arguments));
        return Ok(());
    };
    let run = match verb.work {
        Work::Run(run) => run,
        Work::Refuse(why) => return verb.refusal(why),
    };
    let mut node = Node::connect(&call.destination).await?;
    run(&call, &mut node, out).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(Option<&'static Verb>, Call)> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        asked_for(&words)
    }

    fn refused(line: &str) -> String {
        match read(line) {
            Err(Failure::Usage(what) | Failure::Failed(what)) => what,
            Ok(_) | Err(_) => panic!("{line} is not refused"),
        }
    }

    /// Proves the three spellings of values, the end of options, and that unknown options are arguments.
    #[test]
    fn options_and_arguments() {
        let line = "-p19 --host=db -u me -pw secret snapshot ks -t x --table=t -- -kt";
        let (_, call) = read(line).unwrap_or_else(|_| panic!("{line}"));
        assert_eq!((call.destination.host.as_str(), call.destination.port.as_str()), ("db", "19"));
        assert_eq!(call.destination.password.as_deref(), Some("secret"));
        assert_eq!((call.option("-t"), call.option("-cf")), (Some("x"), Some("t")));
        assert_eq!(call.arguments, ["ks", "-kt"]);
        assert!(read("flush ks --foo").is_ok_and(|(_, call)| call.arguments == ["ks", "--foo"]));
        let help = read("help flush");
        assert!(help.is_ok_and(|(verb, call)| verb.is_none() && call.arguments == ["flush"]));
    }

    /// Proves the messages of Cassandra's parser.
    #[test]
    fn wrong_lines_are_refused() {
        assert_eq!(refused("nosuch a"), "Found unexpected parameters: [nosuch, a]");
        assert_eq!(refused("version -p 1"), "Found unexpected parameters: [-p, 1]");
        assert_eq!(refused("snapshot -t"), "Required values for option 'tag' not provided");
    }

    /// Proves that every command has a page, and that no option hides another.
    #[test]
    fn every_command_has_a_page() {
        for verb in verbs::all() {
            let syntax = &verb.syntax;
            let page = help::of(&[syntax.name.to_owned()]);
            assert!(
                page.starts_with(&format!("NAME\n        nodetool {} - ", syntax.name)),
                "{page}"
            );
            let mut names: Vec<&str> =
                syntax.options.iter().flat_map(|choice| choice.names).copied().collect();
            names.sort_unstable();
            assert!(names.is_sorted_by(|a, b| a < b), "{}", syntax.name);
        }
        assert_eq!(help::of(&["nosuch".to_owned()]), "Unknown command nosuch\n\n");
    }

    /// Proves that what this node cannot do is parsed first, and then refused with a reason and without a connection.
    #[test]
    fn refusals_name_a_reason() {
        assert_eq!(refused("move"), "Required parameters are missing: newToken");
        let (verb, call) = read("-p 1 move 5").expect("it is parsed");
        let mut out = String::new();
        let outcome = block_on(execute(verb, call, &mut out));
        let Err(Failure::Failed(why)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(why, "move: this node is alone in its ring and owns all tokens");
        assert_eq!(refused("getauthcacheconfig"), "Required option '--cache-name' is missing");
    }
}
