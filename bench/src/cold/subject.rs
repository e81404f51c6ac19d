//! A server in its cage, with all sets as its tables.

use std::fs;

use halcyon_oracle::{Result, Version};

use crate::cage::Cage;
use crate::dataset::DataSet;
use crate::invocation::Invocation;
use crate::restore::{create, replace, restore};
use crate::server::{Plan, Server};

/// What a subject is made of.
pub(super) struct Making<'a> {
    pub(super) invocation: &'a Invocation,
    /// Bytes for everything; none: no cage.
    pub(super) memory: Option<u64>,
    pub(super) heap: &'a str,
}

/// The cage is dropped last: it is empty then.
pub(super) struct Subject {
    pub(super) server: Server,
    cage: Option<Cage>,
}

impl Subject {
    /// `version`: none of Halcyon.
    pub(super) fn start(
        making: &Making<'_>,
        version: Option<Version>,
        sets: &[&DataSet],
    ) -> Result<Subject> {
        let cage = making.memory.map(|bytes| Cage::make("cold", bytes)).transpose()?;
        let server = match version {
            None => halcyon(making, sets, cage.as_ref())?,
            Some(version) => cassandra(making, version, sets, cage.as_ref())?,
        };
        Ok(Subject { server, cage })
    }

    /// Page cache, and everything, in the cage.
    pub(super) fn holds(&self) -> Option<(u64, u64)> {
        self.cage.as_ref()?.holds().ok()
    }

    /// Ends it, and its links to the files.
    pub(super) fn stop(self) -> Result<()> {
        let Subject { server, cage } = self;
        let dir = server.dir.clone();
        server.stop()?;
        drop(cage);
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        Ok(())
    }
}

/// Twice: the tables have to be there before their files.
fn halcyon(making: &Making<'_>, sets: &[&DataSet], cage: Option<&Cage>) -> Result<Server> {
    let programs = &making.invocation.programs;
    let dir = making.invocation.fresh("halcyon")?;
    // Its default, where the file system is able to.
    let plan = Plan::halcyon("direct", dir.clone()).set("disk_access_mode: direct");
    let server = Server::start(programs, &plan)?;
    for set in sets {
        create(server.port, set)?;
    }
    server.stop()?;
    for set in sets {
        replace(&dir, set)?;
    }
    Server::start(programs, &plan.cage(cage))
}

fn cassandra(
    making: &Making<'_>,
    version: Version,
    sets: &[&DataSet],
    cage: Option<&Cage>,
) -> Result<Server> {
    let mode = if version == Version::V6 { "direct" } else { "buffered" };
    let dir = making.invocation.data.join("cassandra");
    let plan = Plan::cassandra(version, mode, dir).compacting(version, mode);
    let plan = plan.heap(making.heap).cage(cage);
    let server = Server::start(&making.invocation.programs, &plan)?;
    let mut jmx = server.jmx()?;
    for set in sets {
        create(server.port, set)?;
        restore(&server, &mut jmx, set, None)?;
    }
    Ok(server)
}
