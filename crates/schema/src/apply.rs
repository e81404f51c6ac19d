//! Applies the statements of a script, in order, to drafts of tables and types.

use std::collections::BTreeMap;

use halcyon_model::schema::ColumnKind;

use super::edit::{
    add_columns, add_fields, drop_column, no_column, rename, set_primary_key, set_properties,
};
use super::{ColumnDraft, FieldTexts, Note, Schema, TableDraft, UserTypeCatalog, options};
use halcyon_syntax::ast::{
    CreateTable, CreateType, CreateView, Name, QualifiedName, RawSelector, Selection, Statement,
    StatementKind, TableChange, TypeChange,
};
use halcyon_syntax::lexer::Location;
use halcyon_syntax::{Error, Result, parse_statements};

type Key = (String, String);

struct Drafts {
    keyspace: String,
    types: BTreeMap<String, BTreeMap<String, FieldTexts>>,
    tables: BTreeMap<Key, (Location, TableDraft)>,
    notes: Vec<Note>,
}

impl Schema {
    /// Runs a script. Tables named without a keyspace belong to the one in `USE`, or else to `keyspace`.
    pub fn parse(text: &str, keyspace: &str) -> Result<Schema> {
        let mut drafts = Drafts::new(keyspace);
        for statement in parse_statements(text)? {
            drafts.apply(statement)?;
        }
        drafts.finish()
    }
}

