"""
Malicious clients: one connection is served all the time, and the server's memory stays bounded.

The server has default settings, but timeouts that fit a slow host, and a memory cgroup of 256 MiB, in which the kernel would kill it. Each
attack runs beside a client that asks one thing after the other; what it waited is printed, not judged.
"""

import contextlib
import random
import resource
import socket
import struct
import threading
import time

import pytest

from cage import Cage
from native import Client
from patience import TIMEOUTS
from server import HOST, Server

CAGE_BYTES = 256 << 20
CONNECTIONS = 10_000
DESCRIPTORS = 400
ROWS = 2_000
HUGE_ROWS = 50
OVERLOADED = 0x1001
# A client that waits longer counts as not served, however slow the host is.
SERVED_SECONDS = 20


def envelope(opcode, body, stream=1):
    return struct.pack(">BBhBi", 4, 0, stream, opcode, len(body)) + body


STARTUP = envelope(1, struct.pack(">H", 1) + b"\x00\x0bCQL_VERSION\x00\x053.0.0")


def query(text, values=(), **named):
    """Flags: with values, with their names."""
    flags = 0x41 if named else 1 if values else 0
    body = struct.pack(">i", len(text)) + text.encode() + struct.pack(">HB", 1, flags)
    pairs = [(struct.pack(">H", len(name)) + name.encode(), value) for name, value in named.items()]
    pairs += [(b"", value) for value in values]
    if pairs:
        body += struct.pack(">H", len(pairs)) + b"".join(name + struct.pack(">i", len(value)) + value for name, value in pairs)
    return envelope(7, body)


def startup(options):
    pairs = b"".join(struct.pack(">H", len(text)) + text for pair in options for text in pair)
    return envelope(1, struct.pack(">H", len(options)) + pairs)


