//! One compaction for Cassandra.

use std::sync::Arc;

use halcyon_compaction::{Group, Outcome, Settings, UsableSpace, write_into};
use halcyon_io::{AccessMode, Disk, RateLimiter, StreamOptions};
use halcyon_model::Partitioner;
use halcyon_sstable::format::statistics::collector::Provenance;
use halcyon_sstable::{Effort, ExpirationOverflow, OpenOptions, SSTable};

use crate::exchange::{AskedBound, Exchange};
use crate::failure::failed;
use crate::messages::{Done, Failed, FailureKind, Reply, TaskRequest};
use crate::output::Granted;
use crate::verified::{Unsound, Verifier};

/// Of the read-ahead buffers of a task's inputs.
const READ_AHEAD: usize = 24 << 20;
const WRITE_BUFFER: usize = 1 << 20;

/// Runs the task; what to tell of its end.
pub(crate) async fn run(disk: &Disk, task: &TaskRequest, exchange: &Arc<Exchange>) -> Reply {
    match compact(disk, task, exchange).await {
        Ok(done) => Reply::Done(done),
        Err(Unsound::Bad { path, what }) => {
            let message = format!("the output did not pass its verification: {what}");
            Reply::Failed(Failed { kind: FailureKind::BadOutput, path, message })
        }
        Err(Unsound::Failed(error)) => Reply::Failed(failed(&error, &task.inputs)),
    }
}

async fn compact(
    disk: &Disk,
    task: &TaskRequest,
    exchange: &Arc<Exchange>,
) -> Result<Done, Unsound> {
    let schema = Arc::new(task.schema.clone());
    let mut inputs = Vec::with_capacity(task.inputs.len());
    for input in &task.inputs {
        let options = OpenOptions { schema: Some(schema.clone()) };
        inputs.push(Arc::new(SSTable::open(disk, input, options).await?));
        exchange.goes_on()?;
    }
    let group = Group { inputs, elsewhere: Vec::new() };
    let settings = settings(task, exchange);
    exchange.first_tick()?;
    let mut outputs = Granted { exchange: exchange.clone(), version: task.version, stored: 0 };
    let outcome = write_into(disk, &group, &settings, &exchange.progress, &mut outputs).await?;
    outputs.tick()?;
    let rows = task.verify_rows;
    let verifier = Verifier { disk, schema, rows, exchange };
    let files = verifier.outputs(&outcome).await?;
    // What it has used to its end.
    outputs.tick()?;
    let Outcome { file_read, file_written, partitions_written, merged_partitions, .. } = outcome;
    Ok(Done {
        outputs: files,
        file_read,
        file_written,
        partitions: partitions_written,
        merged: merged_partitions,
    })
}

fn settings(task: &TaskRequest, exchange: &Arc<Exchange>) -> Settings {
    let class = Partitioner::Murmur3.class_name();
    Settings {
        output: None,
        ids: None,
        keep_inputs: false,
        usable_space: UsableSpace::ALL,
        version: task.version,
        expiration_overflow: ExpirationOverflow::Reject,
        compression: task.compression.clone(),
        effort: Effort::Default,
        bloom_filter_fp_chance: task.bloom_filter_fp_chance,
        min_index_interval: task.min_index_interval,
        column_index_size: task.column_index_size,
        gc_before: task.gc_before,
        now: task.now,
        strict_liveness: task.schema.strict_liveness,
        split_size: task.split.size,
        smallest_half: None,
        split_tokens: task.split.tokens.clone(),
        level: Some(task.level),
        level_fanout: task.split.level_fanout,
        provenance: Some(Provenance {
            repaired_at: task.repaired_at,
            pending_repair: task.pending_repair,
            is_transient: task.is_transient,
            originating_host_id: task.host,
            commit_log_intervals: task.commit_log_intervals.clone(),
            ..Provenance::new(class, task.bloom_filter_fp_chance)
        }),
        purge_bound: Some(Arc::new(AskedBound(exchange.clone()))),
        read_mode: AccessMode::Auto,
        write_mode: AccessMode::Auto,
        read_ahead: StreamOptions::default(),
        read_ahead_budget: READ_AHEAD,
        write_buffer: WRITE_BUFFER,
        carry: None,
        watch: None,
        limiter: RateLimiter::unlimited(),
        own_thread: true,
        read_back: !task.verify_rows,
        forced: Default::default(),
        scrub: None,
    }
}
