//! The page: CPU by request of each protection, and reads beside logins.

use halcyon_oracle::Result;
use serde_json::json;

use super::secured::Access;
use super::storm;
use crate::page::Page;
use crate::record::{Contender, Record, Target};

pub(super) const READS: &str = "reads";
pub(super) const WRITES: &str = "durable writes";
pub(super) const AT_REST: &str = "reads at rest";
pub(super) const BESIDE: &str = "reads beside logins and password changes";
const CPU: &str = "cpu_us_by_request";
/// By the open server of the same peer.
const BY_OPEN: &str = "cpu_by_open";
const BY_REST: &str = "p99_by_rest";

pub(super) fn page(record: &mut Record) -> Result<Page> {
    record.derive(BY_OPEN, |rounds| {
        let open = Contender::new(&rounds.who.peer, Access::Open.mode());
        let of_open = rounds.record.median(rounds.heading, &open, CPU)?;
        Some(rounds.median(CPU)? / of_open)
    });
    record.derive(BY_REST, |rounds| {
        let rest = rounds.record.median(AT_REST, rounds.who, "p99_us")?;
        (rounds.heading == BESIDE).then_some(rounds.median("p99_us")? / rest)
    });
    let names = json!({
        "requests": [READS, WRITES],
        "beside": [AT_REST, BESIDE],
        "storm": storm::HEADING,
    });
    let template = include_str!("../../access/page.md");
    Ok(Page { template, targets: targets(record), names, ..Page::default() })
}

fn targets(record: &Record) -> Vec<Target> {
    let of = |peer: &str, access: Access, heading: &str, key: &str| {
        record.median(heading, &Contender::new(peer, access.mode()), key)
    };
    let ours =
        |access, heading: &&'static str| Some((*heading, of("halcyon", access, heading, BY_OPEN)?));
    let password: Vec<_> =
        [READS, WRITES].iter().filter_map(|heading| ours(Access::Password, heading)).collect();
    let by_theirs = |heading: &&'static str| {
        let (ours, theirs) =
            (ours(Access::Tls, heading)?.1, of("5.0.9", Access::Tls, heading, BY_OPEN)?);
        Some((*heading, ours / theirs))
    };
    let tls: Vec<_> = [READS, WRITES].iter().filter_map(by_theirs).collect();
    let beside: Vec<_> = of("halcyon", Access::Password, BESIDE, BY_REST)
        .map(|ratio| ("reads", ratio))
        .into_iter()
        .collect();
    let cpu = "Halcyon: server CPU of a request with passwords and permissions, by that without";
    let sealed = "what TLS adds to the server CPU of a request, Halcyon's factor by Cassandra's";
    let logins = "Halcyon: p99 beside logins and password changes, by that at rest";
    [
        Target::at_most(cpu, 1.03, &password),
        Target::at_most(sealed, 1.0, &tls),
        Target::at_most(logins, 1.5, &beside),
    ]
    .into_iter()
    .flatten()
    .collect()
}
