//! One invocation of an experiment: its folders, and its record, which is written after every step.

use std::fs;
use std::path::{Path, PathBuf};

use halcyon_oracle::{Result, Version, repository};
use serde::Serialize;

use crate::cage::Cage;
use crate::machine::drop_page_cache;
use crate::page::{Files, Page};
use crate::programs::Programs;
use crate::record::{Contender, Record};
use crate::stretch::{Phase, Stretch};
use crate::volume::Rented;

/// What is known of an experiment without its arguments.
pub(crate) struct Listed {
    /// As the arguments of `cargo x bench` name it, and its folder.
    pub(crate) name: &'static str,
    pub(crate) asks: &'static str,
    /// Of a record that may be changed: it is not written again.
    pub(crate) page: fn(&mut Record) -> Result<Page>,
}

/// An experiment, by its arguments.
pub(crate) trait Experiment: clap::Args + Serialize {
    const LISTED: Listed;
    /// Where its servers write, in `bench/data`.
    const DATA: &'static str;
    /// Packages and the examples of theirs that it runs beside the server.
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[];

    /// Seconds, for `--tiny`.
    fn shrink(&mut self);

    fn run(self, invocation: &mut Invocation) -> Result<()>;
}

/// An experiment as it was asked for.
#[derive(clap::Args)]
pub(crate) struct Asked<E: Experiment> {
    #[command(flatten)]
    arguments: E,
    #[command(flatten)]
    common: Common,
}

/// What every experiment is asked.
#[derive(clap::Args)]
struct Common {
    /// Only these: halcyon, 5.0.9, 6.0-alpha2, postgresql [default: all that the experiment knows]
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Where records, tables and plots go [default: a folder in bench; of a tiny run: among the data]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Where inputs are kept and servers have their data: on the device to be measured [default: in bench/data]
    #[arg(long)]
    data: Option<PathBuf>,
    /// On a volume of 3,000 operations and 125 MiB a second, as most are that are rented: the kernel throttles the device meanwhile
    #[arg(long, conflicts_with = "tiny")]
    rented: bool,
    /// Seconds, Halcyon only (if `--peers` does not say), dev build: does it still work?
    #[arg(long)]
    tiny: bool,
}

pub(crate) struct Invocation {
    experiment: Listed,
    pub(crate) programs: Programs,
    peers: Vec<String>,
    pub(crate) tiny: bool,
    /// Where servers and runs write: on the device that is measured.
    pub(crate) data: PathBuf,
    out: PathBuf,
    pub(crate) record: Record,
    /// Until the end.
    _volume: Option<Rented>,
}

impl<E: Experiment> Asked<E> {
    /// Runs it, writes everything, and shows the page.
    pub(crate) fn run(self) -> Result<()> {
        let Asked { mut arguments, common } = self;
        if common.tiny {
            arguments.shrink();
        }
        let mut invocation = Invocation::begin(&arguments, common)?;
        arguments.run(&mut invocation)?;
        invocation.write()?;
        println!("{}", fs::read_to_string(invocation.out.join("README.md"))?);
        eprintln!("bench: written to {}", invocation.out.display());
        Ok(())
    }
}

impl Invocation {
    /// Both folders of a tiny run are made below the data, so that no results are overwritten.
    fn begin<E: Experiment>(arguments: &E, common: Common) -> Result<Invocation> {
        let bench = repository().join("bench");
        let mut data = common.data.unwrap_or_else(|| bench.join("data").join(E::DATA));
        let mut out =
            common.out.clone().unwrap_or_else(|| bench.join(folder(E::LISTED.name, common.rented)));
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
        let programs = Programs::build(common.tiny, E::EXAMPLES)?;
        let mut record = Record::new(E::LISTED.name, serde_json::to_value(arguments)?);
        let volume = common.rented.then(|| Rented::under(&data)).transpose()?;
        record.rented = volume.as_ref().map(|_| Rented::LIMITS);
        Ok(Invocation {
            experiment: E::LISTED,
            programs,
            peers: common.peers,
            tiny: common.tiny,
            data,
            out,
            record,
            _volume: volume,
        })
    }

