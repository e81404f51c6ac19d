"""
User-defined functions share nothing that the node needs. A body that loops or takes all memory, and a JVM that starts, does not read or
is killed, delay only calls of functions; where memory is short, the kernel kills the JVM and not the node.
"""

import os
import signal
import threading
from pathlib import Path

import pytest

from cage import Cage
from native import Client, Refused
from patience import TIMEOUTS, until
from server import Server
from test_functions import function, refused
from test_wasm_functions import ADD, TURNS
from test_wasm_functions import function as in_wasm

ENABLED = f"user_defined_functions_enabled: true\n{TIMEOUTS}"
LOOP = "while (true) { if (a == -5) break; } return a;"
# The end of the method, and an initialiser of the class.
INITIALISER = "return a; } { while (System.nanoTime() != 1L) {}"
EATS = "List<byte[]> l = new ArrayList<>(); while (true) { byte[] b = new byte[1 << 20]; Arrays.fill(b, (byte) 1); l.add(b); }"


@pytest.fixture
def start(request, tmp_path):
    servers = []

    def start(settings=ENABLED, **options):
        config = tmp_path / "cassandra.yaml"
        config.write_text(settings, encoding="utf-8")
        servers.append(Server(request.config.getoption("--halcyon"), tmp_path, "--config", config, **options).start())
        client = Client(servers[-1].port)
        client.query("CREATE KEYSPACE x WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.query("CREATE TABLE x.t (k int, c int, v int, s text, PRIMARY KEY (k, c))")
        client.query("INSERT INTO x.t (k, c, v) VALUES (7, 3, 101)")
        return servers[-1], client

    yield start
    for server in servers:
        server.close()


def jvms(server):
    tasks = Path(f"/proc/{server.pid}/task")
    return [int(pid) for task in os.listdir(tasks) for pid in (tasks / task / "children").read_text(encoding="ascii").split()]


def meanwhile(server, texts):
    """Runs each text by a client of its own, and rounds of everyday statements until all are answered: the answers, and how many rounds."""
    answers = {}

    def ask(number, text):
        client = Client(server.port)
        try:
            answers[number] = client.query(text)
        except Refused as error:
            answers[number] = str(error)
        client.close()

    threads = [threading.Thread(target=ask, args=item) for item in enumerate(texts)]
    for thread in threads:
        thread.start()
    client, rounds = Client(server.port), 0
    while any(thread.is_alive() for thread in threads):
        client.query(f"INSERT INTO x.t (k, c, s) VALUES (1, {rounds}, '{'s' * 5000}')")
        client.query(f"CREATE TABLE x.n{rounds} (k int PRIMARY KEY)")
        client.query(f"DROP TABLE x.n{rounds}")
        assert client.query(f"SELECT s FROM x.t WHERE k = 1 AND c = {rounds}")[1] == [(b"s" * 5000,)]
        rounds += any(thread.is_alive() for thread in threads)
    client.close()
    return [answers[number] for number in range(len(texts))], rounds


@pytest.mark.timeout(600)
def test_an_initialiser_that_loops_delays_no_other_client(start):
    """Its limit is that of a call. The node has no JVM yet: no other client waits for its start either."""
    server, client = start()
    answers, rounds = meanwhile(server, [function("bad", "a int", "int", INITIALISER)] * 2)
    assert all("User defined function x.bad : (int) -> int ran longer than 1500ms" in answer for answer in answers), answers
    assert rounds >= 3
    client.query(function("same", "a int", "int", "return a;"))
    assert client.query("SELECT x.same(v) FROM x.t WHERE k = 7")[1] == [((101).to_bytes(4, "big"),)]


@pytest.mark.timeout(600)
def test_loops_in_webassembly_delay_no_other_client(start):
    server, client = start()
    client.query(in_wasm("turns", "a int", "int", TURNS))
    answers, rounds = meanwhile(server, ["SELECT x.turns(v) FROM x.t WHERE k = 7"] * 10)
    assert all("ran longer than 1500ms" in answer for answer in answers), answers
    assert rounds >= 3


def test_functions_of_one_language_do_not_wait_for_the_other(start):
    server, client = start()
    client.query(function("loop", "a int", "int", LOOP))
    client.query(in_wasm("plus", "a int, b int", "int", ADD))
    done = []
    looping = threading.Thread(target=lambda: done.append(refused(Client(server.port), "SELECT x.loop(v) FROM x.t WHERE k = 7")))
    looping.start()
    before = 0
    while looping.is_alive():
        assert client.query("SELECT x.plus(v, 1) FROM x.t WHERE k = 7")[1] == [((102).to_bytes(4, "big"),)]
        before += looping.is_alive()
    assert before >= 3 and "ran longer than 1500ms" in done[0]


def test_a_jvm_that_is_killed_or_does_not_read(start):
    server, client = start()
    client.query(function("loop", "a int", "int", LOOP))
    client.query(function("length", "s text", "int", "return s.length();"))
    same = "SELECT x.length(s) FROM x.t WHERE k = 7 AND c = 4"
    client.query(f"INSERT INTO x.t (k, c, s) VALUES (7, 4, '{'s' * 1000000}')")
    length = [((1000000).to_bytes(4, "big"),)]
    assert client.query(same)[1] == length
    said = []
    looping = threading.Thread(target=lambda: said.append(refused(Client(server.port), "SELECT x.loop(v) FROM x.t WHERE k = 7 AND c = 3")))
    looping.start()
    until(lambda: jvms(server), "the JVM has not started")
    os.kill(jvms(server)[0], signal.SIGKILL)
    looping.join()
    # It is called once more by another JVM.
    assert "x.loop" in said[0]
    assert client.query(same)[1] == length
    os.kill(jvms(server)[0], signal.SIGSTOP)
    assert "ran longer than 1500ms" in refused(client, same)
    assert client.query(same)[1] == length


def test_the_jvm_is_confined_and_its_files_are_the_nodes(start):
    server, client = start()
    client.query(function("same", "a int", "int", "return a;"))
    jvm = Path(f"/proc/{jvms(server)[0]}")
    status = dict(line.split(":\t", 1) for line in (jvm / "status").read_text(encoding="utf-8").splitlines() if ":\t" in line)
    assert (status["NoNewPrivs"], status["Seccomp"], int(status["CapEff"], 16), int(status["CapBnd"], 16)) == ("1", "2", 0, 0)
    assert (jvm / "oom_score_adj").read_text(encoding="ascii").strip() == "1000"
    assert os.getsid(int(jvm.name)) == int(jvm.name)
    opened, of_node = ([os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()] for pid in (jvm.name, server.pid))
    assert not [name for name in opened if str(server.data) in name]
    # It has a pair of its own.
    assert not [name for name in opened if "socket" in name and name in of_node]
    assert "Max core file size        0" in (jvm / "limits").read_text(encoding="ascii")
    assert (server.data / "java-functions" / "classes").is_dir()
    server.kill()
    until(lambda: not jvm.exists() or "zombie" in (jvm / "status").read_text(encoding="utf-8"), "the JVM is left over")
    server.start()
    assert not (server.data / "java-functions").exists()
    assert Client(server.port).query("SELECT x.same(v) FROM x.t WHERE k = 7")[1] == [((101).to_bytes(4, "big"),)]


@pytest.mark.timeout(600)
def test_where_memory_is_short_the_jvm_goes_and_not_the_node(start):
    try:
        cage = Cage("functions", 1 << 30)
    except OSError as error:
        pytest.skip(f"no memory cgroup: {error}")
    server, client = start(before=cage.enter)
    client.query(function("eats", "a int", "int", EATS))
    client.query(function("same", "a int", "int", "return a;"))
    same = "SELECT x.same(v) FROM x.t WHERE k = 7"
    assert client.query(same)[1] == [((101).to_bytes(4, "big"),)]
    cage.tighten(cage.used() + (40 << 20))
    assert "1400 the JVM of user-defined functions has ended" in refused(client, "SELECT x.eats(v) FROM x.t WHERE k = 7")
    assert cage.kills() > 0
    assert client.query("SELECT v FROM x.t WHERE k = 7")[1] == [((101).to_bytes(4, "big"),)]
    cage.tighten(1 << 30)
    assert client.query(same)[1] == [((101).to_bytes(4, "big"),)]
    client.close()
    server.close()
    cage.close()
