//! The command line, read as Cassandra's nodetool reads it:
//!
//! ```text
//! nodetool [GLOBAL OPTIONS] COMMAND [OPTIONS or ARGUMENTS …] [-- ARGUMENTS …]
//! ```
//! Values stand behind an option or `=`, or directly behind an option of one letter. A word that is not an option of the command is an
//! argument, whatever it begins with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::failure::{Failure, Result};
use crate::encryption::EncryptionArgs;

/// An option: its names, the title of its value if it has one.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    pub(crate) names: &'static [&'static str],
    pub(crate) value: Option<&'static str>,
    pub(crate) about: &'static str,
    pub(crate) times: Times,
}

/// How often an option can be given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// The last one counts.
    Optional,
    Required,
    Many,
}

impl Choice {
    pub(crate) const fn value(
        names: &'static [&'static str],
        title: &'static str,
        about: &'static str,
    ) -> Choice {
        Choice { names, value: Some(title), about, times: Times::Optional }
    }

    pub(crate) const fn flag(names: &'static [&'static str], about: &'static str) -> Choice {
        Choice { names, value: None, about, times: Times::Optional }
    }

    pub(super) const fn times(self, times: Times) -> Choice {
        Choice { times, ..self }
    }
}

pub(super) struct Arguments {
    pub(super) usage: &'static str,
    pub(super) about: &'static str,
    pub(super) most: usize,
    /// What the command line lacks without any.
    pub(super) required: Option<&'static str>,
}

/// What the command line of a command can be.
pub(super) struct Syntax {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) options: &'static [Choice],
    pub(super) arguments: Option<Arguments>,
}

/// Options that stand before the command.
pub(crate) const GLOBAL: &[Choice] = &[
    Choice::value(&["-h", "--host"], "host", "Node hostname or ip address"),
    Choice::value(&["-p", "--port"], "port", "Port of the node for CQL clients (9042)"),
    Choice::flag(
        &["-pp", "--print-port"],
        "Operate in 4.0 mode with hosts disambiguated by port number",
    ),
    Choice::value(&["-pw", "--password"], "password", "Password of the user"),
    Choice::value(
        &["-pwf", "--password-file"],
        "passwordFilePath",
        "Path to the file of passwords",
    ),
    Choice::flag(&["--ssl"], "Encrypt the connection (TLS)"),
    Choice::value(
        &["-ts", "--truststore"],
        "TRUSTSTORE",
        "Path to the certificates that the node's is trusted by: PEM, JKS or PKCS12",
    ),
    Choice::value(&["-tspw", "--truststore-password"], "TRUSTSTORE-PASSWORD", "Its password"),
    Choice::value(
        &["-ks", "--keystore"],
        "KEYSTORE",
        "Path to the client's own key and certificate: PEM, JKS or PKCS12",
    ),
    Choice::value(&["-kspw", "--keystore-password"], "KEYSTORE-PASSWORD", "Its password"),
    Choice::flag(
        &["--no-hostname-verification"],
        "Accept a trusted certificate that does not name the host",
    ),
    Choice::value(&["-u", "--username"], "username", "User of the database"),
];

/// What was asked for.
pub(super) struct Call {
    pub(super) destination: Destination,
    options: Given,
    pub(super) arguments: Vec<String>,
}

pub(crate) struct Destination {
    pub(crate) host: String,
    pub(crate) port: String,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) encryption: EncryptionArgs,
}

/// Values by the first name of their option.
pub(crate) type Given = BTreeMap<&'static str, String>;

impl Call {
    pub(super) fn new(destination: Destination, arguments: Vec<String>) -> Call {
        Call { destination, options: Given::new(), arguments }
    }

    /// By the option's first name.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// The first of these options that was given is refused: it is one of Cassandra's that Halcyon does not have.
    pub(super) fn refuse(&self, names: &[&str]) -> Result<()> {
        match names.iter().find(|name| self.has(name)) {
            Some(name) => Failure::failed(format!("{name} is not supported by Halcyon yet")),
            None => Ok(()),
        }
    }
}

/// The options at the beginning of a line, and what is behind them.
pub(crate) fn options<'w>(
    choices: &'static [Choice],
    words: &'w [String],
) -> Result<(Given, &'w [String])> {
    let mut given = Given::new();
    let mut rest = words.iter().map(String::as_str);
    loop {
        let before = rest.clone();
        let Some((choice, value)) = rest.next().and_then(|word| find(choices, word)) else {
            return Ok((given, words.get(words.len() - before.len()..).unwrap_or_default()));
        };
        take(&mut given, choice, value, &mut rest)?;
    }
}

/// What is behind the name of a command.
pub(super) fn of_command(
    syntax: &Syntax,
    words: &[String],
    destination: Destination,
) -> Result<Call> {
    let mut call = Call::new(destination, Vec::new());
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if word == "--" {
            call.arguments.extend(words.by_ref().map(str::to_owned));
        } else if let Some((choice, value)) = find(syntax.options, word) {
            take(&mut call.options, choice, value, &mut words)?;
        } else {
            call.arguments.push(word.to_owned());
        }
    }
    let most = syntax.arguments.as_ref().map_or(0, |arguments| arguments.most);
    if let Some(rest) = call.arguments.get(most..).filter(|rest| !rest.is_empty()) {
        return unexpected(rest);
    }
    let is_missing = |choice: &&Choice| {
        choice.times == Times::Required
            && !choice.names.first().is_some_and(|name| call.options.contains_key(name))
    };
    let missing = syntax.options.iter().find(is_missing);
    if let Some(name) = missing.and_then(|choice| choice.names.first()) {
        return Failure::usage(format!("Required option '{name}' is missing"));
    }
    match syntax.arguments.as_ref().and_then(|arguments| arguments.required) {
        Some(title) if call.arguments.is_empty() => {
            Failure::usage(format!("Required parameters are missing: {title}"))
        }
        _ => Ok(call),
    }
}

