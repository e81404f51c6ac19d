//! A server in its cage, with the set's SSTables as its table: started, given them, told to compact.

use std::fs;
use std::path::{Path, PathBuf};

use halcyon_oracle::Result;

use super::modes::Mode;
use crate::cage::Cage;
use crate::dataset::{DataSet, KEYSPACE};
use crate::jmx::Jmx;
use crate::major;
use crate::programs::Programs;
use crate::restore::{create, replace, restore};
use crate::server::Server;

/// What a subject is made of.
pub(super) struct Making<'a> {
    pub(super) programs: &'a Programs,
    pub(super) set: &'a DataSet,
    pub(super) home: &'a Path,
    /// Bytes for everything; none: no cage.
    pub(super) memory: Option<u64>,
    pub(super) heap: &'a str,
}

/// The fields are dropped in this order: a question under way ends with the server, and the cage is empty then.
pub(super) struct Subject<'a> {
    making: &'a Making<'a>,
    mode: Mode,
    server: Option<Server>,
    jmx: Option<Jmx>,
    cage: Option<Cage>,
}

impl<'a> Subject<'a> {
    pub(super) fn start(making: &'a Making<'a>, mode: &Mode) -> Result<Subject<'a>> {
        let cage = making.memory.map(|bytes| Cage::make(&mode.slug(), bytes)).transpose()?;
        let mut subject = Subject { making, mode: mode.clone(), server: None, jmx: None, cage };
        match mode.version {
            None => subject.start_halcyon()?,
            Some(_) => subject.start_cassandra()?,
        }
        Ok(subject)
    }

    pub(super) fn server(&self) -> Result<&Server> {
        Ok(self.server.as_ref().ok_or("the server is not there")?)
    }

    /// With its keyspace.
    pub(super) fn table(&self) -> String {
        format!("{KEYSPACE}.{}", self.making.set.table())
    }

    /// Page cache, and everything, in the cage.
    pub(super) fn holds(&self) -> Option<(u64, u64)> {
        self.cage.as_ref()?.holds().ok()
    }

    /// Uncompressed bytes of the set.
    pub(super) fn data_bytes(&self) -> u64 {
        self.making.set.data_bytes()
    }

    fn dir(&self) -> PathBuf {
        self.making.home.join(self.mode.slug())
    }

    /// Twice: the table has to be there before its files.
    fn start_halcyon(&mut self) -> Result<()> {
        let dir = self.dir();
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        let server = Server::start(self.making.programs, &self.mode.plan(dir))?;
        create(server.port, self.making.set)?;
        server.stop()?;
        self.halcyon_with_set(None)
    }

    /// Starts it on the set, and nothing else.
    fn halcyon_with_set(&mut self, throttle: Option<u64>) -> Result<()> {
        if let Some(server) = self.server.take() {
            server.stop()?;
        }
        let dir = self.dir();
        replace(&dir, self.making.set)?;
        let mut mode = self.mode.clone();
        if let Some(mib) = throttle {
            mode.settings.retain(|line| !line.starts_with("compaction_throughput"));
            mode.settings.push(format!("compaction_throughput: {mib}MiB/s"));
        }
        let plan = mode.plan(dir).cage(self.cage.as_ref());
        self.server = Some(Server::start(self.making.programs, &plan)?);
        Ok(())
    }

    fn start_cassandra(&mut self) -> Result<()> {
        let plan = self.mode.plan(self.dir()).heap(self.making.heap).cage(self.cage.as_ref());
        let server = Server::start(self.making.programs, &plan)?;
        create(server.port, self.making.set)?;
        self.jmx = Some(server.jmx()?);
        self.server = Some(server);
        self.restore(None)
    }

    /// Gives the set to Cassandra again: of its first SSTables, if a number is given.
    fn restore(&mut self, sstables: Option<u32>) -> Result<()> {
        let server = self.server.as_ref().ok_or("the server is not there")?;
        let jmx = self.jmx.as_mut().ok_or("no JMX")?;
        restore(server, jmx, self.making.set, sstables).map(drop)
    }

    /// The set as it was before a compaction, unknown to all caches, and from now on a throttle, if one is given.
    pub(super) fn again(&mut self, throttle: Option<u64>) -> Result<()> {
        if self.mode.version.is_none() {
            return self.halcyon_with_set(throttle);
        }
        self.restore(None)?;
        let Some(mib) = throttle else { return Ok(()) };
        self.server()?.nodetool(&["setcompactionthroughput", &mib.to_string()])
    }

    /// A compaction of some of the set, so that a JVM's compiler has seen one.
    pub(super) fn rehearse(&mut self, sstables: u32) -> Result<()> {
        if self.mode.version.is_none() {
            return Ok(());
        }
        self.restore(Some(sstables))?;
        self.compact()?;
        self.restore(None)
    }

    /// A major compaction, from its begin to its end.
    pub(super) fn compact(&mut self) -> Result<()> {
        let table = self.making.set.table();
        if let Some(jmx) = &mut self.jmx {
            return jmx.ask(&["compact", KEYSPACE, &table]).map(drop);
        }
        major::run(self.server()?.port, KEYSPACE, &table)
    }

    /// Begins a major compaction and does not wait for it: the server is stopped in the middle of it.
    pub(super) fn begin(&mut self) -> Result<()> {
        let table = self.making.set.table();
        if let Some(jmx) = &mut self.jmx {
            return jmx.tell(&["compact", KEYSPACE, &table]);
        }
        major::begin(self.server()?.port, KEYSPACE, &table)
    }

    /// Ends it, and its files.
    pub(super) fn stop(mut self) -> Result<()> {
        if let Some(server) = self.server.take() {
            server.stop()?;
        }
        if self.dir().exists() {
            fs::remove_dir_all(self.dir())?;
        }
        Ok(())
    }
}
