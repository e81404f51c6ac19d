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
mod clients;
mod compaction;
mod failure;
mod guardrails;
mod help;
mod node;
mod request_logs;
mod settings;
mod snapshots;
mod status;
mod tables;
mod tablestats;
mod text;
mod verbs;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use halcyon_io::block_on;

use arguments::Call;
use failure::{Failure, Result};
use node::Node;
use verbs::{OF_CASSANDRA_ONLY, VERBS, Verb};

/// The port of JMX, where scripts expect nodetool to connect.
const JMX_PORT: &str = "7199";

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
        Err(Failure::Told) => 1,
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
    let (global, words) = arguments::global(words)?;
    let destination = arguments::destination(global)?;
    let Some((name, words)) = words.split_first().filter(|(name, _)| *name != "help") else {
        let names = words.get(1..).unwrap_or_default().to_vec();
        return Ok((None, Call::new(destination, names)));
    };
    let Some(verb) = VERBS.iter().find(|verb| verb.syntax.name == name) else {
        if OF_CASSANDRA_ONLY.contains(&name.as_str()) {
            return Failure::failed(format!(
                "{name} is a command of Cassandra that Halcyon does not have yet; `nodetool help` lists what there is"
            ));
        }
        return arguments::unexpected([std::slice::from_ref(name), words].concat().as_slice());
    };
    Ok((Some(verb), arguments::of_command(&verb.syntax, words, destination)?))
}

async fn execute(verb: Option<&Verb>, call: Call, out: &mut String) -> Result<()> {
    let Some(verb) = verb else {
        let all: Vec<_> = VERBS.iter().map(|verb| &verb.syntax).collect();
        out.push_str(&help::of(&all, &call.arguments));
        return Ok(());
    };
    if call.destination.port == JMX_PORT {
        return Err(Failure::Unreachable(format!(
            "{JMX_PORT} is Cassandra's port for JMX, which Halcyon does not have: give the port for CQL clients with -p, or none for 9042"
        )));
    }
    let mut node = Node::connect(&call.destination).await?;
    (verb.run)(&call, &mut node, out).await
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
        assert!(refused("repair").contains("does not have yet"));
    }

    /// Proves that every command has a page, that no option hides another, and that the lists are sorted and disjoint.
    #[test]
    fn every_command_has_a_page() {
        assert!(VERBS.is_sorted_by_key(|verb| verb.syntax.name));
        assert!(OF_CASSANDRA_ONLY.is_sorted());
        let all: Vec<_> = VERBS.iter().map(|verb| &verb.syntax).collect();
        for syntax in &all {
            assert!(!OF_CASSANDRA_ONLY.contains(&syntax.name));
            let page = help::of(&all, &[syntax.name.to_owned()]);
            assert!(
                page.starts_with(&format!("NAME\n        nodetool {} - ", syntax.name)),
                "{page}"
            );
            let mut names: Vec<&str> =
                syntax.options.iter().flat_map(|choice| choice.names).copied().collect();
            names.sort_unstable();
            assert!(names.is_sorted_by(|a, b| a < b), "{}", syntax.name);
        }
        assert_eq!(help::of(&all, &["nosuch".to_owned()]), "Unknown command nosuch\n\n");
    }
}
