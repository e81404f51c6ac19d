"""Rows of `system_schema` that no statement could have written: the node sets them apart, writes nowhere else, and serves the rest."""

import json

import pytest

from native import Client, Refused
from server import Server

REFUSAL = "2100 system_schema keyspace is not user-modifiable."
NAMES = ["../../../escaped", "/etc/escaped", "a/b", "x" * 223]


def schema_folder(server, table):
    (folder,) = (server.data / "data" / "system_schema").glob(f"{table}-*")
    return folder


def forge(client, table, change, where):
    """Copies of stored rows, with other values, in a table with the same columns."""
    ((create,),) = [row[-1:] for row in client.query(f"DESCRIBE TABLE system_schema.{table}")[1]]
    client.query(create.decode().replace(f"system_schema.{table}", f"forged.{table}", 1))
    for (row,) in client.query(f"SELECT JSON * FROM system_schema.{table} WHERE keyspace_name = 'ks'{where}")[1]:
        for changed in change(json.loads(row)):
            text = json.dumps(changed).replace("'", "''")
            client.query(f"INSERT INTO forged.{table} JSON '{text}'")


def smuggle(server, table):
    """Puts the SSTables of a forged table among those of the schema."""
    (forged,) = (server.data / "data" / "forged").glob(f"{table}-*")
    into = schema_folder(server, table)
    for file in forged.iterdir():
        if file.is_file():
            version, generation, rest = file.name.split("-", 2)
            generation = f"9{generation}" if generation.isdigit() else generation
            file.rename(into / f"{version}-{generation}-{rest}")


def test_clients_do_not_write_the_schema(request, tmp_path):
    """Proves that no statement of a client changes rows of `system_schema`, and that a killed node has its tables afterwards."""
    server = Server(request.config.getoption("--halcyon"), tmp_path)
    try:
        client = Client(server.start().port)
        client.query("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.query("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
        client.query("INSERT INTO ks.t (k, v) VALUES (1, 2)")
        insert = "INSERT INTO system_schema.tables (keyspace_name, table_name) VALUES ('ks', '../../../escaped')"
        statements = [
            insert, f"{insert} IF NOT EXISTS", f"BEGIN BATCH {insert}; APPLY BATCH", "TRUNCATE system_schema.columns",
            "DELETE FROM system_schema.tables WHERE keyspace_name = 'ks'",
            "UPDATE system_schema.tables SET comment = 'x' WHERE keyspace_name = 'ks' AND table_name = 't'",
        ]
        for statement in statements:
            with pytest.raises(Refused) as refused:
                client.query(statement)
            assert str(refused.value) == REFUSAL, statement
        with pytest.raises(Refused):
            client.prepare(insert)
        client.close()
        server.kill()
        client = Client(server.start().port)
        assert client.query("SELECT v FROM ks.t")[1] == [((2).to_bytes(4, "big"),)]
        client.close()
    finally:
        server.close()


def test_stored_names_lead_nowhere(request, tmp_path):
    """Proves that tables with names that lead out of the data directory, and one with another's id, are set apart by name and reason,
    over a kill and a start, while the table beside them is served and nothing is written outside."""
    server = Server(request.config.getoption("--halcyon"), tmp_path)
    try:
        client = Client(server.start().port)
        client.query("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.query("CREATE KEYSPACE forged WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        for name in ("t", "twin"):
            client.query(f"CREATE TABLE ks.{name} (k int PRIMARY KEY, v int)")
        client.query("INSERT INTO ks.t (k, v) VALUES (1, 2)")
        (twin,) = [row[0] for row in client.query("SELECT id FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = 'twin'")[1]]
        names = [*NAMES, "other"]
        identity = {name: f"{number:08x}-0000-1000-8000-000000000000" for number, name in enumerate(names)}
        twin = twin.hex()
        identity["other"] = "-".join([twin[:8], twin[8:12], twin[12:16], twin[16:20], twin[20:]])
        forge(client, "tables", lambda row: [{**row, "table_name": name, "id": identity[name]} for name in names], " AND table_name = 't'")
        forge(client, "columns", lambda row: [{**row, "table_name": name} for name in names], " AND table_name = 't'")
        client.close()
        assert server.stop() == 0
        smuggle(server, "tables")
        smuggle(server, "columns")
        before = {path for path in tmp_path.rglob("*") if server.data not in path.parents}
        for value in (2, 3):
            client = Client(server.start().port)
            assert client.query("SELECT v FROM ks.t")[1] == [(value.to_bytes(4, "big"),)]
            client.query(f"INSERT INTO ks.t (k, v) VALUES (1, {value + 1})")
            for name in (*NAMES, "other", "twin"):
                with pytest.raises(Refused) as refused:
                    client.query(f'SELECT * FROM ks."{name}"')
                assert "was set apart at the start" in str(refused.value), name
                with pytest.raises(Refused):
                    client.query(f'DROP TABLE ks."{name}"')
            client.close()
            server.kill()
        said = server.said()
        assert all(f"ks.{name} cannot be used and is set apart" in said for name in (*NAMES, "other", "twin")), said
        assert {path for path in tmp_path.rglob("*") if server.data not in path.parents} == before
        assert not list(tmp_path.rglob("escaped*"))
    finally:
        server.close()
