//! The end: compaction stops, memtables are flushed, the commit log is deleted.

use futures_util::future::LocalBoxFuture;

use crate::Result;
use crate::engine::Engine;

impl Engine {
    /// `nodetool drain`: stops compaction, refuses writes from now on, flushes everything. Reads are served.
    pub fn settle(&self) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.compactor.stop().await;
            let control = self.control.lock().take();
            if let Some(control) = control {
                // It was woken by the stop, and does nothing that takes time; a panic was told when it happened.
                let _ = control.join().await;
            }
            self.reporter().check_whole()?;
            if self.reporter().failure().is_none() {
                self.indexes.forget_built().await?;
            }
            self.reporter().drain();
            self.flusher.flush(None).await
        })
    }

    /// Settles, and deletes the commit log: the end of the node.
    pub fn drain(&self) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.settle().await?;
            for closed in
                self.tables.mesh.on_each(|shard| async move { shard.log.close().await }).await
            {
                closed??;
            }
            self.flusher.background.catch_up().await;
            Ok(())
        })
    }
}