def zeros_as_lz4(count):
    """An LZ4 block of `count` zeros behind its length, as v4 sends a body: a literal, one match, and the last literals."""
    more = count - 1 - 5 - 19
    lengths = b"\xff" * (more // 255) + bytes([more % 255])
    return struct.pack(">I", count) + b"\x1f\x00\x01\x00" + lengths + b"\x50" + b"\x00" * 5


def answer(peer):
    """The opcode of the next answer, and its body."""
    header = _exactly(peer, 9)
    return header[4], _exactly(peer, struct.unpack(">i", header[5:])[0])


def is_refused(opcode, body):
    """Whether it is Cassandra's overload error."""
    return opcode == 0 and struct.unpack(">i", body[:4])[0] == OVERLOADED


def connected(port, started=True):
    peer = socket.create_connection((HOST, port), timeout=SERVED_SECONDS)
    if started:
        peer.sendall(STARTUP)
        assert _exactly(peer, 9)[4] == 2, "READY"
    return peer


def send_to_all(peers, stop, data):
    """Over and over, whether they take it or not."""
    while not stop.is_set():
        for peer in peers:
            if stop.is_set():
                return
            with contextlib.suppress(OSError):
                peer.sendall(data)
        time.sleep(0.05)


def idle(port, peers, _stop):
    """Ten thousand connections that say nothing after STARTUP, or as many as this process may open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # Where the server accepts no more for now, the kernel still does, without an answer.
    with contextlib.suppress(TimeoutError):
        for _ in range(min(CONNECTIONS, most - 500)):
            peers.append(socket.create_connection((HOST, port), timeout=1))
            peers[-1].sendall(STARTUP)
            assert _exactly(peers[-1], 9)[4] == 2, "READY"


def never_reading(port, peers, stop):
    """Large answers that the client does not read."""
    for _ in range(20):
        peers.append(connected(port))
        peers[-1].settimeout(0.2)
    asking = query("SELECT * FROM abuse.large") * 100
    send_to_all(peers, stop, asking)


def slow(port, peers, stop):
    """Large requests that arrive a few bytes at a time and never end."""
    for _ in range(300):
        if stop.is_set():
            return
        with contextlib.suppress(OSError, AssertionError):
            peers.append(connected(port))
            peers[-1].settimeout(0.5)
            peers[-1].sendall(struct.pack(">BBhBi", 4, 0, 1, 7, 5 << 20) + b"x" * 100_000)
    send_to_all(peers, stop, b"x")


def garbage(port, _peers, stop):
    """Random bytes."""
    chance = random.Random(7)
    while not stop.is_set():
        with contextlib.suppress(OSError), connected(port, started=chance.random() < 0.5) as peer:
            peer.sendall(chance.randbytes(20_000))


def wrong_messages(port, peers, stop):
    """Messages of no known kind, as fast as they are taken, their answers never read."""
    for _ in range(5):
        peers.append(connected(port))
        peers[-1].settimeout(0.2)
    wrong = struct.pack(">BBhBi", 4, 0, 1, 0x7F, 0) * 5000
    send_to_all(peers, stop, wrong)


def vanishing(port, _peers, stop):
    """Connections that are reset with requests under way."""
    reset = struct.pack("ii", 1, 0)
    while not stop.is_set():
        with contextlib.suppress(OSError):
            peer = connected(port)
            peer.sendall(query("SELECT * FROM abuse.large") * 10)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            peer.close()


def preparing(port, peers, stop):
    """Ever more prepared statements."""
    peers.append(connected(port))
    number = 0
    while not stop.is_set():
        texts = [f"SELECT * FROM abuse.large WHERE k = {number + n} /*{'x' * 2000}*/" for n in range(50)]
        number += len(texts)
        peers[0].sendall(b"".join(envelope(9, struct.pack(">i", len(t)) + t.encode()) for t in texts))
        for _ in texts:
            body = struct.unpack(">i", _exactly(peers[0], 9)[5:])[0]
            _exactly(peers[0], body)


def first_bytes(port, peers, stop):
    """Very many requests that begin with a part that is not large, and continue byte by byte."""
    for _ in range(1500):
        if stop.is_set():
            return
        with contextlib.suppress(OSError, AssertionError):
            peers.append(connected(port))
            peers[-1].settimeout(0.5)
            peers[-1].sendall(struct.pack(">BBhBi", 4, 0, 1, 7, 300_000) + b"x" * 200_000)
    send_to_all(peers, stop, b"x")


def compressed_bodies(port, peers, stop):
    """Small messages that state large bodies, many at once."""
    body = zeros_as_lz4(6_000_000)
    message = struct.pack(">BBhBi", 4, 1, 1, 7, len(body)) + body
    for _ in range(32):
        peers.append(connected(port, started=False))
        peers[-1].settimeout(0.5)
        peers[-1].sendall(startup([(b"CQL_VERSION", b"3.0.0"), (b"COMPRESSION", b"lz4")]))
        assert _exactly(peers[-1], 9)[4] == 2, "READY"
    send_to_all(peers, stop, message)


def startup_options(port, _peers, stop):
    """Options of STARTUP that would fill the memory if they were kept: refused, each time."""
    many = startup([(b"CQL_VERSION", b"3.0.0")] + [(b"OPTION%d" % n, b"x" * 200) for n in range(60)])
    large = startup([(b"CQL_VERSION", b"3.0.0"), *[(b"OPTION%d" % n, b"x" * 60_000) for n in range(60)]])
    kept = []
    while not stop.is_set():
        for message in (many, large):
            kept.append(connected(port, started=False))
            with contextlib.suppress(OSError):
                kept[-1].sendall(message)
                assert answer(kept[-1])[0] == 0, "an error"
        if len(kept) > 100:
            kept.pop(0).close()


def large_statements(port, peers, stop):
    """Texts of millions of literals, which are far larger when they are parsed: refused."""
    text = f"SELECT * FROM abuse.large WHERE k IN ({'1,' * 2_500_000}1)"
    peers.append(connected(port))
    while not stop.is_set():
        peers[0].sendall(query(text))
        assert is_refused(*answer(peers[0]))


def large_prepared(port, peers, stop):
    """Prepared statements that are far larger than their text."""
    peers.append(connected(port))
    number = 0
    while not stop.is_set():
        number += 1
        text = f"SELECT * FROM abuse.large WHERE k IN ({number}{',1' * 6000})"
        peers[0].sendall(envelope(9, struct.pack(">i", len(text)) + text.encode()))
        answer(peers[0])


def asking(port, peers, stop, text):
    """One client that reads its answers: each is rows or the overload error."""
    peer = connected(port)
    peers.append(peer)
    while not stop.is_set():
        peer.sendall(query(text))
        opcode, body = answer(peer)
        assert opcode == 8 or is_refused(opcode, body), body[:200]


def huge_answers(port, peers, stop):
    """Answers of 50 MB to eight clients at once."""
    run_together([lambda: asking(port, peers, stop, "SELECT * FROM abuse.huge")] * 8)


def huge_sorts(port, peers, stop):
    """Rows that must all be kept to be sorted."""
    keys = ",".join(str(k) for k in range(HUGE_ROWS))
    text = f"SELECT * FROM abuse.huge WHERE k IN ({keys}) ORDER BY c"
    run_together([lambda: asking(port, peers, stop, text)] * 8)


def huge_answers_unread(port, peers, stop):
    """Pages of many megabytes that the client does not read."""
    for _ in range(50):
        peers.append(connected(port))
        peers[-1].settimeout(0.2)
    text = b"SELECT * FROM abuse.huge"
    # Flags: with a page size.
    page = envelope(7, struct.pack(">i", len(text)) + text + struct.pack(">HBi", 1, 4, 5000))
    send_to_all(peers, stop, page)


def large_writes(port, peers, stop):
    """Many writes of a megabyte at once."""
    value = "0x" + "ab" * 1_000_000
    texts = [f"INSERT INTO abuse.blobs (k, v) VALUES ({k}, {value})" for k in range(16)]
    run_together([lambda text=text: asking(port, peers, stop, text) for text in texts])


def indexed_texts(port, peers, stop):
    """Four clients write texts of megabytes, of as many different pieces and words as there can be, under indexes that search within them."""
    rng = random.Random(1)
    letters = "".join(map(chr, range(48, 123))).replace("\\", "")
    any_letters = "".join(rng.choices(letters, k=3_000_000))
    words = " ".join(f"{number:x}" for number in range(400_000))
    texts = [any_letters, words, "a" * 3_000_000, "a " * 1_500_000]
    written = [f"INSERT INTO abuse.texts (k, v, w) VALUES ({k}, '{text}', '{text}')" for k, text in enumerate(texts)]
    asked = [
        f"SELECT k FROM abuse.texts WHERE v LIKE '%{'a' * 30_000}b%'",
        f"SELECT k FROM abuse.texts WHERE w LIKE '%{' '.join(f'{number:x}' for number in range(50))}%'",
    ]
    run_together([lambda text=text: asking(port, peers, stop, text) for text in written + asked])


def costly_statements(port, peers, stop):
    """Statements that are long to parse, to check, to compute or to take apart: each is answered, by whatever answer."""
    sums = ",".join(["v" + "+1" * 200] * 100)
    digits = "1" * 1_000_000
    numbers = ",".join(map(str, range(900)))
    texts = [
        f"INSERT INTO abuse.numbers (k, v) VALUES (1, {'+'.join(['1'] * 249)})",
        f"SELECT {sums} FROM abuse.numbers WHERE k = 1",
        *[f"INSERT INTO abuse.numbers (k, {column}) VALUES (1, {digits})" for column in "vdf"],
        f"SELECT {digits}.5 + d FROM abuse.numbers WHERE k = 1",
        f"INSERT INTO abuse.numbers (k, l) VALUES (1, [{'1,' * 100_000}1])",
        f"INSERT INTO abuse.numbers JSON '{{\"k\": 1, \"l\": [{'1,' * 200_000}1]}}'",
        f"SELECT * FROM abuse.wide WHERE a IN ({numbers}) AND b IN ({numbers})",
        f"SELECT * FROM abuse.wide WHERE a = 1 AND b = 1 AND c IN ({numbers}) AND d IN ({numbers})",
        f"DELETE FROM abuse.wide WHERE a IN ({numbers}) AND b IN ({numbers})",
        f"SELECT {'v,' * 50_000} v FROM abuse.numbers WHERE k = 1",
        f"SELECT {'(' * 1_000_000}",
        f"SELECT v{'+v' * 500_000} FROM abuse.numbers",
    ]
    _ask_all(port, peers, stop, [query(text) for text in texts])


def many_rows(port, peers, stop):
    """Small statements that touch a hundred thousand rows, range tombstones or elements of one partition."""
    few, many = (",".join(map(str, range(count))) for count in (300, 30_000))
    rows = f"p = 1 AND a IN ({few}) AND b IN ({few})"
    own = "abuse.rows WHERE p = 1"
    deletes = " ".join(f"DELETE FROM abuse.ranges WHERE p = 1 AND a = {-a} AND b > 1 AND b < 5;" for a in range(1000))
    inserts = " ".join(f"INSERT INTO abuse.rows (p, a, b, v) VALUES (2, {a}, 1, 1) IF NOT EXISTS;" for a in range(1000))
    texts = [
        f"UPDATE abuse.rows SET v = 1 WHERE {rows}",
        f"SELECT v FROM abuse.rows WHERE {rows}",
        f"SELECT v FROM abuse.rows WHERE {rows} ORDER BY a DESC, b DESC",
        f"SELECT count(*) FROM {own}",
        f"SELECT a, count(*) FROM {own} GROUP BY p, a",
        f"SELECT * FROM {own} ORDER BY a DESC, b DESC LIMIT 5",
        f"SELECT * FROM {own} AND v IN ({many}) ALLOW FILTERING",
        f"DELETE FROM abuse.rows WHERE {rows}",
        f"UPDATE abuse.large SET v = '' WHERE k IN ({many})",
        f"BEGIN UNLOGGED BATCH {deletes} APPLY BATCH",
        f"BEGIN UNLOGGED BATCH {deletes.replace('p = 1', 'p = 2')} APPLY BATCH",
        "SELECT * FROM abuse.ranges WHERE p IN (1, 2)",
        f"BEGIN BATCH {inserts} APPLY BATCH",
        f"UPDATE abuse.ranges SET s = s + {{{many}}} WHERE p = 1",
        "UPDATE abuse.ranges SET s = s + {-1} WHERE p = 1",
        f"UPDATE abuse.numbers SET l = l + [{many}] WHERE k = 2",
        "UPDATE abuse.numbers SET l[20000] = 7 WHERE k = 2",
        "DELETE l[100] FROM abuse.numbers WHERE k = 2",
        "DELETE FROM abuse.numbers WHERE k = 2",
    ]
    _ask_all(port, peers, stop, [query(text) for text in texts])


def costly_values(port, peers, stop):
    """Small statements with large values: numbers of a million digits, lists and JSON of a million elements."""
    number = b"\x71" * 400_000
    decimal = b"\x00\x00\x00\x05" + number
    integers = struct.pack(">i", 200_000) + struct.pack(">ii", 4, 1) * 200_000
    asked = [
        ("INSERT INTO abuse.numbers (k, v) VALUES (1, (varint)? * (varint)?)", number, number),
        ("INSERT INTO abuse.numbers (k, v) VALUES (1, (varint)? / (varint)?)", number, number[:200_000]),
        ("INSERT INTO abuse.numbers (k, d) VALUES (1, (decimal)? % (decimal)?)", decimal, decimal[:200_000]),
        ("SELECT CAST((varint)? AS text) FROM abuse.numbers WHERE k = 1", number),
        ("SELECT to_json((decimal)?) FROM abuse.numbers WHERE k = 1", decimal),
        ("SELECT exp((decimal)?) FROM abuse.numbers WHERE k = 1", decimal[:404]),
        (f"SELECT {','.join(['(varint)? / (varint)?'] * 100)} FROM abuse.numbers WHERE k = 1", *[number[:16_000], number[:8_000]] * 100),
        ("INSERT INTO abuse.numbers (k, l) VALUES (1, ?)", integers),
        ("SELECT * FROM abuse.wide WHERE a IN ? AND b IN ?", integers, integers),
        ("INSERT INTO abuse.numbers JSON ?", b'{"k": 1, "l": [' + b"1," * 500_000 + b"1]}"),
    ]
    _ask_all(port, peers, stop, [query(text, values) for text, *values in asked])


def repeated_values(port, peers, stop):
    """Statements that name a value of 400 kB thousands of times: refused."""
    value, often = b"\x71" * 400_000, 5_000
    keys = ",".join(map(str, range(often)))
    inserts = " ".join(f"INSERT INTO abuse.blobs (k, v) VALUES ({k}, :a)" for k in range(often // 5))
    selected = ["v", "to_json(v)", "max(v)", "(blob):a"]
    lists = [",".join([text] * often) for text in selected]
    own = "FROM abuse.blobs WHERE k = -1"
    texts = [
        *[f"SELECT {text} {own}" for text in lists],
        *[f"SELECT ({text}) {own}" for text in lists],
        f"SELECT [{lists[0]}] {own}",
        f"SELECT JSON {','.join(f'v AS v{n}' for n in range(often))} {own}",
        f"SELECT k {own} AND v IN ({','.join([':a'] * often)}) ALLOW FILTERING",
        f"BEGIN UNLOGGED BATCH {inserts} APPLY BATCH",
        f"UPDATE abuse.blobs SET v = :a WHERE k IN ({keys})",
    ]
    peer = connected(port)
    peer.sendall(query("INSERT INTO abuse.blobs (k, v) VALUES (-1, :a)", a=value))
    assert answer(peer)[0] == 8
    peer.close()
    _ask_all(port, peers, stop, [query(text, a=value) for text in texts])


def _ask_all(port, peers, stop, messages):
    """Four clients, each of which asks one thing after the other."""
    def ask(first):
        peer = connected(port)
        peers.append(peer)
        number = first
        while not stop.is_set():
            peer.sendall(messages[number % len(messages)])
            answer(peer)
            number += 1
    run_together([lambda first=first: ask(first) for first in range(4)])


def run_together(jobs):
    """Raises the first failure of any of them."""
    failed = []

    def run(job):
        try:
            job()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


class Closed(Exception):
    """The server has closed the connection."""


def _exactly(peer, count):
    data = b""
    while len(data) < count:
        more = peer.recv(count - len(data))
        if not more:
            raise Closed
        data += more
    return data


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) >> 10


def fill(port):
    client = Client(port)
    client.query(
        "CREATE KEYSPACE abuse WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    client.query("CREATE TABLE abuse.large (k int PRIMARY KEY, v text)")
    client.query("CREATE TABLE abuse.blobs (k int PRIMARY KEY, v blob)")
    client.query("CREATE TABLE abuse.texts (k int PRIMARY KEY, v text, w text)")
    for column, more in [("v", ""), ("w", ", 'analyzed': 'true', 'tokenization_normalize_lowercase': 'true'")]:
        options = f"{{'mode': 'CONTAINS'{more}}}"
        client.query(f"CREATE CUSTOM INDEX ON abuse.texts ({column}) USING 'org.apache.cassandra.index.sasi.SASIIndex' WITH OPTIONS = {options}")
    client.query("CREATE TABLE abuse.numbers (k int PRIMARY KEY, v varint, d decimal, f double, l list<int>)")
    client.query("INSERT INTO abuse.numbers (k, v, d) VALUES (1, 1, 1)")
    client.query("CREATE TABLE abuse.wide (a int, b int, c int, d int, PRIMARY KEY ((a, b), c, d))")
    client.query("CREATE TABLE abuse.rows (p int, a int, b int, v int, PRIMARY KEY (p, a, b))")
    client.query("CREATE TABLE abuse.ranges (p int, a int, b int, s set<int> STATIC, PRIMARY KEY (p, a, b))")
    client.query("CREATE TABLE abuse.huge (k int, c int, v blob, PRIMARY KEY (k, c))")
    for k in range(ROWS):
        client.query(f"INSERT INTO abuse.large (k, v) VALUES ({k}, '{'x' * 500}')")
    for k in range(HUGE_ROWS):
        client.query(f"INSERT INTO abuse.huge (k, c, v) VALUES ({k}, 0, 0x{'ab' * 1_000_000})")
    client.close()


@contextlib.contextmanager
def caged(binary, folder):
    """A server in a memory cgroup, with data."""
    try:
        cage = Cage(folder.name, CAGE_BYTES)
    except OSError as why:
        pytest.skip(f"no memory cgroup can be made, which needs root and its controller: {why}")
    config = folder / "cassandra.yaml"
    config.write_text(f"sasi_indexes_enabled: true\n{TIMEOUTS}", encoding="utf-8")
    server = Server(binary, folder, "--config", config, before=cage.enter).start()
    try:
        fill(server.port)
        yield server
        print(f"at most {cage.peak_mib()} MiB were charged")
    finally:
        server.close()
        cage.close()


@pytest.fixture(scope="module")
def attacked(request, tmp_path_factory):
    with caged(request.config.getoption("--halcyon"), tmp_path_factory.mktemp("attacked")) as server:
        yield server


ATTACKS = [
    never_reading, slow, first_bytes, garbage, wrong_messages, vanishing, preparing, compressed_bodies, startup_options,
    large_statements, large_prepared, huge_answers, huge_sorts, huge_answers_unread, large_writes, indexed_texts,
    costly_statements, many_rows, costly_values, repeated_values, idle,
]
# They take turns, and are slowed down: no client is disconnected.
PATIENT = [large_writes, indexed_texts, costly_statements, many_rows, costly_values, repeated_values]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_others_are_served(attacked, attack):
    others_are_served(attacked, attack, seconds=4)


@pytest.mark.timeout(300)
@pytest.mark.seeds(2)
def test_attacks_in_any_order(request, tmp_path, seed):
    """What an attack leaves behind, in memory or of connections that wait, does not help the next one."""
    attacks = random.Random(seed).sample(ATTACKS, 8)
    with caged(request.config.getoption("--halcyon"), tmp_path) as server:
        for attack in attacks:
            others_are_served(server, attack, seconds=2)


def others_are_served(server, attack, seconds):
    before, said = resident_mib(server.pid), len(server.said())
    peers, stop, failed, closed = [], threading.Event(), [], []

    def run():
        try:
            attack(server.port, peers, stop)
        except Closed:
            closed.append(True)
        except Exception as error:  # told by the test
            failed.append(error)

    client, waits, most = Client(server.port), [], 0
    thread = threading.Thread(target=run)
    thread.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end or (thread.is_alive() and attack is idle):
        began = time.monotonic()
        columns, rows, _ = client.query("SELECT v FROM abuse.large WHERE k = 1")
        assert len(rows) == 1 and columns
        waits.append(time.monotonic() - began)
        most = max(most, resident_mib(server.pid))
        time.sleep(0.001)
    stop.set()
    thread.join(timeout=3 * SERVED_SECONDS)
    assert not thread.is_alive(), f"{attack.__name__} does not end"
    for peer in peers:
        peer.close()
    client.close()
    waits.sort()
    told = [waits[len(waits) * part // 100] * 1000 for part in (50, 99)]
    print(f"{attack.__name__}: {len(waits)} requests, p50 {told[0]:.2f} ms, p99 {told[1]:.2f} ms, {before} to {most} MiB")
    assert not failed, (attack.__name__, failed)
    # A client that takes more memory than its share is disconnected, or refused: never without a word in the log.
    words = ("is disconnected: ", "breached limit", "accepts no connections for now: ")
    assert not closed or attack not in PATIENT and any(word in server.said()[said:] for word in words), attack.__name__
    # Its log says what it did about them, and nothing of a failure of its own.
    assert "ERROR" not in server.said(), server.said()


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


def test_descriptors_run_out(request, tmp_path):
    """More connections than the server may open: who is connected is served and writes, and the next are when there is room again."""
    config = tmp_path / "cassandra.yaml"
    # Segments and memtables are small, so that the log and flushes need files all the time.
    config.write_text("commitlog_segment_size: 1MiB\nmemtable_heap_space: 4MiB\n")
    server = Server(request.config.getoption("--halcyon"), tmp_path, "--config", config, before=few_descriptors).start()
    try:
        client = Client(server.port)
        client.query("CREATE KEYSPACE few WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.query("CREATE TABLE few.blobs (k int PRIMARY KEY, v blob)")
        peers = [socket.create_connection((HOST, server.port), timeout=SERVED_SECONDS) for _ in range(DESCRIPTORS + 100)]
        for k in range(100):
            client.query(f"INSERT INTO few.blobs (k, v) VALUES ({k}, 0x{'cd' * 200_000})")
        assert "accepts no connections for now: file descriptors are short" in server.said(), server.said()
        for peer in peers:
            peer.close()
        fresh = Client(server.port)
        _, rows, _ = fresh.query("SELECT k FROM few.blobs")
        assert len(rows) == 100
        fresh.close()
        client.close()
        assert server.stop() == 0, server.said()
    finally:
        server.close()
