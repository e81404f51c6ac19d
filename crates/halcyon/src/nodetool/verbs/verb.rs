//! An entry of the list of commands, and what several entries share.

use std::future::Future;
use std::pin::Pin;

use super::super::arguments::{Arguments, Call, Choice, Syntax};
use super::super::failure::{Failure, Result};
use super::super::node::Node;

pub(in crate::nodetool) type Running<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

pub(in crate::nodetool) type Run =
    for<'a> fn(&'a Call, &'a mut Node, &'a mut String) -> Running<'a>;

pub(in crate::nodetool) struct Verb {
    pub(in crate::nodetool) syntax: Syntax,
    pub(in crate::nodetool) work: Work,
}

pub(in crate::nodetool) enum Work {
    Run(Run),
    /// Why this node cannot do it, and what to do instead.
    Refuse(&'static str),
}

impl Verb {
    pub(in crate::nodetool) fn refusal<T>(&self, why: &str) -> Result<T> {
        Failure::failed(format!("{}: {why}", self.syntax.name))
    }
}

pub(super) const fn verb(
    name: &'static str,
    about: &'static str,
    options: &'static [Choice],
    arguments: Option<Arguments>,
    run: Run,
) -> Verb {
    Verb { syntax: Syntax { name, about, options, arguments }, work: Work::Run(run) }
}

pub(super) const fn refused(
    name: &'static str,
    about: &'static str,
    options: &'static [Choice],
    arguments: Option<Arguments>,
    why: &'static str,
) -> Verb {
    Verb { syntax: Syntax { name, about, options, arguments }, work: Work::Refuse(why) }
}

pub(super) const fn some(usage: &'static str, about: &'static str) -> Option<Arguments> {
    Some(Arguments { usage, about, most: usize::MAX, required: None })
}

pub(super) const fn one(usage: &'static str, about: &'static str) -> Option<Arguments> {
    Some(Arguments { usage, about, most: 1, required: None })
}

/// Exactly one; without it `title` is missing.
pub(super) const fn required(
    usage: &'static str,
    about: &'static str,
    title: &'static str,
) -> Option<Arguments> {
    Some(Arguments { usage, about, most: 1, required: Some(title) })
}

pub(super) const TABLES: Option<Arguments> =
    some("[<keyspace> <tables>...]", "The keyspace followed by one or many tables");
pub(super) const FORMAT: Choice =
    Choice::value(&["-F", "--format"], "format", "Output format (json, yaml)");
pub(super) const HUMAN: Choice = Choice::flag(
    &["-H", "--human-readable"],
    "Display bytes in human readable form, i.e. KiB, MiB, GiB, TiB",
);
pub(super) const RESOLVE: Choice =
    Choice::flag(&["-r", "--resolve-ip"], "Show node domain names instead of IPs");
