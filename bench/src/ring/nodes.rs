//! Nodes of Cassandra that are one ring, each in a cage of its own, with the plug-in's jar or without. The first one compacts.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use halcyon_oracle::{Result, Version};

use crate::cage::Cage;
use crate::connection::{self, create_replicated};
use crate::dataset::{DataSet, KEYSPACE};
use crate::jmx::Jmx;
use crate::keys::Keys;
use crate::process::CpuOf;
use crate::programs::Programs;
use crate::record::Contender;
use crate::restore::{empty, fill, wait_until};
use crate::server::{Plan, Server};

const PLUGIN: &str = "halcyon.cassandra:type=Halcyon";
const STORAGE: &str = "org.apache.cassandra.db:type=StorageService";
/// Collectors whose MBeans count pauses.
const COLLECTORS: [&str; 2] = ["G1 Young Generation", "G1 Old Generation"];

/// About its default for such a heap, which the oracle does without; as in a datacentre, a coordinator that has a row reads it itself,
/// while replicas answer as fast; and an empty ring has nothing to stream to a node that joins.
const SETTINGS: [&str; 3] =
    ["key_cache_size: 50MiB", "endpoint_snitch: RackInferringSnitch", "auto_bootstrap: false"];

/// Cassandra as it is, and with the jar: in the order of their turns.
pub(super) fn contenders() -> [Contender; 2] {
    let release = Version::V5.name();
    [
        Contender::new(release, "alone"),
        Contender::new("halcyon", &format!("in Cassandra {release}")),
    ]
}

/// What nodes are made of.
pub(super) struct Making<'a> {
    pub(super) home: &'a Path,
    pub(super) jar: &'a Path,
    pub(super) binary: &'a Path,
    /// Of the plug-in, `name=value`.
    pub(super) options: &'a [String],
    /// Bytes for each node and its child; none: no cage.
    pub(super) memory: Option<u64>,
    pub(super) heap: &'a str,
}

/// The fields are dropped in this order: a question under way ends with the server, and the cage is empty then.
struct Member {
    server: Server,
    jmx: Jmx,
    cage: Option<Cage>,
}

pub(super) struct Ring {
    members: Vec<Member>,
    has_jar: bool,
}

/// Pauses of a node's collectors since its start.
#[derive(Clone, Copy)]
pub(super) struct Pauses {
    pub(super) count: f64,
    pub(super) milliseconds: f64,
}

impl Making<'_> {
    /// Options of the JVM that put the jar into a node.
    fn agent(&self) -> String {
        let given = self.options.iter().map(|option| format!(" -Dhalcyon.{option}"));
        let (jar, binary) = (self.jar.display(), self.binary.display());
        format!("-javaagent:{jar} -Dhalcyon.binary={binary}{}", given.collect::<String>())
    }

    fn member(
        &self,
        programs: &Programs,
        who: &Contender,
        number: u8,
        seed: Option<SocketAddr>,
    ) -> Result<Member> {
        let slug = format!("ring-{}-{number}", who.peer);
        let cage = self.memory.map(|bytes| Cage::make(&slug, bytes)).transpose()?;
        let dir = self.home.join("nodes").join(slug);
        let plan = Plan::cassandra(Version::V5, &who.mode, dir)
            .compacting(Version::V5, "buffered")
            .set_all(&SETTINGS)
            .heap(self.heap)
            .jvm(if who.is_halcyon() { self.agent() } else { String::new() })
            .member(Ipv4Addr::new(127, 0, 0, number), seed)
            .cage(cage.as_ref());
        let server = Server::start(programs, &plan)?;
        let jmx = server.jmx()?;
        Ok(Member { server, jmx, cage })
    }
}

impl Ring {
    /// Nodes that all see each other.
    pub(super) fn start(
        making: &Making<'_>,
        who: &Contender,
        nodes: u8,
        programs: &Programs,
    ) -> Result<Ring> {
        eprintln!("bench: starting {} on {nodes}", who.name());
        let mut members: Vec<Member> = Vec::new();
        for number in 1..=nodes {
            let seed = members.first().map(|first| first.server.storage()).transpose()?;
            members.push(making.member(programs, who, number, seed)?);
        }
        for member in &mut members {
            let mut seen = || member.jmx.get(STORAGE, "LiveNodes").unwrap_or_default();
            wait_until("all nodes see each other", || {
                seen().split(',').count() == usize::from(nodes)
            })?;
            if who.is_halcyon() {
                let mut enabled = || member.jmx.get(PLUGIN, "ForAllTables").unwrap_or_default();
                wait_until("the plug-in has all tables", || enabled() == "true")?;
            }
        }
        let ring = Ring { members, has_jar: who.is_halcyon() };
        create_replicated(&mut connection::to(ring.compacting().address())?, KEYSPACE, nodes)?;
        Ok(ring)
    }

    fn first(&mut self) -> Result<&mut Member> {
        Ok(self.members.first_mut().ok_or("a ring without nodes")?)
    }

    /// The node that compacts.
    pub(super) fn compacting(&self) -> &Server {
        &self.members[0].server
    }

