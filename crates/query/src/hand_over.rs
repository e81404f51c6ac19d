//! Jobs for shards.

use std::rc::Rc;

use halcyon_engine::Shard;

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
    let gone = |_| Error::Server("a shard has stopped".into());
    here.engine().mesh().on(index, job).await.map_err(gone)?
}
