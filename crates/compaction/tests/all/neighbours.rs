//! Other programs at work in the folder of a running compaction: what is theirs stays.

use std::path::Path;

use halcyon_compaction::{Error, Progress, Sealed, write};
use halcyon_io::block_on;

use crate::sim_table::{A, SimTable, files};

impl SimTable {
    fn sealed(&self) -> Sealed {
        let task = self.task();
        let progress = Progress::default();
        let written = write(&self.disk, &task, &self.settings, &progress);
        self.disk.runtime().block_on(written).expect("written")
    }
}

/// Proves that a compaction whose transaction another program has undone, as a Cassandra does at its start, deletes neither its inputs
/// nor what that program has written under the same name since, whether it continues or gives up.
#[test]
fn a_transaction_that_another_program_undid() {
    for commits in [true, false] {
        let table = SimTable::load("oa/statics", 1, &[A]);
        let sealed = table.sealed();
        let output = sealed.outcome.outputs[0].file_prefix();
        table.recover(&[A]).expect("undone");
        let theirs = format!("{output}Data.db");
        table.put(Path::new(A).join(&theirs), "theirs");
        let ended = match commits {
            true => block_on(sealed.publish()).map(|_| ()),
            false => block_on(sealed.abort()),
        };
        assert!(matches!(ended, Err(Error::TakenOver { .. })), "{ended:?}");
        let mut there = files(&table.sim);
        assert_eq!(there.remove(&Path::new(A).join(theirs)), Some(b"theirs".to_vec()));
        assert!(there == table.files, "an input has changed, or something is left");
    }
}

/// Proves that an output takes another identifier if any file of the next one exists, be it of a component that it would not write.
#[test]
fn an_identifier_that_is_taken() {
    let table = SimTable::load("oa/statics", 2, &[A]);
    let before = table.sim.snapshot();
    let free = table.compact().expect("compacts").outputs[0].clone();
    for component in ["Data.db", "SAI+aa+GroupMeta.db", "Data.db.tmp"] {
        table.sim.restore(&before);
        let copied = format!("{}{component}", free.file_prefix());
        table.put(Path::new(A).join(&copied), "a copy");
        let mut settings = table.settings.clone();
        let ids = std::sync::atomic::AtomicU32::new(0);
        let first = free.id;
        settings.ids = Some(std::sync::Arc::new(move || {
            match ids.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                0 => first,
                n => halcyon_sstable::SSTableId::Sequence(1000 + n),
            }
        }));
        let (runtime, task) = (table.disk.runtime(), table.task());
        let progress = Progress::default();
        let compacted =
            runtime.block_on(halcyon_compaction::run(&table.disk, &task, &settings, &progress));
        let outputs = compacted.expect("compacts").outputs;
        assert!(outputs.iter().all(|output| output.id != free.id), "{component}: {outputs:?}");
        let copied = table.sim.contents(&Path::new(A).join(copied));
        assert_eq!(copied.as_deref(), Some(&b"a copy"[..]), "{component}");
    }
}
