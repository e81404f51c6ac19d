//! `nodetool help`, in the layout of Cassandra's.

use super::arguments::{Choice, GLOBAL, Syntax, Times};
use super::verbs;

const WIDTH: usize = 80;

/// The list of commands, or what is to be known of some.
pub(super) fn of(names: &[String]) -> String {
    if names.is_empty() {
        return list();
    }
    let of_verb = |name: &String| match verbs::find(name) {
        Some(verb) => page(&verb.syntax),
        None => format!("Unknown command {name}\n\n"),
    };
    names.iter().map(of_verb).collect()
}

fn list() -> String {
    let mut out = "usage: nodetool [(-u <username> | --username <username>)]\n        \
                   [(-p <port> | --port <port>)] [(-h <host> | --host <host>)]\n        \
                   [(-pw <password> | --password <password>)] [(-pp | --print-port)]\n        \
                   [(-pwf <passwordFilePath> | --password-file <passwordFilePath>)] <command>\n        \
                   [<args>]\n\nThe most commonly used nodetool commands are:\n"
        .to_owned();
    let mut commands: Vec<(&str, &str)> =
        verbs::all().map(|verb| (verb.syntax.name, verb.syntax.about)).collect();
    commands.push(("help", "Display help information"));
    commands.sort_unstable();
    let width = commands.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 3;
    for (name, about) in commands {
        out += &format!("    {name:width$}{about}\n");
    }
    out + "\nSee 'nodetool help <command>' for more information on a specific command.\n\n"
}

fn page(verb: &Syntax) -> String {
    let mut out = String::from("NAME\n");
    let of_name = format!("nodetool {} - {}", verb.name, verb.about);
    out += &wrapped(of_name.split(' ').map(str::to_owned), 8, 8);
    out += "\nSYNOPSIS\n";
    let mut words = vec!["nodetool".to_owned()];
    words.extend(GLOBAL.iter().map(usage));
    words.push(verb.name.to_owned());
    words.extend(verb.options.iter().map(usage));
    if let Some(arguments) = &verb.arguments {
        words.push("[--]".to_owned());
        words.extend(arguments.usage.split_whitespace().map(str::to_owned));
    }
    out += &wrapped(words.into_iter(), 8, 16);
    out += "\nOPTIONS\n";
    let mut options: Vec<&Choice> = GLOBAL.iter().chain(verb.options).collect();
    options.sort_by_key(|choice| {
        choice.names.first().map(|name| name.trim_start_matches('-').to_lowercase())
    });
    for choice in options {
        let names: Vec<String> = choice.names.iter().map(|name| named(name, choice)).collect();
        out += &entry(&names.join(", "), choice.about);
    }
    if let Some(arguments) = &verb.arguments {
        let separator = "This option can be used to separate command-line options from the list of argument, (useful when arguments \
                         might be mistaken for command-line options";
        out += &entry("--", separator);
        out += &entry(arguments.usage.trim(), arguments.about);
    }
    out + "\n"
}

fn entry(head: &str, about: &str) -> String {
    format!("        {head}\n{}\n", wrapped(about.split(' ').map(str::to_owned), 12, 12))
}

fn named(name: &str, choice: &Choice) -> String {
    match choice.value {
        Some(title) => format!("{name} <{title}>"),
        None => name.to_owned(),
    }
}

fn usage(choice: &Choice) -> String {
    let names: Vec<String> = choice.names.iter().map(|name| named(name, choice)).collect();
    let one = match names.as_slice() {
        [only] => only.clone(),
        several => format!("({})", several.join(" | ")),
    };
    match choice.times {
        Times::Optional => format!("[{one}]"),
        Times::Required => one,
        Times::Many => format!("[{one}...]"),
    }
}

/// Words in lines of at most [`WIDTH`] letters; the first is indented by `first`, the others by `others`.
fn wrapped(words: impl Iterator<Item = String>, first: usize, others: usize) -> String {
    let mut out = String::new();
    let mut line = " ".repeat(first);
    let mut is_empty = true;
    for word in words {
        if !is_empty && line.len() + 1 + word.len() > WIDTH {
            out += &line;
            out.push('\n');
            line = " ".repeat(others);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += &word;
        is_empty = false;
    }
    out + &line + "\n"
}
