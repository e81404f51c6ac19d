"""`halcyon compact --service`, without Cassandra: it writes what `halcyon compact` writes, byte for byte, and survives no nonsense."""

import itertools
import json
import shutil
import struct
import time

import pytest

import service
from cases import FORMATS, golden_tables
from service import ASK_BOUND, ASK_OUTPUT, BOUNDS, DONE, FAILED, GO_ON, GRANTED, HELLO, PING, PONG, STOP, TASK, TICK, WELCOME, Service, frame, hello, text

MARSHAL = "org.apache.cassandra.db.marshal."
KEYS = {"int": MARSHAL + "Int32Type", "text": MARSHAL + "UTF8Type"}
# Of default compression, and keys of the types above.
TABLES = {"deletions", "wide_asc", "range_tombstones_asc", "statics", "list_multicell", "map_multicell", "equal_timestamps", "purge", "purge_everything"}
LZ4 = {"class": "LZ4Compressor", "chunk_length_in_kb": "16"}
# What names the node, or lists files, is another's.
COMPARED = ["Data", "Index", "Partitions", "Rows", "Filter", "Summary", "CompressionInfo"]


def cases():
    """Tables all of whose SSTables are compacted."""
    for golden in golden_tables("nb", "oa", "da"):
        if golden.name in TABLES and golden.compacted_inputs() == [golden.folder / "sstables"]:
            yield golden


def columns_of(halcyon, golden):
    """From the headers; the name of a key is of no importance."""
    columns = {}
    for file in golden.data_files():
        header = json.loads(halcyon.run("sstable", "describe", file, "--json").stdout)["header"]
        columns["partition_key", "key"] = KEYS[header["partition_key"]]
        for n, clustering in enumerate(header["clustering"]):
            columns["clustering", f"c{n}"] = KEYS[clustering]
        for kind in ("static", "regular"):
            for column in header[kind + "s"]:
                columns[kind, column["name"]] = column["class"]
    return [(kind, name, type_class) for (kind, name), type_class in columns.items()]


def names(folder, golden):
    """Of outputs, one after the other."""
    for n in itertools.count(1):
        yield folder / f"{golden.version}-{n}-{FORMATS[golden.version]}-Data.db"


def outputs_of(done):
    """Paths and components of DONE."""
    at = 0

    def take(layout):
        nonlocal at
        (value,) = struct.unpack_from(">" + layout, done, at)
        at += struct.calcsize(">" + layout)
        return value

    def string():
        nonlocal at
        length = take("I")
        at += length
        return done[at - length : at].decode()

    return {string(): {string(): (take("Q"), take("?"), take("I")) for _ in range(take("I"))} for _ in range(take("I"))}


@pytest.fixture
def running(halcyon):
    started = Service(halcyon.path)
    yield started
    started.process.kill()
    started.end()


@pytest.mark.parametrize("golden", list(cases()), ids=repr)
def test_writes_what_the_command_writes(halcyon, running, golden, tmp_path):
    ours, theirs = tmp_path / "service", tmp_path / "command"
    ours.mkdir()
    expected = halcyon.compact(golden, theirs, golden.version)
    body = service.task(
        columns_of(halcyon, golden), golden.data_files(), (FORMATS[golden.version], golden.version),
        compression=LZ4, gc_before=golden.facts.get("gc_before", 0), now=int(time.time()),
    )  # fmt: skip
    kind, said, asked = running.run(7, body, names(ours, golden))
    assert kind == DONE, said
    assert asked[ASK_OUTPUT] == len(expected) == len(outputs_of(said))
    for path, command in zip(outputs_of(said), expected):
        for component, (length, _, _) in outputs_of(said)[path].items():
            assert (ours / path.replace("Data.db", component)).stat().st_size == length
        for name in COMPARED:
            one, other = (str(file).replace("-Data.db", f"-{name}.db") for file in (path, command))
            found = [open(file, "rb").read() for file in (one, other) if shutil.os.path.exists(file)]
            assert len(found) in (0, 2) and found[:1] == found[1:], name


def golden_named(name):
    return next(golden for golden in cases() if golden.name == name and golden.version == "oa")


def simple(halcyon, **changes):
    golden = golden_named("deletions")
    given = {"compression": LZ4, "now": int(time.time()), **changes}
    return golden, service.task(columns_of(halcyon, golden), golden.data_files(), ("big", "oa"), **given)


def until_an_output(running, number, body):
    """A task that has asked for its first output, and waits."""
    running.send(TASK, number, body)
    assert running.receive()[:2] == (TICK, number)
    running.send(GO_ON, number, struct.pack(">q", 0))
    assert running.receive()[:2] == (ASK_OUTPUT, number)


