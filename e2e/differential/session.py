"""A schema and what is done with it, all from one seed."""

import random

from .definitions import Definer
from .functions import Functions
from .schema import CLUSTERING, PARTITION, Structs, Table
from .selects import Reader
from .spoiled import spoil
from .step import Act, Session, Statement
from .writes import Writer

_SHAPES = ("plain",) * 13 + ("counter",) * 3 + ("compact",) + ("indexed",) * 3 + ("viewed",)
# So many of the last reads are asked again after a flush and a kill.
_AGAIN = 16


def make(seed):
    rng = random.Random(seed)
    session = Session(seed)
    structs = Structs(rng)
    shape = rng.choice(_SHAPES)
    table = Table(rng, "t", shape, structs)
    is_stamped = rng.random() < 0.6 and shape != "counter"
    functions = Functions(rng, table) if rng.random() < 0.15 else None
    session.schema = [*structs.create(), table.create(), *(functions.create() if functions else ())]
    writer = Writer(rng, table, is_stamped, functions)
    readers = [Reader(rng, table, functions=functions)]
    late = []
    if shape == "indexed":
        made = [Statement(text, "CREATE", "index", builds=name) for text, name in table.indexes()]
        late = made if rng.random() < 0.5 else []
        session.steps += [] if late else made
    if shape == "viewed":
        text, name = table.view()
        session.steps.append(Statement(text, "CREATE", "view", builds=name))
        readers.append(Reader(rng, table, name))
    definer = Definer(rng, table, structs) if rng.random() < 0.15 else None
    _fill(rng, session, structs, (writer, definer), readers, late)
    return session


def _fill(rng, session, structs, writers, readers, late):
    steps, reads = session.steps, []
    writer, definer = writers
    # Of keys that are equal and have not the same bytes, the one or the other is shown.
    keys = " ".join(column.kind.cql for column in writer.table.of(PARTITION, CLUSTERING))
    grows = structs.all and not any(name in keys for name, _ in structs.all)
    count = rng.randrange(60, 200)
    acts = sorted(rng.sample(range(count // 4, count), rng.choice((0, 1, 1, 2))))
    for number in range(count):
        if grows and rng.random() < 0.01:
            steps.append(Statement(structs.grow(), "ALTER", "type"))
        if definer and rng.random() < 0.25:
            step = definer.any()
            steps.append(spoil(rng, step) if rng.random() < 0.1 else step)
        is_write = rng.random() < (0.85 if number < 15 else 0.5)
        is_spoiled = rng.random() < 0.12
        step = writer.any(is_spoiled) if is_write else rng.choice(readers).any(is_spoiled)
        # Without its columns, a DELETE of counters would be one of rows (writes.py).
        may_lose_words = not (writer.table.is_counter and step.verb == "DELETE")
        steps.append(spoil(rng, step) if is_spoiled and may_lose_words and rng.random() < 0.5 else step)
        if not is_write and not is_spoiled:
            reads.append(step)
        if number == count // 2:
            steps += late
        if number in acts:
            steps.append(Act(rng.choice(("flush",) * 12 + ("kill",) * 3 + ("compact",))))
            steps += reads[-_AGAIN:]
    steps.append(Statement(f"SELECT * FROM {writer.table.name}", "SELECT", "everything"))
