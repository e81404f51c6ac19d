"""
Compactions that a Cassandra hands over without an agent: the jar is on its class path, and `halcyon compact --node` sets tables by JMX.

The node has no option of Halcyon's: what there is beside the jar says it all.
"""

import json
import shutil
import signal
import socket
import subprocess
from contextlib import contextmanager

import pytest

from patience import PATIENCE_SECONDS, until
import plugin
from oracle import opened
from plugin import KEYSPACE, STRATEGIES, Node

PARAMETERS = "CompactionParametersJson"
OURS = "org.apache.cassandra.db.compaction.Halcyon"
STOCK = "org.apache.cassandra.db.compaction."
MAJOR = "Major compaction"


class Unarmed:
    """A Cassandra without the agent, and without options of Halcyon's."""

    def __init__(self, options, folder):
        self.options = options
        self._folder = folder / "node"
        self.jar = folder / "lib" / options.plugin.name
        self.jar.parent.mkdir()
        shutil.copyfile(options.plugin, self.jar)
        (self.jar.parent / "halcyon").symlink_to(options.halcyon)
        self.properties = self.jar.parent / "halcyon.properties"
        self._more = ()
        self.start()

    def start(self):
        facts = opened.start(self.options, self._folder, "oa", jvm="-ea", class_path=self.jar, more=self._more)
        self._more = ("--port", str(facts["native_port"]))
        self._cluster = opened.cluster(facts)
        self.node = Node(self.options, self._cluster.connect(), facts)

    def stop(self):
        self.node.close()
        self._cluster.shutdown()
        opened.stop(self.options, self._folder)

    def compact(self, *arguments, code=0):
        return plugin.hand_over(self.options, self.node.facts["jmx_port"], *arguments, code=code)

    def actions(self, *arguments):
        """By table what was done."""
        told = json.loads(self.compact(*arguments, "--json"))
        return {table["table"].removeprefix(KEYSPACE + "."): table["action"] for table in told["tables"]}

    def get(self, table, attribute):
        return self.node.jmx.get(f"org.apache.cassandra.db:type=Tables,keyspace={KEYSPACE},table={table}", attribute)

    def parameters(self, table):
        return json.loads(self.get(table, PARAMETERS))

    def is_ours(self, table):
        return self.parameters(table)["class"].startswith(OURS)

    def two_sstables(self, table):
        for k in range(2):
            self.node.execute(f"INSERT INTO {KEYSPACE}.{table} (k) VALUES ({k})")
            self.node.jmx.flush(KEYSPACE, table)


@pytest.fixture
def unarmed(cassandra_options, tmp_path):
    running = Unarmed(cassandra_options, tmp_path)
    yield running
    running.stop()


@pytest.mark.timeout(300)
def test_without_an_agent(unarmed):
    unarmed.node.create_keyspace()
    for name, strategy in STRATEGIES.items():
        unarmed.node.execute(f"CREATE TABLE {name} (k int PRIMARY KEY) WITH compaction = {strategy}")
        unarmed.node.jmx.disable_autocompaction(KEYSPACE, name)
    wrong_options_are_told(unarmed)
    a_look_changes_nothing(unarmed)
    named_tables_are_handed_over(unarmed)
    an_operators_parameters_stay(unarmed)
    tables_are_taken_back(unarmed)
    they_are_watched(unarmed)


def wrong_options_are_told(unarmed):
    """Nothing is set, and no restart is needed for another attempt."""
    unarmed.properties.write_text("memory_mib = much\n", encoding="utf-8")
    said = unarmed.compact(code=3)
    assert "halcyon.memory_mib is a number" in said and "much" in said
    assert not any(unarmed.is_ours(name) for name in STRATEGIES) and not unarmed.node.has_plugin()
    unarmed.properties.write_text("verify = rows\n", encoding="utf-8")


def a_look_changes_nothing(unarmed):
    before = {name: unarmed.parameters(name) for name in STRATEGIES}
    assert unarmed.actions("--dry-run") == dict.fromkeys(STRATEGIES, "set")
    assert "would be handed over: LeveledCompactionStrategy" in unarmed.compact("--dry-run", "--tables", f"{KEYSPACE}.lcs")
    assert {name: unarmed.parameters(name) for name in STRATEGIES} == before and not unarmed.node.has_plugin()
    assert f"no table or keyspace {KEYSPACE}.none" in unarmed.compact("--tables", f"{KEYSPACE}.lcs,{KEYSPACE}.none", code=2)
    assert not unarmed.is_ours("lcs")