@pytest.mark.parametrize("bound, floor, questions", [(service.NOTHING_OVERLAPS, -(2**63), True), (-(2**63), service.NOTHING_OVERLAPS, False)])
def test_a_floor_spares_questions(halcyon, running, tmp_path, bound, floor, questions):
    """Everything is purged, be it that no partition is elsewhere, or that all that is elsewhere is newer."""
    golden = golden_named("purge_everything")
    body = service.task(
        columns_of(halcyon, golden), golden.data_files(), ("big", "oa"), compression=LZ4, gc_before=golden.facts["gc_before"], now=int(time.time())
    )
    kind, said, asked = running.run(1, body, names(tmp_path, golden), bound, floor)
    assert kind == DONE and not outputs_of(said)
    assert (asked[ASK_BOUND] > 0) == questions


def test_ticks_say_what_a_task_uses(halcyon, running, tmp_path):
    """Of processors and memory: the last one of all."""
    golden, body = simple(halcyon)
    kind, *_ = running.run(1, body, names(tmp_path, golden))
    *_, cpu, memory = running.last_tick
    assert kind == DONE and cpu > 0 and memory > 20 << 20


def test_outputs_begin_at_tokens(halcyon, running, tmp_path):
    """Every partition of the table begins an output if each token does."""
    golden, body = simple(halcyon, tokens=range(-(2**63) + 1, 2**63 - 1, 2**50))
    kind, said, asked = running.run(1, body, names(tmp_path, golden))
    assert kind == DONE and asked[ASK_OUTPUT] == len(outputs_of(said)) > 3


def test_an_input_is_damaged(halcyon, running, tmp_path):
    golden, _ = simple(halcyon)
    folder = tmp_path / "inputs"
    shutil.copytree(golden.folder / "sstables", folder)
    damaged = sorted(folder.glob("*-Data.db"))[0]
    damaged.write_bytes(damaged.read_bytes()[:20] + b"\xff" * 8 + damaged.read_bytes()[28:])
    body = service.task(columns_of(halcyon, golden), sorted(folder.glob("*-Data.db")), ("big", "oa"), compression=LZ4)
    kind, said, _ = running.run(1, body, names(tmp_path, golden))
    assert kind == FAILED and said[0] == 2 and str(damaged).encode() in said
    # It keeps serving.
    running.send(PING, 0, b"12345678")
    assert running.receive() == (PONG, 0, b"12345678")


def test_a_stop_needs_no_answer(halcyon, running):
    _, body = simple(halcyon)
    until_an_output(running, 3, body)
    running.send(STOP, 3)
    kind, about, said = running.receive()
    assert (kind, about, said[0]) == (FAILED, 3, 1)


def test_a_task_that_waits_for_memory_says_so(halcyon):
    """Only one fits; the other ticks now and then, until it is stopped."""
    running = Service(halcyon.path, greet=False)
    running.send(HELLO, 0, hello(memory=1))
    assert running.receive()[0] == WELCOME
    _, body = simple(halcyon)
    until_an_output(running, 1, body)
    running.send(TASK, 2, body)
    for _ in range(2):
        assert running.receive()[:2] == (TICK, 2)
        running.send(GO_ON, 2, struct.pack(">q", 0))
    running.send(STOP, 2)
    kind, about, said = running.receive()
    assert (kind, about, said[0]) == (FAILED, 2, 1)
    assert running.end() == (0, "")


def test_a_task_that_cannot_be_done(halcyon, running, tmp_path):
    """Wrong answers fail their task alone; one in another version is not an answer."""
    golden, body = simple(halcyon)
    kind, said, _ = running.run(1, body, iter([tmp_path / "nb-1-big-Data.db"]))
    assert kind == FAILED and said[0] == 4
    until_an_output(running, 2, body)
    running.send(BOUNDS, 2, struct.pack(">qI", 5, 0))
    assert running.receive()[2][0] == 4
    _, unreadable = simple(halcyon)
    kind, said, _ = running.run(4, unreadable.replace(b"oa-1-big", b"oa-9-big"), names(tmp_path, golden))
    assert kind == FAILED
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("nonsense", [
    b"\0\0\0\1\1", b"\xff" * 40, frame(0x7F, 1), frame(GRANTED, 1, text("a") + b"more"), frame(TASK, 1, b"\xff" * 60), frame(HELLO, 0, hello()),
    frame(BOUNDS, 1, b"\xff\xff\xff\xff"), frame(TASK, 1)[:-3],
], ids=repr)  # fmt: skip
def test_nonsense_ends_it(halcyon, nonsense):
    running = Service(halcyon.path)
    running.raw(nonsense)
    status, said = running.end()
    assert status == 3 and "compaction service" in said and "panicked" not in said


def test_the_end_of_input_ends_it(halcyon):
    running = Service(halcyon.path)
    _, body = simple(halcyon)
    until_an_output(running, 1, body)
    assert running.end() == (0, "")


def test_it_speaks_one_version(halcyon):
    running = Service(halcyon.path, greet=False)
    running.send(HELLO, 0, hello(oldest=6, newest=9))
    status, said = running.end()
    assert status == 3 and "versions 6 to 9" in said
