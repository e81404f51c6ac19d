//! The guardrails on the size of reads (`read_thresholds_enabled`): a warning above one threshold, a failure above another.
//!
//! 1. The size of a coordinator's read is that of the values it answers. Cassandra looks at it when the next row begins, so the last row
//!    of a page never fails.
//! 2. The size of a local read, of a partition key or of a whole range, is that of the keys, clusterings and values that are read, before
//!    any filter. Cassandra counts the objects of Java around them too.
//! 3. The size of a row index is that of Cassandra's copy of it in memory, whether or not it is read here.

use halcyon_cql::plan::select::BoundSelect;
use halcyon_model::request::Consistency;
use halcyon_model::units;
use halcyon_stream::{Fragment, Row};

use crate::command::{all_tokens, command, tokens};
use crate::context::ReadSizes;
use crate::error::{Error, Result, TooLarge};
use crate::page::Page;

#[derive(Debug)]
pub(crate) struct SizeGuard {
    sizes: ReadSizes,
    is_on: bool,
    /// Bytes of the local read.
    local: u64,
    /// Of its largest row index.
    row_index: u64,
    /// Rows of the page at the last check, and the bytes of their values.
    seen: (u32, u64),
    warnings: Vec<String>,
}

impl SizeGuard {
    pub(crate) fn new(sizes: ReadSizes) -> SizeGuard {
        let is_on = sizes != ReadSizes::OFF;
        SizeGuard { sizes, is_on, local: 0, row_index: 0, seen: (0, 0), warnings: Vec::new() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(crate) fn count(&mut self, fragment: &Fragment<'_>) {
        self.local += match fragment {
            Fragment::Start(start) => start.key.bytes.len() as u64,
            Fragment::Static(row) | Fragment::Row(row) => size_of_row(row),
            Fragment::Marker(_) | Fragment::End => 0,
        };
    }

    /// A row index that the local read has opened.
    pub(crate) fn note_row_index(&mut self, size: u64) {
        self.row_index = self.row_index.max(size);
    }

    /// Fails if what was read, or is in the page, is too large.
    pub(crate) fn check(
        &mut self,
        page: &Page,
        (select, key): (&BoundSelect, &[u8]),
        consistency: Consistency,
    ) -> Result<()> {
        if self.local >= self.sizes.local.fail {
            let (size, command) = (self.local, command(select, key));
            let text = format!(
                "1 nodes loaded over {size} bytes and aborted the query {command} (see local_read_size_fail_threshold)"
            );
            let warning = format!("{text} with {}", tokens(select, key));
            return Err(self.too_large(text, warning, consistency));
        }
        if self.row_index > self.sizes.row_index.fail {
            let (size, command) = (self.row_index, command(select, key));
            let text = format!(
                "1 nodes loaded over {size} bytes in RowIndexEntry and aborted the query {command} (see row_index_size_fail_threshold)"
            );
            let warning = format!("{text} with {}", tokens(select, key));
            return Err(self.too_large(text, warning, consistency));
        }
        let (count, before) = self.seen;
        if page.count == count {
            return Ok(());
        }
        let size = values_of(page, select);
        self.seen = (page.count, size);
        // The row of a group comes when the next group begins.
        let asked = if select.plan.grouping.is_some() { size } else { before };
        let fail = self.sizes.coordinator.fail;
        if asked <= fail {
            return Ok(());
        }
        let text = coordinated(select, "failure", fail);
        Err(self.too_large(text.clone(), text, consistency))
    }

    pub(crate) fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }

    fn too_large(&mut self, text: String, warning: String, consistency: Consistency) -> Error {
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.push(warning);
        Error::TooLarge(Box::new(TooLarge { text, warnings, consistency }))
    }

    /// Ends the read of `key`: its size may be worth a warning.
    pub(crate) fn end_read(&mut self, select: &BoundSelect, key: &[u8]) {
        let size = std::mem::take(&mut self.local);
        if size >= self.sizes.local.warn {
            let (command, tokens) = (command(select, key), tokens(select, key));
            self.warnings.push(format!(
                "1 nodes loaded over {size} bytes and issued local read size warnings for query {command} (see local_read_size_warn_threshold) with {tokens}"
            ));
        }
        let size = std::mem::take(&mut self.row_index);
        if size > self.sizes.row_index.warn {
            let (command, tokens) = (command(select, key), tokens(select, key));
            self.warnings.push(format!(
                "1 nodes loaded over {size} bytes in RowIndexEntry and issued warnings for query {command} (see row_index_size_warn_threshold) with {tokens}"
            ));
        }
    }

    /// The warnings of the whole read, whose page is complete.
    pub(crate) fn take_warnings(&mut self, page: &Page, select: &BoundSelect) -> Vec<String> {
        let warn = self.sizes.coordinator.warn;
        let mut warnings = Vec::new();
        if warn != u64::MAX && values_of(page, select) > warn {
            warnings.push(coordinated(select, "warning", warn));
        }
        warnings.append(&mut self.warnings);
        warnings
    }
}

fn coordinated(select: &BoundSelect, level: &str, threshold: u64) -> String {
    let (table, tokens) = (select.plan.table.full_name(), all_tokens(select));
    // As Java's `%,d`.
    let threshold = units::count(threshold);
    format!(
        "Read on table {table} has exceeded the size {level} threshold of {threshold} bytes with {tokens}"
    )
}

/// Bytes of the values in a page: each has its length before it.
fn values_of(page: &Page, select: &BoundSelect) -> u64 {
    let lengths = 4 * u64::from(page.count) * select.plan.columns.len() as u64;
    (page.content.len() as u64).saturating_sub(lengths)
}

fn size_of_row(row: &Row<'_>) -> u64 {
    let cells =
        row.cells.iter().map(|cell| cell.path.of(row.bytes).len() + cell.value.of(row.bytes).len());
    (row.clustering.len() + cells.sum::<usize>()) as u64
}