def named_tables_are_handed_over(unarmed):
    """The schema does not say so; what has been switched off stays off."""
    unarmed.node.jmx.enable_autocompaction(KEYSPACE, "stcs")
    before = unarmed.parameters("stcs")
    assert unarmed.actions("--tables", f"{KEYSPACE}.stcs, {KEYSPACE}.lcs") == {"lcs": "set", "stcs": "set"}
    assert unarmed.parameters("stcs") == {**before, "class": OURS + "SizeTieredCompactionStrategy"}
    assert [unarmed.get(name, "AutoCompactionDisabled") for name in ("stcs", "lcs")] == ["false", "true"]
    assert unarmed.actions() == {"lcs": "kept", "stcs": "kept", "twcs": "set", "ucs": "set"}
    assert unarmed.node.get("ForAllTables") == "false"
    for name in STRATEGIES:
        unarmed.two_sstables(name)
        unarmed.node.jmx.compact(KEYSPACE, name)
        assert unarmed.node.done_by_halcyon(name, MAJOR), (name, unarmed.node.get("Reasons"), unarmed.node.get("Failures"))
    unarmed.node.service()
    schema = unarmed.node.execute(f"SELECT compaction FROM system_schema.tables WHERE keyspace_name = '{KEYSPACE}'")
    assert "alcyon" not in str(list(schema))


def an_operators_parameters_stay(unarmed):
    """Those of this node that differ from the schema's: only the class becomes ours."""
    table = f"org.apache.cassandra.db:type=Tables,keyspace={KEYSPACE},table=ucs"
    own = {"class": STOCK + "SizeTieredCompactionStrategy", "min_threshold": "7", "max_threshold": "9", "enabled": "false"}
    unarmed.node.jmx.set(table, PARAMETERS, json.dumps(own))
    unarmed.node.jmx.enable_autocompaction(KEYSPACE, "ucs")
    unarmed.compact("--tables", KEYSPACE)
    assert unarmed.parameters("ucs") == {**own, "class": OURS + "SizeTieredCompactionStrategy"}
    assert unarmed.get("ucs", "AutoCompactionDisabled") == "false"


def tables_are_taken_back(unarmed):
    ours = unarmed.parameters("stcs")
    done = len(unarmed.node.done_by_halcyon("stcs", MAJOR))
    assert unarmed.actions("--remove", "--tables", f"{KEYSPACE}.stcs") == {"stcs": "set"}
    assert unarmed.parameters("stcs") == {**ours, "class": STOCK + "SizeTieredCompactionStrategy"}
    unarmed.two_sstables("stcs")
    unarmed.node.jmx.compact(KEYSPACE, "stcs")
    assert len(unarmed.node.done_by_halcyon("stcs", MAJOR)) == done
    assert unarmed.actions("--remove") == {"lcs": "set", "stcs": "kept", "twcs": "set", "ucs": "set"}
    assert unarmed.get("lcs", "AutoCompactionDisabled") == "true"


def they_are_watched(unarmed):
    """A table that comes later, an ALTER and a restart of the node; the end is not a failure."""
    jmx_port = unarmed.node.facts["jmx_port"]
    command = plugin.to_hand_over(unarmed.options, jmx_port, "--tables", f"{KEYSPACE}.stcs,{KEYSPACE}.later", "--watch", "--every", "200ms")
    with subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, text=True) as watch:
        try:
            until(lambda: unarmed.is_ours("stcs"), "it is not handed over")
            unarmed.node.execute("CREATE TABLE later (k int PRIMARY KEY)")
            until(lambda: unarmed.is_ours("later"), "what comes later is not handed over")
            unarmed.node.execute(f"ALTER TABLE stcs WITH compaction = {STRATEGIES['lcs']}")
            until(lambda: unarmed.parameters("stcs")["class"] == OURS + "LeveledCompactionStrategy", "an ALTER is not followed")
            unarmed.stop()
            unarmed.start()
            assert unarmed.node.facts["jmx_port"] == jmx_port
            until(lambda: unarmed.is_ours("stcs") and unarmed.node.has_plugin(), "a restart is not followed")
        finally:
            watch.send_signal(signal.SIGTERM)
            told = [json.loads(line) for line in watch.stdout]
    assert watch.returncode == 0
    assert {table["action"] for table in told[0]["tables"]} == {"set", "unknown"}
    assert all(report["tables"] for report in told)
    assert not unarmed.is_ours("lcs")


@pytest.mark.parametrize("release", ["5.0.9", "6.0-alpha2"])
def test_a_node_that_cannot(nodes, release, cassandra_options):
    """Without the jar: said, and nothing is changed."""
    node = nodes.get(release)
    node.session.execute("CREATE TABLE IF NOT EXISTS jarless (k int PRIMARY KEY)")
    table = "org.apache.cassandra.db:type=Tables,keyspace=corpus,table=jarless"
    before = node.jmx.get(table, PARAMETERS)
    assert "is not on its class path" in plugin.hand_over(cassandra_options, node.facts["jmx_port"], "--tables", "corpus.jarless", code=3)
    assert node.jmx.get(table, PARAMETERS) == before


