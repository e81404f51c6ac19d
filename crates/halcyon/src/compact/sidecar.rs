//! The process that speaks JMX: `plugin/cassandra/halcyon/cassandra/Sidecar.java`, whose prologue has the messages.
//!
//! It lives as long as questions come: a JVM costs more to start than a question does.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use halcyon_io::child::{self, Child, Program};
use halcyon_model::Cursor;
use halcyon_model::bytes::Put;

use crate::failure::{Failure, Result};
use crate::plugin;

/// A strategy that is set looks at all SSTables of its table.
const ANSWER: Duration = Duration::from_secs(600);
/// Milliseconds after which one call of the node's counts as lost.
const CALL: &str = "-Dsun.rmi.transport.tcp.responseTimeout=120000";
const CLASS: &str = "halcyon.cassandra.Sidecar";

/// What is asked of a node.
pub(super) struct Request {
    /// `set`, `keep` or `remove`.
    pub(super) action: &'static str,
    pub(super) dry_run: bool,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: String,
    /// Comma-separated tables and keyspaces; empty: all.
    pub(super) tables: String,
    /// Properties of its JVM.
    pub(super) properties: Vec<(String, String)>,
}

impl Request {
    pub(super) fn node(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn message(&self) -> Vec<u8> {
        let port = self.port.to_string();
        let dry_run = self.dry_run.to_string();
        let fixed =
            [self.action, &dry_run, &self.host, &port, &self.user, &self.password, &self.tables];
        let properties = self.properties.iter().flat_map(|(name, value)| [name, value]);
        let mut message = Vec::new();
        for text in fixed.into_iter().chain(properties.map(String::as_str)) {
            message.put_ibytes(text.as_bytes());
        }
        message
    }
}

/// What a node answers.
pub(super) struct Report {
    pub(super) release: String,
    pub(super) service: String,
    pub(super) is_enabled: bool,
    pub(super) tables: Vec<TableReport>,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct TableReport {
    pub(super) name: String,
    /// `set`; `kept`: it was so before; `left`: it cannot be; `unknown`.
    pub(super) action: String,
    pub(super) before: String,
    pub(super) after: String,
    pub(super) reason: String,
}

/// Why there is no report.
pub(super) enum Unanswered {
    /// The node may answer later.
    Away(String),
    /// A wrong password; or a right one, while a node that starts cannot read its roles yet.
    Denied(String),
    Failed(Failure),
}

pub(super) type Answer = std::result::Result<Report, Unanswered>;

pub(super) struct Sidecar {
    java: PathBuf,
    jar: PathBuf,
    child: Option<Child>,
}

impl Sidecar {
    pub(super) fn new(jar: PathBuf) -> Result<Sidecar> {
        let java = child::find_program("JAVA_HOME", "java").ok_or_else(|| {
            Failure::unreadable(
                "JMX needs Java 11 or later, and there is no java in JAVA_HOME or PATH: install a JRE, or set JAVA_HOME"
                    .to_owned(),
            )
        })?;
        Ok(Sidecar { java, jar, child: None })
    }

    pub(super) fn ask(&mut self, request: &Request) -> Answer {
        let message = match self.exchange(&request.message()) {
            Ok(message) => message,
            Err(error) => {
                // The next question starts another.
                self.child = None;
                return Err(match error.kind() {
                    ErrorKind::TimedOut => {
                        Unanswered::Away(format!("{}: it does not answer", request.node()))
                    }
                    _ => Unanswered::Failed(self.did_not_run(&error)),
                });
            }
        };
        let told = texts(&message).and_then(|texts| report(texts, &request.node()));
        told.unwrap_or_else(|| {
            let what = "another release's, for its answer is not understood";
            Err(Unanswered::Failed(Failure::of_file(&self.jar, what)))
        })
    }

    fn exchange(&mut self, request: &[u8]) -> std::io::Result<Vec<u8>> {
        let child = match &mut self.child {
            Some(child) => child,
            None => self.child.insert(start(&self.java, &self.jar)?),
        };
        let until = child::deadline(ANSWER);
        child.send(request, until)?;
        child.receive(until)
    }

    fn did_not_run(&self, error: &std::io::Error) -> Failure {
        Failure::unreadable(format!(
            "{} does not run {CLASS} of {} ({error}): it takes Java 11 or later, and the jar of this release",
            self.java.display(),
            self.jar.display()
        ))
    }
}

fn start(java: &Path, jar: &Path) -> std::io::Result<Child> {
    let jar = jar.display().to_string();
    let arguments = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", CALL, "-cp", &jar];
    let arguments = arguments.into_iter().chain([CLASS]).map(str::to_owned);
    let arguments: Vec<String> = arguments.collect();
    Program { path: java, arguments: &arguments, confined: None }.start()
}

fn texts(message: &[u8]) -> Option<Vec<String>> {
    let mut cursor = Cursor::new(message);
    let mut texts = Vec::new();
    while cursor.remaining() > 0 {
        texts.push(String::from_utf8_lossy(cursor.ibytes().ok()?).into_owned());
    }
    Some(texts)
}

/// `None` if it is not an answer.
fn report(texts: Vec<String>, node: &str) -> Option<Answer> {
    let failed = |failure: Failure| Some(Err(Unanswered::Failed(failure)));
    match texts.as_slice() {
        [kind, why] if kind == "away" => Some(Err(Unanswered::Away(format!("{node}: {why}")))),
        [kind, why] if kind == "denied" => Some(Err(Unanswered::Denied(format!("{node}: {why}")))),
        [kind, found] if kind == "release" => {
            failed(Failure::usage(format!("{node}: {}", plugin::too_old(found))))
        }
        [kind, why] if kind == "unknown" => failed(Failure::usage(format!("{node}: {why}"))),
        [kind, why] if kind == "refused" => failed(Failure::unreadable(format!("{node}: {why}"))),
        [kind, release, service, enabled, tables @ ..] if kind == "done" => {
            let tables = tables.chunks(5).map(|of| match of {
                [name, action, before, after, reason] => Some(TableReport {
                    name: name.clone(),
                    action: action.clone(),
                    before: before.clone(),
                    after: after.clone(),
                    reason: reason.clone(),
                }),
                _ => None,
            });
            Some(Ok(Report {
                release: release.clone(),
                service: service.clone(),
                is_enabled: enabled == "true",
                tables: tables.collect::<Option<_>>()?,
            }))
        }
        _ => None,
    }
}
