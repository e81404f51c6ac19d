"""Asks a fresh Cassandra the statements of a file of `crates/schema/tests/data` again, and writes its answers into it.

    cargo x oracle start 5.0.9 --port 9342
    python e2e/record_answers.py 9342 crates/schema/tests/data/ddl.txt [--rows crates/schema/tests/data/schema_rows.txt]
    python e2e/record_answers.py 9342 crates/schema/tests/data/ddl_indexes.txt --rows crates/schema/tests/data/index_rows.txt --only indexes
    python e2e/record_answers.py 9342 crates/schema/tests/data/ddl_functions.txt --rows crates/schema/tests/data/function_rows.txt --only functions aggregates

A case is a statement, `----`, an answer, `====`. An answer is `ok` with warnings and, of DESCRIBE and LIST, rows; or the code and
message of an error. `--rows`: what `system_schema` holds at the end, `--only` in some of its tables. The node needs Cassandra's default of
`sasi_indexes_enabled`: false.
"""

import argparse
import re

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

KEYS = {
    "functions": ["keyspace_name", "function_name", "argument_types"],
    "aggregates": ["keyspace_name", "aggregate_name", "argument_types"],
    "keyspaces": ["keyspace_name"],
    "tables": ["keyspace_name", "table_name"],
    "columns": ["keyspace_name", "table_name", "column_name"],
    "dropped_columns": ["keyspace_name", "table_name", "column_name"],
    "types": ["keyspace_name", "type_name"],
    "indexes": ["keyspace_name", "table_name", "index_name"],
}


def answer(session, text):
    future = session.execute_async(text)
    try:
        rows = future.result()
    except Exception as error:
        told = re.match(r'<?Error from server: code=(\w+) \[[^\]]*\] message="(.*)">?$', str(error), re.S)
        return f"{told[1]} {told[2]}" if told else f"{type(error).__name__} {error}"
    lines = ["ok"] + [f"warning: {warning}" for warning in future.warnings or []]
    if re.match("DESC|LIST", text):
        lines.append("columns: " + ", ".join(rows.column_names))
        lines += ["row: " + "|".join("null" if value is None else str(value) for value in row) for row in rows]
    return "\n".join(lines)


def schema_rows(session, tables):
    of_table = "SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'system_schema' AND table_name = %s"
    for table in tables:
        key = KEYS[table]
        columns = [row.column_name for row in session.execute(of_table, [table])]
        selectors = ", ".join(f"toJson({column})" for column in columns)
        for row in session.execute(f"SELECT {selectors} FROM system_schema.{table}"):
            cells = dict(zip(columns, row))
            # Cassandra's own index is of a class that is only there.
            if table == "indexes" and cells["keyspace_name"] == '"system"':
                continue
            yield " ".join([table] + [cells[column] for column in key])
            own_id = not cells["keyspace_name"].startswith('"system')
            for column in sorted(set(columns) - set(key)):
                if cells[column] not in (None, "null") and not (column == "id" and own_id):
                    yield f"  {column} {cells[column]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("port", type=int)
    parser.add_argument("file")
    parser.add_argument("--rows")
    parser.add_argument("--only", choices=KEYS, nargs="+")
    arguments = parser.parse_args()
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=60)
    cluster = Cluster(
        ["127.0.0.1"], port=arguments.port, protocol_version=5, schema_metadata_enabled=False,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    session = cluster.connect()
    with open(arguments.file, encoding="utf-8", newline="") as file:
        cases = [case.split("\n----\n")[0] for case in file.read().split("\n====\n") if case]
    with open(arguments.file, "w", encoding="utf-8", newline="") as file:
        for text in cases:
            file.write(f"{text}\n----\n{answer(session, text)}\n====\n")
    if arguments.rows:
        with open(arguments.rows, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in schema_rows(session, arguments.only or KEYS))
    cluster.shutdown()


if __name__ == "__main__":
    main()
