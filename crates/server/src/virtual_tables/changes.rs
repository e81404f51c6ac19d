//! What can be done by writing to virtual tables: settings are changed, major compactions begun and stopped.

use halcyon_model::schema::ColumnKind;
use halcyon_model::token::split_key;
use halcyon_query::{Error, Result, modification_is_not_supported};
use halcyon_schema::catalog::{Table, TableKind};
use halcyon_stream::{Mutation, RowBuf};

use super::Views;

/// A write, by the names of columns.
struct Change<'a> {
    table: &'a Table,
    mutation: &'a Mutation,
}

/// What becomes of a cell.
enum To<'a> {
    Same,
    Null,
    Text(&'a str),
}

impl Change<'_> {
    fn key(&self) -> Result<Vec<String>> {
        let count = self.table.columns(ColumnKind::PartitionKey).len();
        let parts = split_key(&self.mutation.key.bytes, count).unwrap_or_default();
        let text = |part: &&[u8]| String::from_utf8(part.to_vec()).ok();
        let parts: Option<Vec<String>> = parts.iter().map(text).collect();
        parts.ok_or_else(|| Error::Invalid("a key that is no text".to_owned()))
    }

    fn deletes_partition(&self) -> bool {
        !self.mutation.deletion.is_live()
            || self.rows().any(|row| !row.parts.deletion.time.is_live())
    }

    fn rows(&self) -> impl Iterator<Item = &RowBuf> {
        self.mutation.rows.iter()
    }

    fn text(&self, column: &str) -> To<'_> {
        let columns = self.table.columns(ColumnKind::Regular);
        let index = columns.iter().position(|def| def.name == column);
        for row in self.rows() {
            let found = row.parts.cells.iter().find(|c| Some(usize::from(c.column)) == index);
            return match found {
                None => continue,
                Some(cell) if cell.is_tombstone() => To::Null,
                Some(cell) => {
                    std::str::from_utf8(cell.value.of(&row.bytes)).map_or(To::Null, To::Text)
                }
            };
        }
        To::Same
    }

    fn sets_something(&self) -> bool {
        self.rows().any(|row| !row.parts.cells.is_empty())
    }
}

impl Views {
    pub(super) fn change(&self, table: &Table, mutation: &Mutation) -> Result<()> {
        let change = Change { table, mutation };
        match (table.schema.keyspace.as_str(), table.schema.name.as_str()) {
            ("system_views", "settings") => self.change_setting(&change),
            ("halcyon_views", "major_compactions") => self.change_major_compaction(&change),
            _ => Err(modification_is_not_supported(table)),
        }
    }

    fn change_setting(&self, change: &Change<'_>) -> Result<()> {
        let name = change.key()?.concat();
        let value = match change.text("value") {
            To::Text(value) => Some(value),
            To::Null => None,
            To::Same => return Err(modification_is_not_supported(change.table)),
        };
        let changed = self.shared.settings.change(&self.engine, &name, value);
        changed.map_err(|e| Error::Invalid(e.to_string()))?;
        let value = value.unwrap_or("null");
        self.shared.log.say(format_args!("{name} is {value} from now on: a client has changed it"));
        Ok(())
    }

    /// INSERT begins one, DELETE stops it.
    fn change_major_compaction(&self, change: &Change<'_>) -> Result<()> {
        let key = change.key()?;
        let [keyspace, name] = key.as_slice() else {
            return Err(modification_is_not_supported(change.table));
        };
        let catalog = self.engine.catalog();
        if catalog.keyspace(keyspace).is_none() {
            return Err(Error::Invalid(format!("keyspace {keyspace} does not exist")));
        }
        let found = catalog.table(keyspace, name).filter(|t| t.kind != TableKind::Virtual);
        let table = found
            .ok_or_else(|| Error::Invalid(format!("table {keyspace}.{name} does not exist")))?;
        if change.deletes_partition() {
            self.engine.stop_major_compaction(table.id);
            return Ok(());
        }
        if change.sets_something() {
            let what = "only keyspace_name and table_name can be written; the others tell what became of it";
            return Err(Error::Invalid(what.to_owned()));
        }
        self.engine.begin_major_compaction(table.id)?;
        Ok(())
    }
}
