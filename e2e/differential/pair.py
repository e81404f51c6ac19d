"""Both servers. A session runs on both at once; what they answer is compared when both are done."""

import os
import threading
import time
from collections import Counter
from typing import NamedTuple

from native import Client, Refused
from oracle.desks import DeskError
from patience import until
from server import flush_statement

from .step import Act, Statement

REPLICATION = "replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
_NOT_PREPARED = "2500"
# How long Cassandra may take to begin to read SSTables for a new index.
_SASI_SECONDS = 0.2
# What Cassandra's clocks of counters count.
_MILLISECOND = 0.001
# More than any table has rows.
_MOST_PAGES = 300


class Answer(NamedTuple):
    """`lines` is what is compared: of a refusal, its code and message; else what was prepared, and page by page columns, rows, warnings."""

    refused: str | None
    lines: tuple

    @property
    def code(self):
        return self.refused[:4] if self.refused else None


class Lane:
    """One of the servers: its connection, and where its time went."""

    def __init__(self, port, server=None, jmx=None):
        self._port, self._server, self._jmx = port, server, jmx
        self.client = Client(port)
        self.seconds = Counter()

    def run(self, keyspace, session):
        """The answers to schema and steps. A schema that is refused has no steps."""
        answers = []
        self._timed("keyspace", lambda: self._enter(keyspace))
        for text in session.schema:
            answers.append(self._timed("schema", lambda text=text: self._ask(Statement(text, "CREATE", "schema"))))
        if any(answer.refused for answer in answers):
            return answers
        for step in session.steps:
            if isinstance(step, Act):
                try:
                    self._timed(step.name, lambda step=step: getattr(self, f"_{step.name}")(keyspace))
                except DeskError:
                    # Cassandra fails, at times with a Java exception: nothing is compared from here on.
                    return answers
                answers.append(Answer(None, ()))
                continue
            kind = "schema" if step.verb in ("CREATE", "ALTER") else "reads" if step.is_read else "writes"
            answers.append(self._timed(kind, lambda step=step: self._answer(keyspace, step)))
        return answers

    def _timed(self, kind, work):
        began = time.monotonic()
        try:
            return work()
        finally:
            self.seconds[kind] += time.monotonic() - began

    def _enter(self, keyspace):
        self.client.query(f"CREATE KEYSPACE {keyspace} WITH {REPLICATION}")
        self.client.query(f"USE {keyspace}")

    def _answer(self, keyspace, step):
        answer = self._ask(step)
        if step.builds and answer.refused is None:
            self._wait_until_built(keyspace, step)
        if step.verb in ("DELETE", "BATCH"):
            # docs/use/cql.md, a counter that is incremented after a deletion: in the same millisecond as before, Cassandra may not see it.
            time.sleep(_MILLISECOND)
        if answer.refused and keyspace in answer.refused:
            return answer._replace(refused=answer.refused.replace(keyspace, "KEYSPACE"))
        return answer

    def _wait_until_built(self, keyspace, step):
        text = f"SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = '{keyspace}'"
        if step.form == "view":
            text = f"SELECT view_name FROM system.built_views WHERE keyspace_name = '{keyspace}'"
        until(lambda: (step.builds.encode(),) in self.client.query(text)[1], f"{step.builds} is not built", pause=0.02)
        if "SASIIndex" in step.text:
            # Cassandra calls it built before it has read the SSTables.
            time.sleep(_SASI_SECONDS)
            text = f"SELECT kind FROM system_views.sstable_tasks WHERE keyspace_name = '{keyspace}'"
            until(lambda: not self.client.query(text)[1], f"{step.builds} is not built", pause=0.02)

    def _ask(self, step):
        lines = []
        try:
            prepared = None
            if step.is_prepared:
                prepared = self.client.prepare(step.text)
                lines.append(("prepared", tuple(map(str, prepared.variables)), tuple(prepared.keys), tuple(map(str, prepared.columns))))
            try:
                self._pages(step, prepared, lines)
            except Refused as refused:
                # Prepared statements that are asked once are forgotten before those that are asked often.
                if not str(refused).startswith(_NOT_PREPARED):
                    raise
                self._pages(step, None, lines)
        except Refused as refused:
            return Answer(str(refused), tuple(lines))
        except (EOFError, OSError) as broken:
            self.client = Client(self._port)
            return Answer(f"---- the connection broke: {type(broken).__name__}", tuple(lines))
        return Answer(None, tuple(lines))

    def _pages(self, step, prepared, lines):
        ask = self.client.execute if prepared else self.client.query
        state = None
        for _ in range(_MOST_PAGES):
            options = {"page_size": step.page_size, "paging_state": state, "consistency": step.consistency, "values": step.values}
            result = ask(prepared or step.text, **options)
            if result is None:
                lines.append(("done", tuple(self.client.warnings)))
                return
            columns, rows, state = result
            lines.append(("page", tuple((name, str(kind)) for name, kind in columns), tuple(rows), tuple(self.client.warnings), bool(state)))
            if not state:
                return
        lines.append(("endless",))

    def _flush(self, keyspace):
        if self._jmx:
            self._jmx.flush(keyspace)
        else:
            self.client.query(flush_statement(keyspace))

    def _compact(self, keyspace):
        self._flush(keyspace)
        if self._jmx:
            self._jmx.compact(keyspace)
            return
        self.client.query(f"INSERT INTO halcyon_views.major_compactions (keyspace_name, table_name) VALUES ('{keyspace}', 't')")
        look = f"SELECT state FROM halcyon_views.major_compactions WHERE keyspace_name = '{keyspace}' AND table_name = 't'"
        until(lambda: self.client.query(look)[1] in ([], [(b"done",)]), "the compaction does not end", pause=0.01)

    def _kill(self, keyspace):
        """Only of Halcyon: Cassandra's start takes as long as a thousand statements."""
        if self._server is None:
            return
        self.client.close()
        self._server.kill()
        self._server.start()
        self.client = Client(self._port)
        self.client.query(f"USE {keyspace}")

    def close(self):
        self.client.close()


class Pair:
    def __init__(self, cassandra_port, jmx, server):
        self.cassandra = Lane(cassandra_port, jmx=jmx)
        self.halcyon = Lane(server.port, server=server)
        self.keyspaces = []

    def run(self, session):
        """
        The answers of Cassandra and of Halcyon. The keyspace stays: to drop it takes Cassandra longer than to make it, and than the statements.
        """
        keyspace = f"d{os.getpid()}_{len(self.keyspaces)}"
        self.keyspaces.append(keyspace)
        found = []
        thread = threading.Thread(target=lambda: found.append(self.halcyon.run(keyspace, session)))
        thread.start()
        expected = self.cassandra.run(keyspace, session)
        thread.join()
        return expected, found[0]

    def drop(self):
        for keyspace in self.keyspaces:
            for lane in (self.cassandra, self.halcyon):
                lane.client.query(f"DROP KEYSPACE {keyspace}")

    def close(self):
        self.cassandra.close()
        self.halcyon.close()
