//! One invocation of an experiment: its folders, and its record, which is written after every step.

use std::fs;
use std::path::{Path, PathBuf};

use halcyon_oracle::repository;
use serde::Serialize;

use crate::experiments::{Experiment, write_page};
use crate::machine::drop_page_cache;
use crate::record::Record;
use crate::{Result, experiments};

/// What every experiment is asked.
#[derive(clap::Args, Clone)]
pub(crate) struct Common {
    /// Only these: halcyon, 5.0.9, 6.0-alpha2, postgresql [default: all that the experiment knows]
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Where records, tables and plots go [default: a folder in bench; of a tiny run: among the data]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Where inputs are kept and servers have their data: on the device to be measured [default: in bench/data]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Seconds, Halcyon only, dev build: does it still work?
    #[arg(long)]
    pub(crate) tiny: bool,
}

impl Common {
    pub(crate) fn takes_part(&self, peer: &str) -> bool {
        match self.tiny {
            true => peer == "halcyon",
            false => self.peers.is_empty() || self.peers.iter().any(|listed| listed == peer),
        }
    }
}

pub(crate) struct Invocation {
    experiment: &'static Experiment,
    pub(crate) common: Common,
    /// Where servers and runs write: on the device that is measured.
    pub(crate) data: PathBuf,
    out: PathBuf,
    pub(crate) record: Record,
}

impl Invocation {
    /// `data` is a folder in `bench`. Both folders of a tiny run are made below the data, so that no results are overwritten.
    pub(crate) fn begin(
        experiment: &str,
        common: &Common,
        data: &str,
        settings: &impl Serialize,
    ) -> Result<Invocation> {
        let experiment = experiments::find(experiment)?;
        let bench = repository().join("bench");
        let mut data = common.data.clone().unwrap_or_else(|| bench.join(data));
        let mut out = common.out.clone().unwrap_or_else(|| bench.join(experiment.name));
        if common.tiny {
            data.push("tiny");
            if data.exists() {
                fs::remove_dir_all(&data)?;
            }
            if common.out.is_none() {
                out = data.join("out");
            }
        }
        for folder in [&data, &out] {
            fs::create_dir_all(folder)?;
        }
        let record = Record::new(experiment.name, serde_json::to_value(settings)?);
        let common = common.clone();
        Ok(Invocation { experiment, common, data, out, record })
    }

    /// An empty folder for a server.
    pub(crate) fn fresh(&self, name: &str) -> Result<PathBuf> {
        let folder = self.data.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        Ok(folder)
    }

    /// Empties the page cache; a tiny run does without. `false` where it is not empty.
    pub(crate) fn drop_page_cache(&mut self) -> bool {
        let is_dropped = !self.common.tiny && drop_page_cache();
        if !is_dropped && !self.common.tiny {
            self.record.miss("the page cache cannot be dropped between runs: be root".to_owned());
        }
        is_dropped
    }

    /// Writes the record as it is now, its page and its plots.
    pub(crate) fn write(&mut self) -> Result<()> {
        write_page(self.experiment, &mut self.record, &self.out)
    }

    /// Writes everything, and shows the page.
    pub(crate) fn end(mut self) -> Result<()> {
        self.write()?;
        println!("{}", fs::read_to_string(self.out.join("README.md"))?);
        eprintln!("bench: written to {}", self.out.display());
        Ok(())
    }

    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        Path::new(&self.data).join(name)
    }
}