    pub(crate) fn takes_part(&self, peer: &str) -> bool {
        match self.peers.as_slice() {
            [] => !self.tiny || peer == "halcyon",
            listed => listed.iter().any(|listed| listed == peer),
        }
    }

    /// Each round Halcyon's turn (`None`), then those of the Cassandras, as far as they take part.
    pub(crate) fn turns(
        &mut self,
        rounds: u32,
        turn: impl Fn(&mut Invocation, Option<Version>) -> Result<()>,
    ) -> Result<()> {
        for _ in 0..rounds {
            if self.takes_part("halcyon") {
                turn(self, None)?;
            }
            for version in Version::ALL {
                if self.takes_part(version.name()) {
                    let outcome = turn(self, Some(version));
                    self.or_missing(true, &format!("Cassandra {}", version.name()), outcome)?;
                }
            }
        }
        Ok(())
    }

    /// What a contender's turn gave. That of a rival which failed is missing: one rival less is still a result.
    pub(crate) fn or_missing<T>(
        &mut self,
        is_rival: bool,
        who: &str,
        outcome: Result<T>,
    ) -> Result<Option<T>> {
        match outcome {
            Err(error) if is_rival => {
                self.record.miss(format!("{who}: {error}"));
                Ok(None)
            }
            outcome => outcome.map(Some),
        }
    }

    /// Adds a turn's stretches to the record, each under a heading, and writes it.
    pub(crate) fn note(
        &mut self,
        who: &Contender,
        stretches: Vec<Stretch>,
        heading: impl Fn(Phase) -> String,
    ) -> Result<()> {
        for Stretch { phase, figures, details } in stretches {
            self.record.add_with(&heading(phase), who, figures, details);
        }
        self.write()
    }

    /// An empty folder for a server.
    pub(crate) fn fresh(&self, name: &str) -> Result<PathBuf> {
        let folder = self.data.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        Ok(folder)
    }

    /// So much memory, where a cgroup can limit it.
    pub(crate) fn memory(&mut self, limit: u64) -> Option<u64> {
        let cage = Cage::make("try", limit).map_err(|error| {
            let why = format!("memory limits, and what depends on them: no cgroup ({error})");
            self.record.miss(why);
        });
        cage.ok().map(|_| limit)
    }

    /// Empties the page cache; a tiny run does without. `false` where it is not empty.
    pub(crate) fn drop_page_cache(&mut self) -> bool {
        let is_dropped = !self.tiny && drop_page_cache();
        if !is_dropped && !self.tiny {
            self.record.miss("the page cache cannot be dropped between runs: be root".to_owned());
        }
        is_dropped
    }

    /// Writes the record as it is now, its page and its plots.
    pub(crate) fn write(&mut self) -> Result<()> {
        write_page(&self.experiment, &mut self.record, &self.out)
    }
}

/// Where the record of an experiment is kept, in `bench/`.
pub(crate) fn folder(name: &str, rented: bool) -> String {
    format!("{name}{}", if rented { "-rented" } else { "" })
}

/// The targets become a part of the record, for programs that read it.
pub(crate) fn files(experiment: &Listed, record: &mut Record) -> Result<Files> {
    let mut scratch = record.clone();
    let page = (experiment.page)(&mut scratch)?;
    record.targets.clone_from(&page.targets);
    page.files(scratch)
}

/// Writes a record, and what is made of it.
pub(crate) fn write_page(experiment: &Listed, record: &mut Record, out: &Path) -> Result<()> {
    let Files { text, plots } = files(experiment, record)?;
    fs::write(out.join("records.json"), format!("{:#}\n", serde_json::to_value(&record)?))?;
    fs::write(out.join("README.md"), text)?;
    for (name, plot) in &plots {
        fs::write(out.join(name), plot)?;
    }
    Ok(())
}
