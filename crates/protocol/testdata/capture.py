"""Records the traffic of this folder: the Python driver through a proxy, and malformed bytes by hand.

    python capture.py PORT        a fresh Apache Cassandra 5.0.9 on loopback; needs cassandra-driver, lz4, python-snappy

Each `driver-*.txt` is one connection: `>` what the client sent, `<` what Cassandra answered, in hex. `malformed.txt` has one
case in three lines: name and version, what was sent after the handshake, what came back and whether Cassandra then closed.
"""

import pathlib
import socket
import struct
import sys
import threading
import time
from decimal import Decimal

HERE = pathlib.Path(__file__).parent
PROVENANCE = "# Apache Cassandra 5.0.9, recorded by capture.py\n"
SCHEMA = [
    "CREATE KEYSPACE IF NOT EXISTS p WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE IF NOT EXISTS p.address (street text, zips frozen<set<int>>)",
    "CREATE TABLE IF NOT EXISTS p.t (k int, c timeuuid, s text static, a ascii, bi bigint, bl blob, bo boolean, da date, de decimal,"
    " do double, du duration, f float, ine inet, li list<int>, fli frozen<list<text>>, m map<text, frozen<list<int>>>, si smallint, se set<uuid>,"
    " ti time, ts timestamp, tu tuple<int, text>, ty tinyint, u frozen<address>, v vector<float, 3>, va varint,"
    " PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)",
    "CREATE TABLE IF NOT EXISTS p.counts (k int PRIMARY KEY, n counter)",
    "CREATE TABLE IF NOT EXISTS p.two (a int, b int, v text, PRIMARY KEY ((a, b)))",
]
UUID = "50554d6e-29bb-11e5-b345-feff819cdc9f"


