//! Turns the logs on and off: at the start, and by `nodetool` (`StorageService.enableAuditLog`, `enableFullQueryLogger`).
//!
//! What the options of a command do not name is as in the file.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use halcyon_binlog::record::{ENDING, HEADER};
use halcyon_binlog::{BinLog, Counts, Naming, Options, Severity, Tell};
use halcyon_io::{append, compute};
use halcyon_query::{Error, Result};

use super::RequestLogs;
use super::audit::AuditLog;
use super::options::{AuditLogger, AuditOptions, RequestLogOptions, sanitised, set_log_option};
use crate::command::LogOptions;
use crate::log::Log;

const FULL_QUERY_LOG: Naming = Naming::Dated { ending: ENDING, header: &HEADER };

/// A log as virtual tables show it.
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    pub(crate) enabled: bool,
    pub(crate) counts: Counts,
    /// By their names in the file.
    pub(crate) options: Vec<(String, String)>,
}

/// One change at a time.
struct Change<'a>(&'a RequestLogs);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.on.store(self.0.audit.load().is_some() || self.0.full.load().is_some(), Relaxed);
        self.0.changing.store(false, Relaxed);
    }
}

fn invalid<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(why.into()))
}

impl RequestLogs {
    /// Starts what the file enables. Blocks for the files' sake.
    pub(crate) fn start(
        options: RequestLogOptions,
        host: String,
        log: &Log,
    ) -> Result<RequestLogs, String> {
        let logs = RequestLogs {
            on: false.into(),
            audit: None.into(),
            full: None.into(),
            changing: false.into(),
            options,
            host,
            log: log.clone(),
        };
        let audit = &logs.options.audit;
        if audit.enabled {
            log.say(format_args!("Audit logging is enabled."));
            let directory = audit.log.directory.display();
            let started = AuditLog::start(audit.clone(), logs.tell()).map_err(|e| {
                format!(
                    "audit_logging_options: cannot write to {directory}: {e}; set audit_logs_dir"
                )
            })?;
            logs.audit.store(Some(Arc::new(started)));
            logs.on.store(true, Relaxed);
        }
        Ok(logs)
    }

    fn tell(&self) -> Tell {
        let log = self.log.clone();
        Arc::new(move |severity, text| match severity {
            Severity::Info => log.say(format_args!("{text}")),
            Severity::Warning => log.warning(format_args!("{text}")),
            Severity::Error => log.error(format_args!("{text}")),
        })
    }

