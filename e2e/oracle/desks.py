"""Clients of the two Java desks (Tools.java, Jmx.java): one line out, one line back."""

import subprocess

from patience import PATIENCE_SECONDS


class DeskError(Exception):
    """The desk answered 'failed …', or a tool ended with another status than 0."""


class _Desk:
    def __init__(self, command):
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def ask(self, *fields):
        self._process.stdin.write("\t".join(str(field) for field in fields) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n")
        if not answer:
            raise RuntimeError(f"the desk's JVM died on {fields}")
        if answer.startswith("failed"):
            raise DeskError(f"{fields}: {answer}")
        return answer

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=PATIENCE_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Tools(_Desk):
    """Cassandra's offline tools in one JVM."""

    PACKAGE = "org.apache.cassandra.tools."

    def __init__(self, java, *properties):
        super().__init__([java, "-Xmx512m", *properties, "Tools"])

    def run(self, tool, output, *arguments):
        answer = self.ask("main", self.PACKAGE + tool, output, *arguments)
        if answer != "exit 0":
            raise DeskError(f"{tool} {arguments}: {answer}")

    def nodetool(self, out, err, *arguments):
        """Its exit status; what it printed is in two files."""
        return int(self.ask("nodetool", out, err, *arguments).split()[1])

    def dump(self, data_file, output):
        self.run("SSTableExport", output, data_file)

    def metadata(self, data_file, output):
        self.run("SSTableMetadataViewer", output, data_file)

    def pending(self, data_file, session, is_transient):
        """Makes an SSTable, while no node has it, one of a repair session."""
        self.ask("pending", data_file, session, str(is_transient).lower())

    def verify(self, keyspace, table):
        """Verifies each SSTable of a table in the data directory; answers how many there were."""
        return int(self.ask("verify", keyspace, table).split()[1])


class Jmx(_Desk):
    """nodetool's verbs over one connection."""

    def __init__(self, java, port):
        super().__init__([java, "-Xmx64m", "Jmx", str(port)])

    def flush(self, keyspace, *tables):
        self.ask("flush", keyspace, *tables)

    def compact(self, keyspace, *tables):
        self.ask("compact", keyspace, *tables)

    def compact_files(self, data_files):
        self.ask("compact-files", ",".join(map(str, data_files)))

    def disable_autocompaction(self, keyspace, *tables):
        self.ask("no-autocompaction", keyspace, *tables)

    def verify(self, keyspace, *tables):
        self.ask("verify", keyspace, *tables)

    def train_dictionary(self, keyspace, table):
        self.ask("train", keyspace, table)

    def import_sstables(self, keyspace, table, directory):
        self.ask("import", keyspace, table, directory)

    def upgrade(self, keyspace, *tables):
        self.ask("upgrade", keyspace, *tables)

    def enable_autocompaction(self, keyspace, *tables):
        self.ask("autocompaction", keyspace, *tables)

    def get(self, mbean, attribute):
        return self.ask("get", mbean, attribute).removeprefix("ok ")

    def set(self, mbean, attribute, value):
        self.ask("set", mbean, attribute, value)

    def call(self, mbean, operation, *text):
        return self.ask("call", mbean, operation, *text).removeprefix("ok ")