class Proxy:
    """One listener; each accepted connection keeps its own log of chunks."""

    def __init__(self, target):
        self.target = target
        self.logs = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.target))
            log = []
            self.logs.append(log)
            for source, sink, mark in ((client, server, ">"), (server, client, "<")):
                threading.Thread(target=self._pump, args=(source, sink, mark, log), daemon=True).start()

    @staticmethod
    def _pump(source, sink, mark, log):
        try:
            while data := source.recv(1 << 16):
                log.append((mark, data))
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def drive(port, version, compression):
    from cassandra import ConsistencyLevel as CL
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import AddressTranslator, WhiteListRoundRobinPolicy
    from cassandra.query import BatchStatement, SimpleStatement

    proxy = Proxy(port)
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy(["127.0.0.1"]), request_timeout=30)
    cluster = Cluster(
        ["127.0.0.1"], port=proxy.port, protocol_version=version, compression=compression or False,
        schema_metadata_enabled=False, token_metadata_enabled=False, status_event_refresh_window=-1,
        schema_event_refresh_window=-1, topology_event_refresh_window=-1,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile}, idle_heartbeat_interval=0, monitor_reporting_enabled=False,
    )
    session = cluster.connect()
    if not compression:
        for statement in SCHEMA:
            session.execute(statement)

    def fails(statement, values=None):
        try:
            session.execute(statement, values)
        except Exception as error:
            return error
        raise AssertionError(statement)

    session.execute("USE p")
    session.execute(f"INSERT INTO t (k, c, s, a, bi, bl, bo, da, de, do, du, f, ine, li, fli, m, si, se, ti, ts, tu, ty, u, v, va) VALUES"
                    f" (1, {UUID}, 'static', 'ascii', 2, 0xcafe, true, '2026-01-02', 1.50, 2.5, 1y2mo3d, 0.5, '127.0.0.1', [1, 2], ['x'],"
                    f" {{'k': [3]}}, 4, {{{UUID}}}, '10:11:12', 1000, (5, 'five'), 6, {{street: 'road', zips: {{7}}}}, [1, 2, 3], 123456789012345678901)")
    for value in range(3):
        session.execute("INSERT INTO p.t (k, c) VALUES (%s, now())", (value + 10,))
    session.execute("SELECT * FROM p.t WHERE k = 1")
    session.execute("SELECT k, du AS d, count(*) FROM p.t WHERE k = 99")
    paged = SimpleStatement("SELECT k FROM p.t", fetch_size=2, consistency_level=CL.LOCAL_ONE)
    len(list(session.execute(paged)))
    insert = session.prepare("INSERT INTO p.two (a, b, v) VALUES (?, ?, ?)")
    session.execute(insert, (1, 2, "drei"))
    named = session.prepare("UPDATE two SET v = :v WHERE b = :b AND a = :a")
    session.execute(named, {"a": 1, "b": 2, "v": None})
    select = session.prepare("SELECT * FROM p.t WHERE k = ?")
    session.execute(select, (1,))
    session.execute(select, (1,))
    count = session.prepare("UPDATE p.counts SET n = n + ? WHERE k = ?")
    session.execute(count, (5, 1))
    session.execute("SELECT * FROM p.counts")
    batch = BatchStatement(consistency_level=CL.QUORUM)
    batch.add(insert, (3, 4, "vier"))
    batch.add(SimpleStatement("INSERT INTO p.two (a, b, v) VALUES (5, 6, 'sechs')"))
    session.execute(batch)
    lwt = SimpleStatement("INSERT INTO p.two (a, b, v) VALUES (3, 4, 'x') IF NOT EXISTS", serial_consistency_level=CL.LOCAL_SERIAL)
    session.execute(lwt)
    session.execute("SELECT v FROM p.two", trace=True).get_query_trace if version >= 4 else None
    session.execute(f"CREATE TABLE p.gone{version} (k int PRIMARY KEY)")
    session.execute(f"ALTER TABLE p.gone{version} ADD v text")
    session.execute(f"DROP TABLE p.gone{version}")
    session.execute(f"CREATE FUNCTION p.f{version}(a int, b text) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a / 0;'")
    fails(f"SELECT f{version}(a, v) FROM p.two WHERE a = 3 AND b = 4")
    session.execute(f"DROP FUNCTION p.f{version}")
    fails("SELEC")
    fails("SELECT * FROM p.nothing")
    fails("CREATE TABLE p.two (a int PRIMARY KEY)")
    fails("CREATE KEYSPACE p WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    fails(SimpleStatement("SELECT * FROM p.two", consistency_level=CL.THREE))
    fails("CREATE TABLE p.bad (k int PRIMARY KEY) WITH gc_grace_seconds = -1")
    if compression:
        large = "a" * 300_000
        session.execute(insert, (7, 8, large))
        session.execute("SELECT v FROM p.two WHERE a = 7 AND b = 8")
        session.execute("DELETE FROM p.two WHERE a = 7 AND b = 8")
    session.execute("SELECT count(*) FROM p.two")
    if version >= 5:
        session.execute(SimpleStatement("SELECT v FROM two", keyspace="p"))
    changed = f"p.changed_{version}_{compression or 'none'}"
    session.execute(f"CREATE TABLE {changed} (k int PRIMARY KEY)")
    session.execute(f"INSERT INTO {changed} (k) VALUES (1)")
    everything = session.prepare(f"SELECT * FROM {changed}")
    session.execute(everything)
    session.execute(f"ALTER TABLE {changed} ADD v text")
    session.execute(everything)
    session.execute(everything)
    session.execute(f"DROP TABLE {changed}")
    if version >= 4:
        session.execute(named, {"a": 1, "b": 2})
        session.execute("SELECT v FROM p.two", custom_payload={"k": b"v"})
    insert.query_id = b"0123456789abcdef"
    try:
        session.execute(insert, (1, 2, "x"))
    except Exception:
        pass
    time.sleep(0.3)
    logs = list(proxy.logs)
    cluster.shutdown()
    name = f"driver-v{version}-{compression or 'none'}.txt"
    # The pool's connection; the first one is the driver's own control connection.
    chunks = max(logs, key=lambda log: any(b"SELEC" in d or b"carbonara" in d for _, d in log) * 1000 + len(log))
    write(name, chunks)
    if version == 5 and not compression:
        write("driver-v5-control.txt", logs[0])


def write(name, chunks):
    lines, last = [], None
    for mark, data in chunks:
        if mark == last:
            lines[-1] += data.hex()
        else:
            lines.append(f"{mark} {data.hex()}")
        last = mark
    (HERE / name).write_text(PROVENANCE + "\n".join(lines) + "\n")


def envelope(version, stream, opcode, body=b"", flags=0, length=None):
    return struct.pack(">BBhBi", version, flags, stream, opcode & 0xFF, len(body) if length is None else length) + body


def crc24(data):
    crc = 0x875060
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1974F0B
    return crc.to_bytes(3, "little")


def frame(payload, contained=True, spoil=None):
    import zlib

    header = (len(payload) | (contained << 17)).to_bytes(3, "little")
    header += crc24(header)
    trailer = zlib.crc32(payload, zlib.crc32(b"\xfa\x2d\x55\xca")).to_bytes(4, "little")
    if spoil == "header":
        header = header[:3] + bytes([header[3] ^ 1]) + header[4:]
    if spoil == "body":
        trailer = bytes([trailer[0] ^ 1]) + trailer[1:]
    return header + payload + trailer


def text(value):
    return struct.pack(">H", len(value)) + value.encode()


def long_text(value):
    return struct.pack(">i", len(value)) + value.encode()


STARTUP = struct.pack(">H", 1) + text("CQL_VERSION") + text("3.0.0")
QUERY = 7


def query(version, flags=0, consistency=1, rest=b"", cql="SELECT k FROM p.t"):
    return long_text(cql) + struct.pack(">H", consistency) + (struct.pack(">I", flags) if version >= 5 else bytes([flags & 0xFF])) + rest


def bare_cases():
    """Before STARTUP."""
    for version in (0, 1, 2, 7, 65, 66, 127):
        yield f"version {version}", envelope(version, 0x0105, 5)
    yield "version 6 without beta", envelope(6, 7, 5)
    yield "version 9 alone", b"\x09"
    yield "response", envelope(0x84, 7, 5)
    yield "error from a client", envelope(0x84, 7, 0, b"\0\0\0\0\0\0")
    yield "opcode 17", envelope(4, 7, 17)
    yield "opcode 127", envelope(4, 7, 127)
    yield "query before startup", envelope(4, 7, 7, query(4))
    yield "no cql version", envelope(4, 7, 1, b"\0\0")
    yield "cql version 2", envelope(4, 7, 1, struct.pack(">H", 1) + text("CQL_VERSION") + text("2.0.0"))
    yield "cql version x", envelope(4, 7, 1, struct.pack(">H", 1) + text("CQL_VERSION") + text("x"))
    yield "compression x", envelope(4, 7, 1, struct.pack(">H", 2) + text("CQL_VERSION") + text("3.0.0") + text("COMPRESSION") + text("Gzip"))
    yield "snappy in v5", envelope(5, 7, 1, struct.pack(">H", 2) + text("CQL_VERSION") + text("3.0.0") + text("COMPRESSION") + text("snappy"))
    yield "short startup", envelope(4, 7, 1, b"\0\1\0\x0bCQL")


def body_cases(version):
    """After STARTUP; each is an opcode and a body."""
    yield "credentials", 4, b"\0\0"
    yield "consistency 12", QUERY, query(version, consistency=12)
    yield "timestamp", QUERY, query(version, 0x20, rest=struct.pack(">q", -(1 << 63)))
    yield "value too long", QUERY, query(version, 1, rest=struct.pack(">Hi", 1, 100) + b"abc")
    yield "value length -3", QUERY, query(version, 1, rest=struct.pack(">Hi", 1, -3))
    yield "text too long", QUERY, struct.pack(">i", 1000) + b"SELECT"
    yield "text of length -5", QUERY, struct.pack(">i", -5)
    yield "text not UTF-8", QUERY, struct.pack(">i", 3) + b"a\xffb" + b"\0" * 6
    yield "name too long", QUERY, query(version, 0x41, rest=struct.pack(">HH", 1, 100) + b"abc")
    yield "batch type 3", 13, b"\3\0\0" + struct.pack(">H", 1) + (b"\0\0\0\0" if version >= 5 else b"\0")
    yield "batch kind 2", 13, b"\0\0\1\2"
    yield "batch kind 255", 13, b"\0\0\1\xff"
    yield "event", 11, struct.pack(">H", 1) + text("nothing")
    yield "id too long", 10, struct.pack(">H", 100)
    yield "trailing bytes", 11, struct.pack(">H", 0) + b"trailing"
    yield "paging state too long", QUERY, query(version, 8, rest=struct.pack(">i", 100))


def started_cases(version):
    for name, opcode, body in body_cases(version):
        message = envelope(version, 9, opcode, body)
        yield name, frame(message) if version >= 5 else message
    other = 4 if version != 4 else 3
    yield "other version", (frame if version >= 5 else bytes)(envelope(other, 9, 5))
    yield "unknown version", (frame if version >= 5 else bytes)(envelope(9, 9, 5))
    yield "unknown opcode", (frame if version >= 5 else bytes)(envelope(version, 9, 33))
    yield "wrong direction", (frame if version >= 5 else bytes)(envelope(version | 0x80, 9, 7))
    if version == 3:
        yield "custom payload", envelope(3, 9, 5, b"\0\0", flags=4)
    if version >= 5:
        yield "header sum", frame(envelope(5, 9, 5), spoil="header")
        yield "payload sum", frame(envelope(5, 9, 5), spoil="body")
        yield "negative length", frame(envelope(5, 9, 5, length=-1))
        yield "two bad ones", frame(envelope(5, 9, 33) + envelope(5, 10, 34))
        yield "bad, good, bad", frame(envelope(5, 9, 33) + envelope(5, 10, 11, b"\0\0") + envelope(5, 11, 34))
        yield "half a header", frame(b"\5\0\0")
        yield "body beyond the frame", frame(envelope(5, 9, 7, b"abc", length=50))
        yield "bad header of a large one", frame(envelope(5, 9, 33, b"abc", length=50), contained=False)


def exchange(port, handshake, sent):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(1.0)
        if handshake:
            connection.sendall(envelope(handshake, 0, 1, STARTUP))
            assert connection.recv(100)[4] == 2
            time.sleep(0.05)
        connection.sendall(sent)
        got, closed = b"", False
        try:
            while True:
                data = connection.recv(1 << 16)
                if not data:
                    closed = True
                    break
                got += data
        except ConnectionResetError:
            closed = True
        except TimeoutError:
            pass
        return got, closed


def malformed(port):
    lines = [PROVENANCE]
    cases = [(0, name, sent) for name, sent in bare_cases()]
    cases += [(version, name, sent) for version in (3, 4, 5) for name, sent in started_cases(version)]
    results = [None] * len(cases)

    def run(index):
        handshake, _, sent = cases[index]
        results[index] = exchange(port, handshake, sent)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (handshake, name, sent), (got, closed) in zip(cases, results):
        lines.append(f"{handshake} {name}\n> {sent.hex()}\n< {got.hex()} {'closed' if closed else 'open'}\n")
    (HERE / "malformed.txt").write_text("".join(lines))


if __name__ == "__main__":
    native = int(sys.argv[1])
    for version in (3, 4, 5):
        drive(native, version, None)
    for version, compression in ((3, "snappy"), (4, "lz4"), (4, "snappy"), (5, "lz4")):
        drive(native, version, compression)
    malformed(native)