    fn change(&self) -> Result<Change<'_>> {
        match self.changing.swap(true, Relaxed) {
            false => Ok(Change(self)),
            true => invalid("another client changes this log now: try again"),
        }
    }

    pub(crate) async fn enable_audit(&self, given: &LogOptions) -> Result<()> {
        let change = self.change()?;
        let mut options = AuditOptions { enabled: true, ..self.options.audit.clone() };
        for (name, text) in &given.options {
            match name.as_str() {
                "logger" => match AuditLogger::named(text.trim()) {
                    Some(logger) => options.logger = logger,
                    None => return invalid(format!("Unable to find audit log class '{text}'")),
                },
                "archive_command" => {
                    return Err(Error::Configuration(
                        "Can't enable audit log archiving via nodetool unless audit_logging_options.allow_nodetool_archive_command is set to true"
                            .to_owned(),
                    ));
                }
                _ => match options.lists.get_mut(name.as_str()) {
                    Some(list) if name.ends_with("categories") => {
                        *list = sanitised(text).to_uppercase();
                    }
                    Some(list) => *list = sanitised(text),
                    None => set(&mut options.log, name, text)?,
                },
            }
        }
        if let Err(category) = options.lists.check() {
            // What nodetool shows of it is the cause.
            let class = "org.apache.cassandra.audit.AuditLogEntryCategory";
            return Err(Error::Configuration(format!("No enum constant {class}.{category}")));
        }
        options.logger.check().map_err(Error::Configuration)?;
        let before = self.audit.load_full();
        let same = before.as_ref().filter(|log| log.options.logger == options.logger);
        // Cassandra then changes the filter alone.
        let started = match same {
            Some(running) => running.filtered(&options),
            None => {
                let (tell, given) = (self.tell(), options.clone());
                let started = compute(move || AuditLog::start(given, tell)).await;
                opened(started, &options.log)?
            }
        };
        let is_same = same.is_some();
        self.audit.store(Some(Arc::new(started)));
        if let Some(log) = before.as_ref().and_then(|log| log.log()).filter(|_| !is_same) {
            log.stop().await;
        }
        drop(change);
        self.log.say(format_args!("AuditLog is enabled with {}", options.logger.name()));
        Ok(())
    }

    pub(crate) async fn disable_audit(&self) -> Result<()> {
        let change = self.change()?;
        let before = self.audit.swap(None);
        if let Some(log) = before.as_ref().and_then(|log| log.log()) {
            log.stop().await;
        }
        drop(change);
        self.log.say(format_args!("Auditlog is disabled"));
        Ok(())
    }

    pub(crate) async fn enable_full(&self, given: &LogOptions) -> Result<()> {
        let change = self.change()?;
        let mut options = self.options.full_query_log.clone();
        for (name, text) in &given.options {
            match name.as_str() {
                "path" => options.directory = PathBuf::from(text),
                "archive_command" => {
                    return Err(Error::Configuration(
                        "Can't enable full query log archiving via nodetool unless full_query_logging_options.allow_nodetool_archive_command is set to true"
                            .to_owned(),
                    ));
                }
                _ => set(&mut options, name, text)?,
            }
        }
        if self.full.load().is_some() {
            return invalid("Binlog is already configured");
        }
        if options.directory.as_os_str().is_empty() {
            return invalid("you might have forgotten to specify a directory to save logs");
        }
        let (tell, given) = (self.tell(), options.clone());
        let start = move || BinLog::start("full-query-log", &given, FULL_QUERY_LOG, tell);
        let started = opened(compute(start).await, &options)?;
        self.full.store(Some(Arc::new(started)));
        drop(change);
        self.log.say(format_args!("full query log is enabled: {}", options.directory.display()));
        Ok(())
    }

    pub(crate) async fn disable_full(&self) -> Result<()> {
        let change = self.change()?;
        match self.full.swap(None) {
            Some(log) => {
                let directory = log.options().directory.display();
                self.log.say(format_args!("Stopping full query logging to {directory}"));
                log.stop().await;
            }
            None => self.log.say(format_args!("Full query log already stopped")),
        }
        drop(change);
        Ok(())
    }

    /// Stops the log and deletes its files. Cassandra deletes whatever the directories hold; here only files of the log are.
    pub(crate) async fn reset_full(&self) -> Result<()> {
        let change = self.change()?;
        self.log.say(format_args!("Reset (and deactivation) of full query log requested."));
        let mut directories = vec![self.options.full_query_log.directory.clone()];
        if let Some(log) = self.full.swap(None) {
            directories.push(log.options().directory.clone());
            log.stop().await;
        }
        directories.retain(|directory| !directory.as_os_str().is_empty());
        directories.dedup();
        let cleaned =
            compute(move || directories.iter().try_for_each(|folder| clean(folder))).await;
        drop(change);
        let failed = |e: String| Error::Server(format!("the full query log is not deleted: {e}"));
        cleaned.map_err(|gone| failed(gone.to_string()))?.map_err(|e| failed(e.to_string()))
    }

    /// Ends both, after what waits is written.
    pub(crate) async fn stop(&self) {
        self.on.store(false, Relaxed);
        if let Some(log) = self.audit.swap(None).as_ref().and_then(|log| log.log()) {
            log.stop().await;
        }
        if let Some(log) = self.full.swap(None) {
            log.stop().await;
        }
    }

    pub(crate) fn shown(&self) -> [Shown; 2] {
        let audit = self.audit.load_full();
        let counts = |log: Option<&BinLog>| log.map(BinLog::counts).unwrap_or_default();
        let running = audit.as_ref().and_then(|log| log.log());
        // NoOpAuditLogger says of itself that it is off, and then the file's options are shown.
        let of_audit = match audit.as_ref().filter(|_| running.is_some()) {
            Some(log) => {
                let lists = log.filter().lists().clone();
                shown_audit(&AuditOptions { lists, ..log.options.clone() })
            }
            None => shown_audit(&self.options.audit),
        };
        let full = self.full.load_full();
        let options = full.as_ref().map_or(&self.options.full_query_log, |log| log.options());
        let mut of_full = vec![("log_dir".to_owned(), options.directory.display().to_string())];
        of_full.extend(shown_log(options));
        [
            Shown {
                name: "audit_log",
                enabled: running.is_some(),
                counts: counts(running),
                options: of_audit,
            },
            Shown {
                name: "full_query_log",
                enabled: full.is_some(),
                counts: counts(full.as_deref()),
                options: of_full,
            },
        ]
    }
}

/// Deletes the files of a full query log.
fn clean(folder: &std::path::Path) -> io::Result<()> {
    let files = match append::files(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        files => files?,
    };
    let is_of_log = |found: &append::Found| found.path.extension().is_some_and(|e| e == ENDING);
    files.iter().filter(|found| is_of_log(found)).try_for_each(|found| append::remove(&found.path))
}

fn opened<T>(started: Result<io::Result<T>, halcyon_io::JobLost>, options: &Options) -> Result<T> {
    let started = started.map_err(|gone| Error::Server(gone.to_string()))?;
    let directory = options.directory.display();
    started.map_err(|e| Error::Invalid(format!("cannot write to {directory}: {e}")))
}

fn set(options: &mut Options, name: &str, text: &str) -> Result<()> {
    match set_log_option(options, name, text) {
        Some(set) => set.map_err(Error::Invalid),
        None => invalid(format!("there is no option {name}")),
    }
}

fn shown_log(options: &Options) -> Vec<(String, String)> {
    let pairs = [
        ("archive_command", options.archive_command.clone()),
        ("roll_cycle", options.roll_cycle.name().to_owned()),
        ("block", options.block.to_string()),
        ("max_log_size", options.max_log_size.to_string()),
        ("max_queue_weight", options.max_queue_weight.to_string()),
        ("max_archive_retries", options.max_archive_retries.to_string()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

fn shown_audit(options: &AuditOptions) -> Vec<(String, String)> {
    let lists = &options.lists;
    let mut shown = vec![
        ("logger".to_owned(), options.logger.name().to_owned()),
        ("audit_logs_dir".to_owned(), options.log.directory.display().to_string()),
    ];
    shown.extend(shown_log(&options.log));
    let pairs = [
        ("included_keyspaces", &lists.included_keyspaces),
        ("excluded_keyspaces", &lists.excluded_keyspaces),
        ("included_categories", &lists.included_categories),
        ("excluded_categories", &lists.excluded_categories),
        ("included_users", &lists.included_users),
        ("excluded_users", &lists.excluded_users),
    ];
    shown.extend(pairs.map(|(name, list)| (name.to_owned(), list.clone())));
    shown
}
