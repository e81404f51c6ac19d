//! How long the output of a task is expected to live: until the next compaction of the same data, or until a later one's purge.
//!
//! | strategy | soon rewritten |
//! |---|---|
//! | SizeTiered | while another SSTable is larger than the inputs together: theirs is not the last tier |
//! | Unified | the same by density |
//! | Leveled | in levels 0 and 1 |
//! | TimeWindow | in the newest window |
//!
//! What an operator asks for, and an SSTable that is compacted for its tombstones, is expected to stay.

use halcyon_model::options::{Compaction, Strategy};

use super::candidates::{Candidate, Output, Reason, Task, total};
use super::unified::{density, density_of_all};
use super::windows::window;

/// Whether another task soon rewrites the output of one that [`pick`](super::pick) picked from `tables`.
pub fn is_soon_rewritten(compaction: &Compaction, tables: &[Candidate], task: &Task) -> bool {
    let is_input = |table: &&Candidate| task.inputs.contains(&table.id);
    let (inputs, others): (Vec<_>, Vec<_>) = tables.iter().partition(is_input);
    if task.reason != Reason::Compaction || inputs.is_empty() {
        return false;
    }
    match &compaction.strategy {
        Strategy::SizeTiered(_) => others.iter().any(|other| other.size > total(&inputs)),
        Strategy::Unified(_) => {
            let after = density_of_all(&inputs);
            others.iter().any(|other| density(other) > after)
        }
        Strategy::Leveled(_) => {
            matches!(task.output, Output::Single { level: 0 } | Output::Sized { level: 0..=1, .. })
        }
        Strategy::TimeWindow(options) => {
            let newest = |tables: &[&Candidate]| tables.iter().map(|of| window(of, options)).max();
            newest(&inputs) >= newest(&others)
        }
    }
}