    /// Where clients find the nodes.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.server.address()).collect()
    }

    /// Page cache, and everything, in the cage of the node that compacts.
    pub(super) fn holds(&self) -> Option<(u64, u64)> {
        self.members.first()?.cage.as_ref()?.holds().ok()
    }

    /// Of all nodes, with their children.
    pub(super) fn cpu_seconds(&self) -> f64 {
        self.members.iter().map(|member| CpuOf::Family(member.server.pid).seconds()).sum()
    }

    /// Gives each node its copy of a set as a table's only content, after a compaction of half of it where it will be compacted, so that
    /// the JVM's compiler has seen one.
    pub(super) fn give(&mut self, copies: &[DataSet]) -> Result<Vec<PathBuf>> {
        let set = copies.first().ok_or("no set")?;
        connection::to(self.compacting().address())?.query(&set.schema())?;
        for member in &self.members {
            let keyspace = member.server.dir.join("data/data").join(KEYSPACE);
            let prefix = format!("{}-", set.table());
            let is_table = |name: String| name.starts_with(&prefix);
            wait_until("all nodes have the table", || {
                let mut entries = fs::read_dir(&keyspace).into_iter().flatten().flatten();
                entries.any(|entry| is_table(entry.file_name().to_string_lossy().into_owned()))
            })?;
        }
        let Member { server, jmx, .. } = self.first()?;
        fill(server, jmx, set, Some(set.sstables() / 2))?;
        self.compact(set)?;
        empty(self.compacting(), set)?;
        let members = self.members.iter_mut().zip(copies);
        members.map(|(Member { server, jmx, .. }, set)| fill(server, jmx, set, None)).collect()
    }

    /// A major compaction, from its begin to its end.
    pub(super) fn compact(&mut self, set: &DataSet) -> Result<()> {
        self.first()?.jmx.ask(&["compact", KEYSPACE, &set.table()]).map(drop)
    }

    pub(super) fn empty(&self, set: &DataSet) -> Result<()> {
        empty(self.compacting(), set)
    }

    pub(super) fn pauses(&mut self) -> Result<Pauses> {
        let jmx = &mut self.first()?.jmx;
        let mut sum = |attribute: &str| -> Result<f64> {
            let mut sum = 0.0;
            for collector in COLLECTORS {
                let mbean = format!("java.lang:type=GarbageCollector,name={collector}");
                sum += jmx.get(&mbean, attribute)?.parse::<f64>()?;
            }
            Ok(sum)
        };
        Ok(Pauses { count: sum("CollectionCount")?, milliseconds: sum("CollectionTime")? })
    }

    /// Compactions of a set that Cassandra's own history ascribes to Halcyon, and to Cassandra.
    pub(super) fn history(&self, set: &DataSet) -> Result<(usize, usize)> {
        const HISTORY: &str = "SELECT columnfamily_name, compaction_properties['compacted_by'] \
                               FROM system.compaction_history";
        let page = connection::to(self.compacting().address())?.page(HISTORY)?;
        let is = |cell: Option<&Option<Vec<u8>>>, text: &str| {
            cell.and_then(Option::as_deref) == Some(text.as_bytes())
        };
        let of_set = page.rows.iter().filter(|row| is(row.first(), &set.table()));
        let (ours, theirs): (Vec<_>, Vec<_>) = of_set.partition(|row| is(row.get(1), "halcyon"));
        Ok((ours.len(), theirs.len()))
    }

    /// Fails unless every compaction of a set so far was done by who is to be measured.
    pub(super) fn check_who_compacted(&mut self, set: &DataSet) -> Result<()> {
        let (ours, theirs) = self.history(set)?;
        let (expected, others) = if self.has_jar { (ours, theirs) } else { (theirs, ours) };
        if expected == 0 || others > 0 {
            return Err(format!("{ours} compactions by Halcyon, {theirs} by Cassandra").into());
        }
        if !self.has_jar {
            return Ok(());
        }
        let jmx = &mut self.first()?.jmx;
        let [completed, failed] = ["Completed", "Failed"].map(|name| jmx.get(PLUGIN, name));
        let (completed, failed) = (completed?.parse::<usize>()?, failed?);
        if completed < ours || failed != "0" {
            return Err(format!("the plug-in: {completed} completed, {failed} failed").into());
        }
        Ok(())
    }

    /// Some hot rows and some others, as the node that compacts has them.
    pub(super) fn rows(&self, set: &DataSet, keys: Keys) -> Result<Vec<Vec<Option<Vec<u8>>>>> {
        const OF_EACH: u64 = 200;
        let mut connection = connection::to(self.compacting().address())?;
        let others = (keys.partitions - keys.hot) / OF_EACH;
        let hot = 0..keys.hot.min(OF_EACH);
        let mut found = Vec::new();
        for key in hot.chain((0..OF_EACH).map(|number| keys.hot + number * others)) {
            let table = set.table();
            let page = connection
                .page(&format!("SELECT * FROM {KEYSPACE}.{table} WHERE device = {key}"))?;
            found.extend(page.rows);
        }
        if found.is_empty() { Err("no rows".into()) } else { Ok(found) }
    }

    /// Ends all nodes, and their files.
    pub(super) fn stop(self) {
        self.members.into_iter().for_each(|Member { server, jmx, cage }| {
            if let Err(error) = server.stop() {
                eprintln!("bench: {error}");
            }
            drop((jmx, cage));
        });
    }
}
