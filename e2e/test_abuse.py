"""
Clients that mean harm: one connection goes on being served, and the server's memory stays bounded.

Each attack runs beside a client that asks one thing after the other; what it waited is printed, not judged.
"""

import contextlib
import random
import resource
import socket
import struct
import threading
import time

import pytest

from native import Client
from server import HOST, Server

CONNECTIONS = 10_000
ROWS = 2_000
GROWTH_MIB = 500
PATIENCE_SECONDS = 20


def envelope(opcode, body, stream=1):
    return struct.pack(">BBhBi", 4, 0, stream, opcode, len(body)) + body


STARTUP = envelope(1, struct.pack(">H", 1) + b"\x00\x0bCQL_VERSION\x00\x053.0.0")


def query(text):
    return envelope(7, struct.pack(">i", len(text)) + text.encode() + struct.pack(">HB", 1, 0))


def connected(port, started=True):
    peer = socket.create_connection((HOST, port), timeout=PATIENCE_SECONDS)
    if started:
        peer.sendall(STARTUP)
        assert peer.recv(9)[4] == 2, "READY"
    return peer


def idle(port, peers, _stop):
    """Ten thousand connections that say nothing after STARTUP, or as many as this process may open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for _ in range(min(CONNECTIONS, most - 500)):
        peers.append(connected(port))


def never_reading(port, peers, stop):
    """Large answers that nobody reads."""
    for _ in range(20):
        peers.append(connected(port))
        peers[-1].settimeout(0.2)
    asking = query("SELECT * FROM abuse.large") * 100
    while not stop.is_set():
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.sendall(asking)
        time.sleep(0.05)


def slow(port, peers, stop):
    """Large requests that arrive a few bytes at a time and never end."""
    for _ in range(300):
        peers.append(connected(port))
        peers[-1].sendall(struct.pack(">BBhBi", 4, 0, 1, 7, 15 << 20) + b"x" * 100_000)
    while not stop.is_set():
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.sendall(b"x")
        time.sleep(0.05)


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
    while not stop.is_set():
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.sendall(wrong)
        time.sleep(0.01)


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


def _exactly(peer, count):
    data = b""
    while len(data) < count:
        more = peer.recv(count - len(data))
        assert more, "closed"
        data += more
    return data


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) >> 10


@pytest.fixture(scope="module")
def attacked(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    config = folder / "cassandra.yaml"
    config.write_text(
        "native_transport_max_request_data_in_flight: 64MiB\nnative_transport_max_request_data_in_flight_per_ip: 32MiB\n"
        "memtable_heap_space: 64MiB\nfile_cache_size: 64MiB\n"
    )
    server = Server(request.config.getoption("--halcyon"), folder, "--config", config).start()
    client = Client(server.port)
    client.query(
        "CREATE KEYSPACE abuse WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    client.query("CREATE TABLE abuse.large (k int PRIMARY KEY, v text)")
    for k in range(ROWS):
        client.query(f"INSERT INTO abuse.large (k, v) VALUES ({k}, '{'x' * 500}')")
    client.close()
    yield server
    server.close()


@pytest.mark.parametrize(
    "attack", [never_reading, slow, garbage, wrong_messages, vanishing, preparing, idle], ids=lambda attack: attack.__name__
)
def test_others_are_served(attacked, attack):
    before = resident_mib(attacked.pid)
    peers, stop, failed = [], threading.Event(), []

    def run():
        try:
            attack(attacked.port, peers, stop)
        except Exception as error:  # told by the test
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    client, waits, most = Client(attacked.port), [], 0
    end = time.monotonic() + 3
    while time.monotonic() < end or (thread.is_alive() and attack is idle):
        began = time.monotonic()
        columns, rows, _ = client.query("SELECT v FROM abuse.large WHERE k = 1")
        assert len(rows) == 1 and columns
        waits.append(time.monotonic() - began)
        most = max(most, resident_mib(attacked.pid))
        time.sleep(0.001)
    stop.set()
    thread.join(timeout=PATIENCE_SECONDS)
    for peer in peers:
        peer.close()
    client.close()
    waits.sort()
    told = [waits[len(waits) * part // 100] * 1000 for part in (50, 99)]
    print(f"{attack.__name__}: {len(waits)} requests, p50 {told[0]:.2f} ms, p99 {told[1]:.2f} ms, {before} to {most} MiB")
    assert not failed, failed
    assert most - before < GROWTH_MIB, f"{before} to {most} MiB"
