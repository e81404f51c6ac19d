"""User-defined functions of a session: of types of its columns, some with the name of a native one."""

from . import kinds
from .kinds import Composed

_NATIVE = ("abs", "max", "count", "to_json", "mask_default", "floor", "todate", "map_keys")


def _thawed(kind):
    """Types of functions are written without `frozen` at the outside."""
    return kind.bare if isinstance(kind, Composed) else kind.cql


class Functions:
    def __init__(self, rng, table):
        self._rng = rng
        self.all = []
        known = [column.kind for column in table.columns if column.kind is not None]
        for number in range(rng.choice((1, 2, 3))):
            name = rng.choice(_NATIVE) if rng.random() < 0.3 else f"fn{number}"
            # An overload of the one before.
            name = self.all[-1][0] if self.all and rng.random() < 0.3 else name
            kind = rng.choice(known) if known and rng.random() < 0.8 else kinds.scalar(rng)
            self.all.append((name, kind))

    def create(self):
        """Each returns what it is given."""
        rng = self._rng
        for name, kind in self.all:
            on_null = rng.choice(("CALLED", "RETURNS NULL"))
            yield f"CREATE OR REPLACE FUNCTION {name} (a {_thawed(kind)}) {on_null} ON NULL INPUT RETURNS {_thawed(kind)} LANGUAGE java AS 'return a;'"

    def call(self, term):
        """Of a selector or a term."""
        return f"{self._rng.choice(self.all)[0]}({term})"

    def returning(self, kind):
        """The names of those whose result is of the type."""
        return [name for name, of in self.all if _thawed(of) == _thawed(kind)]
