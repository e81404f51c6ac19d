//! What a disk and its open files share: buffers, counters, the streams' part of the device's queue, and numbers.
//!
//! A file holds the volume and not its disk. The disk opens files, so it imports them; the other direction would be a circle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::background::{Admitted, Background};
use crate::buffer::BufferPool;
use crate::metrics::DiskMetrics;
use crate::runtime::clock::Clock;

pub(crate) struct Volume {
    clock: Clock,
    buffers: BufferPool,
    metrics: DiskMetrics,
    background: Arc<Background>,
    next_id: AtomicU64,
}

impl Volume {
    pub(crate) fn with_buffers(buffers: BufferPool, clock: &Clock) -> Arc<Volume> {
        Arc::new(Volume {
            clock: clock.clone(),
            buffers,
            metrics: DiskMetrics::empty(),
            background: Background::on(clock.clone()),
            next_id: AtomicU64::new(1),
        })
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn buffers(&self) -> &BufferPool {
        &self.buffers
    }

    pub(crate) fn metrics(&self) -> &DiskMetrics {
        &self.metrics
    }

    /// A number that this volume returns only once.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// Waits until a stream may queue an operation of `bytes`.
    pub(crate) async fn admit(&self, bytes: usize) -> Admitted {
        self.background.admit(bytes as u64, &self.metrics).await
    }

    /// Whether a stream's write of `bytes` is to flush the device.
    pub(crate) fn is_flush_due(&self, bytes: usize) -> bool {
        self.background.is_flush_due(bytes as u64, &self.metrics)
    }

    /// A stream's write flushed the device and took `time`.
    pub(crate) fn stream_flushed(&self, time: Duration) {
        self.background.trickle.took(time, self.clock.now());
    }

    /// A write outside the streams, or a sync, flushed the device.
    pub(crate) fn others_flushed(&self) {
        self.background.trickle.others_flushed();
    }

    /// The file system has no writes that are durable on their own: streams flush no more.
    pub(crate) fn stop_flushing(&self) {
        self.background.trickle.give_up();
    }
}
