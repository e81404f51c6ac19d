//! A sample of the node each interval, from a thread of its own: the terminal never waits for the network.

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::Sender;
use std::time::Duration;

use futures_util::future::{Either, select};
use halcyon_client::{Connection, Prepared};
use halcyon_io::clock;
use halcyon_model::in_one_line;

use super::options::{Options, of_nodetool};
use super::sample::{STATEMENTS, Sample};
use crate::failure::{Failure, Result};
use crate::nodetool;

/// How long a node may take for an answer. Chosen: longer than any pause of a loaded node.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) enum Update {
    Sample(Box<Sample>),
    /// The connection failed, for this reason.
    Lost(String),
}

/// A connection on which all statements are prepared.
struct Watched {
    connection: Connection,
    statements: Vec<Prepared>,
}

impl Watched {
    async fn connect(options: &Options) -> Result<Watched> {
        let mut connection = nodetool::connect(&options.destination).await.map_err(of_nodetool)?;
        let mut statements = Vec::with_capacity(STATEMENTS.len());
        for statement in STATEMENTS {
            let prepared = connection.prepare(statement).await;
            statements.push(prepared.map_err(halcyon_tools::Error::from)?);
        }
        Ok(Watched { connection, statements })
    }

    async fn sample(&mut self) -> Result<Sample> {
        let rows = self.connection.execute_all(&self.statements).await;
        Ok(Sample::of(clock::now(), &rows.map_err(halcyon_tools::Error::from)?))
    }
}

/// Fails if the node takes too long.
async fn in_time<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match select(pin!(work), pin!(clock::sleep(PATIENCE))).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => {
            let seconds = PATIENCE.as_secs();
            Err(Failure::unreadable(format!("the node has not answered for {seconds} s")))
        }
    }
}

/// Two samples, an interval apart.
pub(super) async fn two_samples(options: &Options) -> Result<(Sample, Sample)> {
    let mut watched = in_time(Watched::connect(options)).await?;
    let before = in_time(watched.sample()).await?;
    clock::sleep(options.interval).await;
    Ok((before, in_time(watched.sample()).await?))
}

/// Sends samples until the receiver is dropped. After an error it connects again.
pub(super) async fn watch(options: &Options, sender: &Sender<Update>) {
    loop {
        let Err(failure) = samples(options, sender).await else { return };
        if sender.send(Update::Lost(in_one_line(&failure.to_string()))).is_err() {
            return;
        }
        clock::sleep(options.interval).await;
    }
}

async fn samples(options: &Options, sender: &Sender<Update>) -> Result<()> {
    let mut watched = in_time(Watched::connect(options)).await?;
    loop {
        let sample = in_time(watched.sample()).await?;
        if sender.send(Update::Sample(Box::new(sample))).is_err() {
            return Ok(());
        }
        clock::sleep(options.interval).await;
    }
}
