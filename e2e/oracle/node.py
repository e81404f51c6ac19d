"""A node started by `cargo x oracle start`, with one CQL session, one JMX desk and one tools desk."""

import json
import re
import subprocess

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

from patience import PATIENCE_SECONDS

from .desks import Jmx, Tools

FORMATS = {"5.0.9": "oa", "6.0-alpha2": "pa"}
KEYSPACE = "corpus"


class Node:
    def __init__(self, xtask, oracle, release, folder):
        self.release = release
        self.folder = folder
        self._xtask = xtask
        self._java = oracle / release / "java"
        start = [xtask, "oracle", "start", release, "--format", FORMATS[release], "--dir", folder]
        self.facts = json.loads(subprocess.run(start, check=True, stdout=subprocess.PIPE, text=True).stdout)
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=PATIENCE_SECONDS)
        self._cluster = Cluster(
            ["127.0.0.1"], port=self.facts["native_port"], protocol_version=5, connect_timeout=PATIENCE_SECONDS, schema_metadata_enabled=False,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        )
        self.session = self._cluster.connect()
        self.jmx = Jmx(self._java, self.facts["jmx_port"])
        self.tools = Tools(self._java)
        self.created = set()
        self._running = True
        self.session.execute(
            f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )
        self.session.set_keyspace(KEYSPACE)

    def stop(self):
        """Stops the server, not the desk of offline tools; its files stay."""
        if self._running:
            self._running = False
            self.jmx.close()
            self._cluster.shutdown()
            subprocess.run([self._xtask, "oracle", "stop", "--dir", self.folder], check=True, stdout=subprocess.PIPE)

    def close(self):
        self.stop()
        self.tools.close()

    def create(self, table, schema):
        """An empty table of a schema.cql; table ids are the node's own."""
        if table in self.created:
            self.session.execute(f'TRUNCATE "{table}"')
            return
        text = re.sub(r"WITH ID = [0-9a-f-]+\s+AND", "WITH", schema.read_text(encoding="utf-8"))
        text = text.replace("CREATE TYPE ", "CREATE TYPE IF NOT EXISTS ")
        for statement in re.split(r";\s*\n", text):
            if statement.strip():
                self.session.execute(statement)
        self.created.add(table)

    def offline_tools(self):
        """Tools on the data directory of this node, which must be stopped."""
        assert not self._running
        return Tools(self._java, *self._offline_properties())

    def standalone_verifier(self, table):
        """The real tool, in a JVM of its own; answers its exit status and what it said."""
        tool = "org.apache.cassandra.tools.StandaloneVerifier"
        command = [self._java, *self._offline_properties(), tool, "--force", "--extended", KEYSPACE, table]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        return done.returncode, done.stdout + done.stderr

    def _offline_properties(self):
        return f"-Dcassandra.storagedir={self.facts['storage_dir']}", f"-Dcassandra.config=file://{self.facts['config']}"

    def take_in(self, table, folder):
        """Moves SSTables into a table; Cassandra verifies each one, extended, before."""
        self.jmx.disable_autocompaction(KEYSPACE, table)
        self.jmx.import_sstables(KEYSPACE, table, folder)

    def select(self, table):
        return [row[0] for row in self.session.execute(f'SELECT JSON * FROM {KEYSPACE}."{table}"')]

    def dump(self, data_file, scratch):
        output = scratch / (data_file.name + ".json")
        self.tools.dump(data_file, output)
        return output.read_text(encoding="utf-8")
