"""What a session does, one thing after the other."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Statement:
    """`form` is what is counted. `is_prepared`: PREPARE and EXECUTE instead of QUERY with values."""

    text: str
    verb: str
    form: str
    values: tuple = ()
    page_size: int | None = None
    is_prepared: bool = False
    is_spoiled: bool = False
    # Names an index or a view that is to be complete before the next step.
    builds: str = ""
    serial: int | None = None
    consistency: int = 1

    @property
    def is_read(self):
        return self.verb == "SELECT"


@dataclass(frozen=True)
class Act:
    """flush, compact: on both servers. kill: Halcyon is killed and started again."""

    name: str


@dataclass
class Session:
    seed: int
    schema: list = field(default_factory=list)
    steps: list = field(default_factory=list)
