//! The changes that statements make to one draft.

use halcyon_model::schema::ColumnKind;

use super::{ColumnDraft, DroppedDraft, FieldTexts, TableDraft, options};
use halcyon_syntax::ast::{ColumnText, Name, PrimaryKey, Properties, TypeText};
use halcyon_syntax::{Error, Result};

pub(super) fn add_fields(
    fields: &mut FieldTexts,
    more: Vec<(Name, TypeText)>,
    if_not_exists: bool,
) -> Result<()> {
    for (name, field_type) in more {
        if fields.iter().any(|(known, _)| *known == name.text) {
            if if_not_exists {
                continue;
            }
            return Err(Error::invalid(
                name.location,
                format!("field {} exists already", name.text),
            ));
        }
        fields.push((name.text, field_type.text));
    }
    Ok(())
}

pub(super) fn no_column(draft: &TableDraft, name: &Name) -> Error {
    let known: Vec<&str> = draft.columns.keys().map(String::as_str).take(20).collect();
    let what =
        format!("table {} has no column {} (it has {})", draft.name, name.text, known.join(", "));
    Error::invalid(name.location, what)
}

pub(super) fn add_columns(
    draft: &mut TableDraft,
    columns: Vec<ColumnText>,
    if_not_exists: bool,
) -> Result<()> {
    for column in columns {
        if draft.columns.contains_key(&column.name.text) {
            if if_not_exists {
                continue;
            }
            let what = format!("table {} has a column {} already", draft.name, column.name.text);
            return Err(Error::invalid(column.name.location, what));
        }
        let kind = if column.is_static { ColumnKind::Static } else { ColumnKind::Regular };
        let added = ColumnDraft {
            type_text: column.column_type.text,
            kind,
            position: 0,
            descending: false,
            location: Some(column.column_type.location),
        };
        draft.columns.insert(column.name.text, added);
    }
    Ok(())
}

pub(super) fn drop_column(
    draft: &mut TableDraft,
    name: &Name,
    if_exists: bool,
    timestamp: Option<i64>,
) -> Result<bool> {
    let Some(column) = draft.columns.get(&name.text) else {
        return if if_exists { Ok(false) } else { Err(no_column(draft, name)) };
    };
    if column.kind.is_key() {
        let what = format!("column {} is part of the primary key and cannot be dropped", name.text);
        return Err(Error::invalid(name.location, what));
    }
    let dropped = DroppedDraft {
        name: name.text.clone(),
        type_text: column.type_text.clone(),
        kind: column.kind,
        location: column.location,
        dropped_time: timestamp.unwrap_or(i64::MIN),
    };
    // A column that is dropped again: the last time counts.
    draft.dropped.retain(|known| known.name != name.text);
    draft.dropped.push(dropped);
    draft.columns.remove(&name.text);
    Ok(true)
}

pub(super) fn rename(draft: &mut TableDraft, from: &Name, to: Name, if_exists: bool) -> Result<()> {
    if draft.columns.contains_key(&to.text) {
        let what = format!("table {} has a column {} already", draft.name, to.text);
        return Err(Error::invalid(to.location, what));
    }
    match draft.columns.remove(&from.text) {
        Some(column) => {
            draft.columns.insert(to.text, column);
            Ok(())
        }
        None if if_exists => Ok(()),
        None => Err(no_column(draft, from)),
    }
}

pub(super) fn set_primary_key(draft: &mut TableDraft, key: &PrimaryKey) -> Result<()> {
    let kinds =
        [(ColumnKind::PartitionKey, &key.partition_key), (ColumnKind::Clustering, &key.clustering)];
    for (kind, names) in kinds {
        for (position, name) in names.iter().enumerate() {
            let Some(column) = draft.columns.get_mut(&name.text) else {
                return Err(no_column(draft, name));
            };
            if column.kind != ColumnKind::Regular {
                let what = format!("column {} cannot be in the primary key (again)", name.text);
                return Err(Error::invalid(name.location, what));
            }
            column.kind = kind;
            column.position = position;
        }
    }
    Ok(())
}

pub(super) fn set_properties(draft: &mut TableDraft, properties: &Properties) -> Result<()> {
    for (name, descending) in &properties.clustering_order {
        match draft.columns.get_mut(&name.text) {
            Some(column) if column.kind == ColumnKind::Clustering => {
                column.descending = *descending
            }
            _ => {
                let what = format!(
                    "CLUSTERING ORDER BY names {}, which is not a clustering column",
                    name.text
                );
                return Err(Error::invalid(name.location, what));
            }
        }
    }
    draft.id = options::apply(&mut draft.options, &properties.options)?.or(draft.id);
    draft.options.compact_storage = properties.compact_storage;
    Ok(())
}