/// A keyspace and a table or view, as two arguments or as one with a dot. As where Java splits it, empty parts at its end are dropped.
pub(super) fn keyspace_and_name(arguments: &[String]) -> Option<(String, String)> {
    match arguments {
        [keyspace, name] => Some((keyspace.clone(), name.clone())),
        [both] => match both.trim_end_matches('.').split('.').collect::<Vec<_>>().as_slice() {
            [keyspace, name] => Some(((*keyspace).to_owned(), (*name).to_owned())),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn unexpected<T>(words: &[String]) -> Result<T> {
    Failure::usage(format!("Found unexpected parameters: [{}]", words.join(", ")))
}

/// The option that a word is, and the value that is part of the word.
fn find<'w>(
    choices: &'static [Choice],
    word: &'w str,
) -> Option<(&'static Choice, Option<&'w str>)> {
    if let Some(choice) = choices.iter().find(|choice| choice.names.contains(&word)) {
        return Some((choice, None));
    }
    let with_value = |choice: &&Choice| choice.value.is_some();
    if let Some((name, value)) = word.split_once('=') {
        let mut found = choices.iter().filter(with_value);
        if let Some(choice) = found.find(|choice| choice.names.contains(&name)) {
            return Some((choice, Some(value)));
        }
    }
    let (name, value) = word.split_at_checked(2)?;
    let mut found = choices.iter().filter(with_value);
    found.find(|choice| choice.names.contains(&name)).map(|choice| (choice, Some(value)))
}

fn take<'w>(
    given: &mut Given,
    choice: &'static Choice,
    value: Option<&'w str>,
    words: &mut impl Iterator<Item = &'w str>,
) -> Result<()> {
    let Some(first) = choice.names.first() else { return Ok(()) };
    let value = match (choice.value, value) {
        (None, _) => String::new(),
        (Some(_), Some(value)) => value.to_owned(),
        (Some(title), None) => match words.next() {
            Some(value) => value.to_owned(),
            None => {
                return Failure::usage(format!(
                    "Required values for option '{title}' not provided"
                ));
            }
        },
    };
    given.insert(first, value);
    Ok(())
}

/// Takes the options of [`GLOBAL`] out of those that are given.
pub(crate) fn destination(given: &mut Given) -> Result<Destination> {
    let username = given.remove("-u").filter(|name| !name.is_empty());
    let mut password = given.remove("-pw").filter(|password| !password.is_empty());
    if let (Some(path), Some(username)) = (given.remove("-pwf"), &username) {
        let disk = halcyon_io::Disk::real(halcyon_io::DiskOptions::default());
        let read = halcyon_io::block_on(disk.read(path.as_ref(), PASSWORDS_MAX));
        let bytes = read.map_err(|e| Failure::Failed(e.to_string()))?;
        password = password_of(&String::from_utf8_lossy(&bytes), username);
    }
    let port = given.remove("-p").unwrap_or_else(|| "9042".to_owned());
    if port.parse::<u16>().is_err() {
        return Failure::usage(format!("For input string: \"{port}\""));
    }
    let host = given.remove("-h").unwrap_or_else(|| "127.0.0.1".to_owned());
    let encryption = EncryptionArgs {
        ssl: given.remove("--ssl").is_some(),
        truststore: given.remove("-ts").map(PathBuf::from),
        truststore_password: given.remove("-tspw"),
        keystore: given.remove("-ks").map(PathBuf::from),
        keystore_password: given.remove("-kspw"),
        no_hostname_verification: given.remove("--no-hostname-verification").is_some(),
    };
    let given = encryption.truststore.is_some() || encryption.keystore.is_some();
    if given && !encryption.ssl {
        return Failure::usage("--truststore and --keystore need --ssl");
    }
    Ok(Destination { host, port, username, password, encryption })
}

/// Far larger than any real file of passwords.
const PASSWORDS_MAX: u64 = 1 << 20;

/// Lines of a user and a password, as in JMX's file.
fn password_of(text: &str, username: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let is_it = words.next() == Some(username);
        words.next().filter(|_| is_it).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves how Cassandra splits the name of a table.
    #[test]
    fn names_of_tables() {
        let split = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            keyspace_and_name(&words).map(|(keyspace, name)| format!("{keyspace}|{name}"))
        };
        for (words, expected) in [
            (&["k.s", "t"][..], Some("k.s|t")),
            (&["ks.t"], Some("ks|t")),
            (&["ks.t.."], Some("ks|t")),
            (&[".t"], Some("|t")),
            (&["ks."], None),
            (&["ks"], None),
            (&["a.b.c"], None),
            (&[".."], None),
            (&["a", "b", "c"], None),
            (&[], None),
        ] {
            assert_eq!(split(words).as_deref(), expected, "{words:?}");
        }
    }

    /// Proves that the password of the user is found.
    #[test]
    fn password_files() {
        assert_eq!(password_of("a x\nb  y z\n", "b").as_deref(), Some("y"));
        assert_eq!(password_of("a x\nb\n", "b"), None);
    }
}
