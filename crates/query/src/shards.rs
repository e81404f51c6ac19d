//! Work on several shards: jobs, and mutations that go to the shards that own their partitions.

use std::future::Future;
use std::rc::Rc;

use futures_util::future::join_all;
use halcyon_engine::Shard;
use halcyon_io::{JobLost, spent};
use halcyon_scan::pace::Pace;
use halcyon_stream::Mutation;

use crate::{Error, Result};

/// Runs a job on one shard: at once if it is the current one, else on its thread.
pub(crate) async fn on_shard<R, F>(
    here: &Rc<Shard>,
    index: usize,
    job: impl FnOnce(Rc<Shard>) -> F + Send + 'static,
) -> Result<R>
where
    R: Send + 'static,
    F: Future<Output = Result<R>> + 'static,
{
    if index == here.index() {
        return job(here.clone()).await;
    }
    let gone = |gone: JobLost| Error::Server(gone.to_string());
    let job = move |shard: Rc<Shard>| spent::measured(job(shard));
    let (outcome, waits) = here.tables().mesh().on(index, job).await.map_err(gone)?;
    spent::add(waits);
    outcome
}

/// Runs a job on the shard that owns a token.
pub(crate) async fn on_owner<R, F>(
    here: &Rc<Shard>,
    token: i64,
    job: impl FnOnce(Rc<Shard>) -> F + Send + 'static,
) -> Result<R>
where
    R: Send + 'static,
    F: Future<Output = Result<R>> + 'static,
{
    on_shard(here, here.tables().owner(token), job).await
}

/// All shards at once, so that their commit logs are written together. Each part runs to its end, whatever becomes of the others.
pub(crate) async fn apply_by_shard(
    here: &Rc<Shard>,
    parts: Vec<(usize, Vec<Mutation>)>,
) -> Result<()> {
    let apply = |(index, mutations)| {
        let job = move |shard: Rc<Shard>| async move {
            shard.apply(mutations).await.map_err(Error::from)
        };
        on_shard(here, index, job)
    };
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return Ok(()) };
    if parts.len() == 0 {
        return apply(first).await;
    }
    let all = join_all(std::iter::once(first).chain(parts).map(apply));
    Box::pin(all).await.into_iter().collect()
}

/// Applies mutations that are all there after a crash, or none.
pub(crate) async fn apply_whole(here: &Rc<Shard>, mutations: Vec<Mutation>) -> Result<()> {
    let parts = by_shard(here, mutations).await;
    match parts.len() {
        0 | 1 => apply_by_shard(here, parts).await,
        _ => here.apply_spanning(parts).await.map_err(Error::from),
    }
}

/// Makes durable what these shards have logged; only `periodic` acknowledges writes before they are.
pub(crate) async fn sync_logs(here: &Rc<Shard>, shards: impl Iterator<Item = usize>) -> Result<()> {
    let sync = |index| {
        let job = |shard: Rc<Shard>| async move { shard.sync_log().await.map_err(Error::from) };
        on_shard(here, index, job)
    };
    if !here.syncs_later() {
        return Ok(());
    }
    join_all(shards.map(sync)).await.into_iter().collect()
}

/// Mutations that change something, by the shard that owns their partition.
pub(crate) async fn by_shard(
    here: &Shard,
    mutations: Vec<Mutation>,
) -> Vec<(usize, Vec<Mutation>)> {
    let tables = here.tables();
    let mut shards: Vec<(usize, Vec<Mutation>)> = Vec::new();
    let mut pace = Pace::default();
    for mutation in mutations.into_iter().filter(|mutation| !mutation.is_empty()) {
        if pace.step() {
            pace.pause().await;
        }
        let owner = tables.owner(mutation.key.token);
        match shards.iter_mut().find(|(shard, _)| *shard == owner) {
            Some((_, group)) => group.push(mutation),
            None => shards.push((owner, vec![mutation])),
        }
    }
    shards
}
