use halcyon_io::AccessMode;

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.io_modes (
    directory text,
    purpose text,
    asked text,
    mode text,
    reason text,
    PRIMARY KEY (directory, purpose)
) WITH ID = 9e92d1b1-e439-3eea-ac5a-214b0b323637
    AND comment = 'how Halcyon reads and writes each directory, and why';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["directory", "purpose", "asked", "mode", "reason"]);
    for (directory, purpose, asked, writing) in &node.facts.io_modes {
        let disk = &node.facts.disk;
        let choice = match writing {
            true => disk.resolve_write_mode(directory, *asked),
            false => disk.resolve_mode(directory, *asked),
        };
        let (mode, why) = match choice {
            Ok(choice) => (choice.mode, choice.why),
            Err(error) => (AccessMode::Standard, error.to_string()),
        };
        rows.push([
            directory.display().to_string().into(),
            (*purpose).into(),
            asked.to_string().into(),
            mode.to_string().into(),
            why.into(),
        ]);
    }
}