def test_a_check_says_what_would_happen(cassandra_options, tmp_path):
    """Release, program and change, before anything is changed."""
    home = tmp_path / "home"
    for folder in ("lib", "conf"):
        (home / folder).mkdir(parents=True)
    (home / "conf/cassandra-env.sh").touch()
    whole, less = tmp_path / "halcyon-cassandra.jar", plugin.without_line(cassandra_options, "6.0", tmp_path / "less.jar")
    whole.symlink_to(cassandra_options.plugin)
    fits = ["ok: the jar was tested with this release", "starts as a service: halcyon ", "+if [ "]
    for release, jar, code, words in (
        (opened.RELEASE, whole, 0, fits),
        ("6.0-alpha2", whole, 0, fits),
        ("6.0-alpha2", less, 1, ["problem: the jar does not fit this release, which lacks CompactionTask.gcBefore: long"]),
    ):
        for old in (home / "lib").iterdir():
            old.unlink()
        for file in (cassandra_options.oracle / release / "lib").iterdir():
            (home / "lib" / file.name).symlink_to(file)
        (home / f"lib/apache-cassandra-{release}.jar").touch()
        command = [cassandra_options.halcyon, "plugin", "check", "--cassandra-home", home, "--jar", jar]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert done.returncode == code and all(word in done.stdout for word in words), done
        assert not (home / "conf/cassandra-env.sh").read_text(encoding="utf-8")


@contextmanager
def jmx(options, *properties):
    """The port of a JVM that is not Cassandra: it waits for the end of its input."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    about = {"port": port, "rmi.port": port, "host": "127.0.0.1", **dict(properties)}
    words = [f"-Dcom.sun.management.jmxremote.{name}={value}" for name, value in about.items()]
    java = options.oracle / opened.RELEASE / "java"
    command = [java, "-Djava.rmi.server.hostname=127.0.0.1", *words, "-cp", options.plugin, "halcyon.cassandra.Sidecar"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        until(lambda: process.poll() is None and listens(port), "JMX does not listen")
        yield port
        process.stdin.close()


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_passwords(cassandra_options, tmp_path):
    passwords, access = tmp_path / "jmxremote.password", tmp_path / "jmxremote.access"
    passwords.write_text("admin right\n", encoding="utf-8")
    passwords.chmod(0o600)
    # The JVM makes hashes of what its own file has.
    of_client = tmp_path / "passwords"
    of_client.write_text("other x\nadmin right\n", encoding="utf-8")
    access.write_text("admin readwrite\n", encoding="utf-8")
    how = {"ssl": "false", "authenticate": "true", "password.file": passwords, "access.file": access}
    with jmx(cassandra_options, *how.items()) as port:
        assert "--username" in plugin.hand_over(cassandra_options, port, code=3)
        assert "--username" in plugin.hand_over(cassandra_options, port, "--username", "admin", "--password", "wrong", code=3)
        assert "no Cassandra" in plugin.hand_over(cassandra_options, port, "--username", "admin", "--password-file", of_client, code=3)
    assert "Connection refused" in plugin.hand_over(cassandra_options, port, code=3)


def test_tls(cassandra_options, tmp_path):
    store = tmp_path / "store"
    keytool = [cassandra_options.oracle / opened.RELEASE / "java", "sun.security.tools.keytool.Main", "-genkeypair", "-keyalg", "EC"]
    keytool += ["-dname", "CN=test", "-keystore", store, "-storepass", "secret", "-alias", "node"]
    subprocess.run(keytool, check=True, timeout=PATIENCE_SECONDS, capture_output=True)
    config = tmp_path / "jmx.properties"
    config.write_text(f"javax.net.ssl.keyStore={store}\njavax.net.ssl.keyStorePassword=secret\n", encoding="utf-8")
    config.chmod(0o600)
    ssl = tmp_path / "nodetool-ssl.properties"
    ssl.write_text(f"-Djavax.net.ssl.trustStore={store}\n-Djavax.net.ssl.trustStorePassword=secret\n", encoding="utf-8")
    how = {"authenticate": "false", "ssl": "true", "registry.ssl": "true", "ssl.config.file": config}
    with jmx(cassandra_options, *how.items()) as port:
        assert "--ssl" in plugin.hand_over(cassandra_options, port, code=3)
        assert "no Cassandra" in plugin.hand_over(cassandra_options, port, "--ssl", ssl, code=3)
