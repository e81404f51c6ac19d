"""How a table of the corpus is described."""

from dataclasses import dataclass, field

KEYSPACE = "corpus"


class TrainDictionary:
    """Makes 6.0 train a compression dictionary from what the table has so far."""


@dataclass
class Table:
    """
    A table, and what is written into it.

    Each round is flushed into an SSTable of its own. A round is an iterable of statements; in each,
    `$t` stands for the table's name. A statement is a string, a (string with %s, values) pair,
    or `TrainDictionary`.
    """

    name: str
    covers: str
    columns: str
    rounds: list
    options: str = ""
    types: list = field(default_factory=list)
    setup: list = field(default_factory=list)
    # Views and legacy indexes: (kind, name), kept as tables of their own.
    derived: list = field(default_factory=list)
    # The rounds whose SSTables are compacted; the others stay and overlap. None: all.
    compact_rounds: tuple | None = None
    # Small enough, and telling enough, to be committed under testdata/.
    golden: bool = False
    # Written by these versions only, e.g. features that nb's node rejects.
    versions: tuple = ("nb", "oa", "da", "pa", "ea")

    def create(self):
        options = f" WITH {self.options}" if self.options else ""
        return f"CREATE TABLE {self.name} ({self.columns}){options}"


def rounds(*groups):
    """Readable shorthand: each argument is the list of statements of one round."""
    return list(groups)
