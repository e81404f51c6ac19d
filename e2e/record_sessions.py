"""Asks a fresh Cassandra the statements of session files (`crates/query/tests/data/sessions`) again, and writes its answers into them.

    cargo x oracle start 5.0.9 --port 9342
    python e2e/record_sessions.py 9342 crates/query/tests/data/sessions/json.txt

A line begins with `!` (a statement that makes what the others are about), `>` (a statement; `>c/s` names consistency and serial
consistency, `>p` prepares, `>b` binds to what was prepared last, `>@n` asks in pages of n rows) or `<` (the answer to it).
"""

import re
import sys

from native import UNSET, Client, Refused


def shown(value):
    return "null" if value is None else value.hex()


def told(client, *arguments, **options):
    """An answer on one line."""
    try:
        result = client.query(*arguments, **options)
    except Refused as refused:
        return f"! {refused}".replace("\n", "\\n")
    warnings = "".join(f"\\n  w {warning}" for warning in client.warnings)
    if result is None:
        return "ok" + warnings
    columns, rows, state = result
    names = ",".join(name for name, _ in columns)
    more = f" ~ {state.hex()}" if state else ""
    return f"{names} | {';'.join(','.join(map(shown, row)) for row in rows)}{more}{warnings}"


class Session:
    def __init__(self, client):
        self._client, self._prepared = client, ""

    def answer(self, line):
        tag, text = line[1:].split(" ", 1)
        if tag == "p":
            self._prepared = text
            try:
                self._client.prepare(text)
                return "ok"
            except Refused as refused:
                return f"! {refused}"
        if tag == "b":
            return told(self._client, self._prepared, values=[value(part) for part in text.split(" ")])
        levels = re.fullmatch(r"(\d+)/(\d*)", tag)
        if levels:
            return told(self._client, text, consistency=int(levels[1]), serial=int(levels[2]) if levels[2] else None)
        return told(self._client, text)


def value(text):
    special = {"null": None, "unset": UNSET, "''": b""}
    return special[text] if text in special else bytes.fromhex(text)


def main():
    port, *files = sys.argv[1:]
    client = Client(int(port))
    for name in files:
        with open(name, encoding="utf-8") as file:
            lines = file.read().splitlines()
        session, out = Session(client), []
        for line in lines:
            if line.startswith("!"):
                client.query(line[1:].strip())
            if not line.startswith("<"):
                out.append(line)
            if line.startswith(">"):
                out.append("< " + session.answer(line))
        with open(name, "w", encoding="utf-8") as file:
            file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
