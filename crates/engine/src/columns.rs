//! Maps column numbers of one layout to those of another, by name. Cells of columns that the other layout lacks, or has in another shape,
//! are dropped.

use halcyon_stream::{Layout, Mutation, Row, RowBuf, Statics};

/// The map from one layout to another; it is increasing, because both order their columns alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnMap {
    statics: Vec<Option<u16>>,
    regulars: Vec<Option<u16>>,
}

impl ColumnMap {
    pub(crate) fn between(from: &Layout, to: &Layout) -> ColumnMap {
        let map = |which| {
            let target = to.columns(which);
            let place = |column: &halcyon_stream::Column| {
                let same = |c: &halcyon_stream::Column| {
                    c.name == column.name && c.is_complex() == column.is_complex()
                };
                target.iter().position(same).and_then(|at| u16::try_from(at).ok())
            };
            from.columns(which).iter().map(place).collect()
        };
        ColumnMap { statics: map(Statics::Static), regulars: map(Statics::Regular) }
    }

    fn target(&self, which: Statics, column: u16) -> Option<u16> {
        let map = match which {
            Statics::Static => &self.statics,
            Statics::Regular => &self.regulars,
        };
        map.get(usize::from(column)).copied().flatten()
    }

    /// Renumbers a row in place; the bytes of dropped cells remain.
    pub(crate) fn map_row(&self, which: Statics, row: &mut RowBuf) {
        row.parts.cells.retain_mut(|cell| match self.target(which, cell.column) {
            Some(column) => {
                cell.column = column;
                true
            }
            None => false,
        });
        row.parts.complex_deletions.retain_mut(|deletion| {
            match self.target(which, deletion.column) {
                Some(column) => {
                    deletion.column = column;
                    true
                }
                None => false,
            }
        });
    }

    /// Copies a row with the new numbers; false if nothing remains.
    pub(crate) fn copy(&self, which: Statics, row: Row<'_>, into: &mut RowBuf) -> bool {
        into.copy_from(row);
        self.map_row(which, into);
        !into.row().is_empty()
    }

    pub(crate) fn map_mutation(&self, mutation: &mut Mutation) {
        let map = |which, row: &mut RowBuf| {
            self.map_row(which, row);
            !row.row().is_empty()
        };
        if let Some(mut row) = mutation.static_row.take()
            && map(Statics::Static, &mut row)
        {
            mutation.static_row = Some(row);
        }
        mutation.rows.retain_mut(|row| map(Statics::Regular, row));
    }
}
