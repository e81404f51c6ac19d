"""All tables of the corpus, by theme."""

from . import cell_types, containers, counters, deletions, expiry, merging, shapes, storage, wide

THEMES = (cell_types, containers, counters, deletions, expiry, merging, shapes, storage, wide)


def all_tables():
    tables = [table for theme in THEMES for table in theme.tables()]
    names = [table.name for table in tables]
    assert len(names) == len(set(names)), "two tables of one name"
    return tables