impl Drafts {
    fn new(keyspace: &str) -> Drafts {
        Drafts {
            keyspace: keyspace.to_owned(),
            types: BTreeMap::new(),
            tables: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    fn note(&mut self, location: Location, text: impl Into<String>) {
        self.notes.push(Note { location, text: text.into() });
    }

    fn key(&self, name: &QualifiedName) -> Key {
        let keyspace = name.keyspace.as_ref().unwrap_or(&self.keyspace);
        (keyspace.clone(), name.name.clone())
    }

    fn apply(&mut self, statement: Statement) -> Result<()> {
        match statement.kind {
            StatementKind::Use { keyspace } => self.keyspace = keyspace,
            StatementKind::CreateKeyspace { .. } => {}
            StatementKind::DropKeyspace { name, .. } => {
                self.types.remove(&name.text);
                self.tables.retain(|(keyspace, _), _| *keyspace != name.text);
            }
            StatementKind::CreateType(create) => self.create_type(create)?,
            StatementKind::AlterType { name, if_exists, change } => {
                self.alter_type(&name, if_exists, change)?;
            }
            StatementKind::DropType { name, if_exists } => {
                let (keyspace, key) = self.key(&name);
                let found = self.types.get_mut(&keyspace).and_then(|types| types.remove(&key));
                if found.is_none() && !if_exists {
                    return Err(Error::invalid(
                        name.location,
                        format!("type {keyspace}.{key} does not exist"),
                    ));
                }
            }
            StatementKind::CreateTable(create) => self.create_table(create)?,
            StatementKind::CreateView(create) => self.create_view(create)?,
            StatementKind::AlterTable { name, if_exists, change } => {
                self.alter_table(&name, if_exists, change)?;
            }
            StatementKind::DropTable { name, if_exists }
            | StatementKind::DropView { name, if_exists } => self.drop_table(&name, if_exists)?,
            StatementKind::Skipped { what } => {
                self.note(statement.location, format!("{what}: skipped, it shapes no table"));
            }
            // Data, views, indexes, functions and roles do not change tables.
            _ => {}
        }
        Ok(())
    }

    fn no_table(&self, name: &QualifiedName) -> Error {
        let (keyspace, table) = self.key(name);
        Error::invalid(
            name.location,
            format!("table {keyspace}.{table} does not exist (nothing above creates it)"),
        )
    }

    fn drop_table(&mut self, name: &QualifiedName, if_exists: bool) -> Result<()> {
        match self.tables.remove(&self.key(name)) {
            None if !if_exists => Err(self.no_table(name)),
            _ => Ok(()),
        }
    }

    fn create_type(&mut self, create: CreateType) -> Result<()> {
        let (keyspace, name) = self.key(&create.name);
        let types = self.types.entry(keyspace).or_default();
        if types.contains_key(&name) {
            if create.if_not_exists {
                return Ok(());
            }
            return Err(Error::invalid(
                create.name.location,
                format!("type {name} exists already"),
            ));
        }
        let mut fields = FieldTexts::new();
        add_fields(&mut fields, create.fields, false)?;
        types.insert(name, fields);
        Ok(())
    }

    fn alter_type(
        &mut self,
        name: &QualifiedName,
        if_exists: bool,
        change: TypeChange,
    ) -> Result<()> {
        let (keyspace, key) = self.key(name);
        let found = self.types.get_mut(&keyspace).and_then(|types| types.get_mut(&key));
        let Some(fields) = found else {
            if if_exists {
                return Ok(());
            }
            return Err(Error::invalid(
                name.location,
                format!("type {keyspace}.{key} does not exist"),
            ));
        };
        match change {
            TypeChange::Add { if_not_exists, fields: more } => {
                add_fields(fields, more, if_not_exists)
            }
            TypeChange::Rename { if_exists, renames } => {
                for (from, to) in renames {
                    match fields.iter_mut().find(|(field, _)| *field == from.text) {
                        Some((field, _)) => *field = to.text,
                        None if if_exists => {}
                        None => {
                            return Err(Error::invalid(
                                from.location,
                                format!("type {key} has no field {}", from.text),
                            ));
                        }
                    }
                }
                Ok(())
            }
            TypeChange::Retype { field, .. } => {
                Err(Error::invalid(field.location, "fields of a type cannot change their types"))
            }
        }
    }

    fn insert_table(
        &mut self,
        name: &QualifiedName,
        if_not_exists: bool,
        draft: TableDraft,
    ) -> Result<()> {
        let key = self.key(name);
        if let Some((_, known)) = self.tables.get(&key) {
            // DESCRIBE prints a view twice: with its base table, and alone.
            if if_not_exists || known.same_shape(&draft) {
                return Ok(());
            }
            return Err(Error::invalid(
                name.location,
                format!("table {}.{} exists already", key.0, key.1),
            ));
        }
        self.tables.insert(key, (name.location, draft));
        Ok(())
    }

    fn create_table(&mut self, create: CreateTable) -> Result<()> {
        let (keyspace, name) = self.key(&create.name);
        let mut draft = TableDraft::new(&keyspace, &name);
        add_columns(&mut draft, create.columns, false)?;
        for key in &create.primary_keys {
            set_primary_key(&mut draft, key)?;
        }
        set_properties(&mut draft, &create.properties)?;
        self.insert_table(&create.name, create.if_not_exists, draft)
    }

    fn create_view(&mut self, create: CreateView) -> Result<()> {
        let (keyspace, name) = self.key(&create.name);
        let mut base = create.base.clone();
        base.keyspace.get_or_insert_with(|| keyspace.clone());
        let Some((_, table)) = self.tables.get(&self.key(&base)) else {
            return Err(self.no_table(&base));
        };
        let mut draft = TableDraft::new(&keyspace, &name);
        let key_names =
            create.primary_key.partition_key.iter().chain(&create.primary_key.clustering);
        draft.strict_liveness = key_names
            .clone()
            .any(|name| table.columns.get(&name.text).is_some_and(|column| !column.kind.is_key()));
        let wanted: Vec<&Name> = match &create.selection {
            Selection::Items(items) => {
                let names = items.iter().filter_map(|item| match &item.selector {
                    RawSelector::Column(name) => Some(name),
                    _ => None,
                });
                names.chain(key_names).collect()
            }
            Selection::All => Vec::new(),
        };
        for name in &wanted {
            if !table.columns.contains_key(&name.text) {
                return Err(Error::invalid(
                    name.location,
                    format!("table {} has no column {}", table.name, name.text),
                ));
            }
        }
        for (name, column) in &table.columns {
            let is_wanted =
                create.selection == Selection::All || wanted.iter().any(|w| w.text == *name);
            if is_wanted && column.kind != ColumnKind::Static {
                let regular = ColumnDraft {
                    type_text: column.type_text.clone(),
                    kind: ColumnKind::Regular,
                    position: 0,
                    descending: false,
                    location: Some(create.name.location),
                };
                draft.columns.insert(name.clone(), regular);
            }
        }
        set_primary_key(&mut draft, &create.primary_key)?;
        set_properties(&mut draft, &create.properties)?;
        self.insert_table(&create.name, create.if_not_exists, draft)
    }

    fn alter_table(
        &mut self,
        name: &QualifiedName,
        if_exists: bool,
        change: TableChange,
    ) -> Result<()> {
        let key = self.key(name);
        let Some((_, draft)) = self.tables.get_mut(&key) else {
            return if if_exists { Ok(()) } else { Err(self.no_table(name)) };
        };
        match change {
            TableChange::Add { if_not_exists, columns } => {
                add_columns(draft, columns, if_not_exists)
            }
            TableChange::Drop { if_exists, columns, timestamp } => {
                for column in columns {
                    let dropped = drop_column(draft, &column, if_exists, timestamp)?;
                    if dropped && timestamp.is_none() {
                        let text = format!(
                            "column {} is dropped without USING TIMESTAMP: nothing says which of its cells are older, so all are kept",
                            column.text
                        );
                        self.notes.push(Note { location: column.location, text });
                    }
                }
                Ok(())
            }
            TableChange::Rename { if_exists, renames } => {
                renames.into_iter().try_for_each(|(from, to)| rename(draft, &from, to, if_exists))
            }
            TableChange::Retype { name, to } => match draft.columns.get_mut(&name.text) {
                Some(column) => {
                    column.type_text = to.text;
                    Ok(())
                }
                None => Err(no_column(draft, &name)),
            },
            TableChange::Options(list) => {
                draft.id = options::apply(&mut draft.options, &list)?.or(draft.id);
                Ok(())
            }
            TableChange::DropCompactStorage
            | TableChange::Mask { .. }
            | TableChange::Unmask { .. }
            | TableChange::Constraint => Ok(()),
        }
    }

    fn finish(self) -> Result<Schema> {
        let mut schema = Schema { notes: self.notes, ..Schema::default() };
        let none = BTreeMap::new();
        let mut catalog: Option<(String, UserTypeCatalog)> = None;
        for ((keyspace, _), (location, draft)) in &self.tables {
            let types = match &catalog {
                Some((of, types)) if of == keyspace => types,
                _ => {
                    let texts = self.types.get(keyspace).unwrap_or(&none);
                    let types = UserTypeCatalog::resolve(keyspace, texts);
                    &catalog.insert((keyspace.clone(), types)).1
                }
            };
            let finished = draft.finish(types);
            schema.insert(
                finished.map_err(|e| Error::invalid(e.location.unwrap_or(*location), e.what))?,
            );
        }
        Ok(schema)
    }
}
