"""A client of the native protocol, version 4 (5: QUERY only), that keeps values as the bytes that they are."""

import socket
import struct
import zlib
from collections import defaultdict
from typing import NamedTuple

from patience import PATIENCE_SECONDS

NATIVE = {
    0x01: "ascii", 0x02: "bigint", 0x03: "blob", 0x04: "boolean", 0x05: "counter", 0x06: "decimal", 0x07: "double",
    0x08: "float", 0x09: "int", 0x0B: "timestamp", 0x0C: "uuid", 0x0D: "text", 0x0E: "varint", 0x0F: "timeuuid",
    0x10: "inet", 0x11: "date", 0x12: "time", 0x13: "smallint", 0x14: "tinyint",
}
STARTUP, AUTHENTICATE, QUERY, PREPARE, EXECUTE, BATCH, AUTH_RESPONSE = 0x01, 0x03, 0x07, 0x09, 0x0A, 0x0D, 0x0F
ERROR, ROWS, UNAVAILABLE = 0x00, 2, 0x1000
UNSET = object()


class Refused(Exception):
    """An ERROR message: its code and its text."""


def _value(value):
    if value is None:
        return struct.pack(">i", -1)
    return struct.pack(">i", -2) if value is UNSET else struct.pack(">i", len(value)) + value


class _Body:
    def __init__(self, data):
        self._data = data
        self._at = 0

    def length(self):
        return len(self._data) - self._at

    def take(self, count):
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    def int(self):
        return struct.unpack(">i", self.take(4))[0]

    def short(self):
        return struct.unpack(">H", self.take(2))[0]

    def string(self):
        return self.take(self.short()).decode()

    def bytes(self):
        length = self.int()
        return None if length < 0 else self.take(length)

    def type(self):
        kind = self.short()
        if kind == 0x00:
            return self.string()
        if kind in (0x20, 0x22):
            return ("list" if kind == 0x20 else "set", self.type())
        if kind == 0x21:
            return ("map", self.type(), self.type())
        if kind == 0x30:
            names = (self.string(), self.string())
            return names, [(self.string(), self.type()) for _ in range(self.short())]
        if kind == 0x31:
            return ("tuple", [self.type() for _ in range(self.short())])
        return NATIVE[kind]


def _options(page_size, paging_state, consistency, serial, values, now=None):
    """`now`: of version 5, the seconds that the request takes for the present."""
    flags = (0x01 if values else 0) | (0x04 if page_size else 0)
    flags |= (0x08 if paging_state is not None else 0) | (0x10 if serial is not None else 0)
    options = struct.pack(">HB", consistency, flags) if now is None else struct.pack(">HI", consistency, flags | 0x100)
    if values:
        options += struct.pack(">H", len(values)) + b"".join(map(_value, values))
    if page_size:
        options += struct.pack(">i", page_size)
    if paging_state is not None:
        options += struct.pack(">i", len(paging_state)) + paging_state
    options += b"" if serial is None else struct.pack(">H", serial)
    return options if now is None else options + struct.pack(">i", now)


def _columns(answer, flags, count):
    if count and flags & 1:
        answer.string(), answer.string()
    columns = []
    for _ in range(count):
        if not flags & 1:
            answer.string(), answer.string()
        columns.append((answer.string(), answer.type()))
    return columns


def _frame(envelope):
    """A frame of version 5, not compressed, with one whole envelope."""
    header = (len(envelope) | 1 << 17).to_bytes(3, "little")
    crc = 0x875060
    for byte in header:
        crc ^= byte << 16
        for _ in range(8):
            crc = crc << 1 ^ (0x1974F0B if crc & 0x800000 else 0)
    checked = zlib.crc32(envelope, zlib.crc32(b"\xfa\x2d\x55\xca"))
    return header + crc.to_bytes(3, "little") + envelope + checked.to_bytes(4, "little")


# By port: the end of a run says how many different statements are compared.
ASKED = defaultdict(set)


class Prepared(NamedTuple):
    """What a server says of a statement: the columns are those of the result, the keys places of variables."""

    text: str
    id: bytes
    variables: list
    keys: list
    columns: list


class Client:
    def __init__(self, port, login=None, version=4):
        """`login`: name and password; without, a server that wants them answers nothing else."""
        self._asked, self._version = ASKED[port], version
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        self.warnings = []
        key, value = (struct.pack(">H", len(text)) + text for text in (b"CQL_VERSION", b"3.0.0"))
        answer = self._call(STARTUP, struct.pack(">H", 1) + key + value)
        # Of AUTHENTICATE.
        self.authenticator = answer.string() if answer.length() else None
        if login is not None:
            self.authenticate("\0{}\0{}".format(*login).encode())

    def authenticate(self, token):
        self._call(AUTH_RESPONSE, _value(token))

    def batch(self, statements):
        """A logged batch of texts and prepared statements without values."""
        body = struct.pack(">BH", 0, len(statements))
        for statement in statements:
            if isinstance(statement, Prepared):
                body += struct.pack(">BH", 1, len(statement.id)) + statement.id
            else:
                body += struct.pack(">Bi", 0, len(statement.encode())) + statement.encode()
            body += struct.pack(">H", 0)
        return self._rows(BATCH, body + struct.pack(">HB", 1, 0))

    def close(self):
        self._socket.close()

    def prepare(self, text):
        answer = self._call(PREPARE, struct.pack(">i", len(text.encode())) + text.encode())
        answer.int()
        statement = answer.take(answer.short())
        flags, count = answer.int(), answer.int()
        keys = [answer.short() for _ in range(answer.int())]
        variables = _columns(answer, flags, count)
        flags, count = answer.int(), answer.int()
        return Prepared(text, statement, variables, keys, [] if flags & 4 else _columns(answer, flags, count))

    def query(self, text, page_size=None, paging_state=None, consistency=1, serial=None, values=(), now=None):
        """Columns, rows and paging state; `None` where there is no result set. Values are bytes, `None` or `UNSET`."""
        self._asked.add((text, tuple(values)))
        asked = struct.pack(">i", len(text.encode())) + text.encode()
        return self._rows(QUERY, asked + _options(page_size, paging_state, consistency, serial, values, now))

    def execute(self, prepared, page_size=None, paging_state=None, consistency=1, serial=None, values=()):
        """What `prepare` answered, as `query` does."""
        self._asked.add((prepared.text, tuple(values)))
        asked = struct.pack(">H", len(prepared.id)) + prepared.id
        return self._rows(EXECUTE, asked + _options(page_size, paging_state, consistency, serial, values))

    def _rows(self, opcode, body):
        answer = self._call(opcode, body)
        if answer.int() != ROWS:
            return None
        flags, count = answer.int(), answer.int()
        state = answer.bytes() if flags & 2 else None
        columns = _columns(answer, flags, count)
        rows = [tuple(answer.bytes() for _ in range(count)) for _ in range(answer.int())]
        return columns, rows, state

    def _call(self, opcode, body):
        envelope = struct.pack(">BBhBi", self._version, 0, 1, opcode, len(body)) + body
        is_framed = self._version >= 5 and opcode != STARTUP
        self._socket.sendall(_frame(envelope) if is_framed else envelope)
        if is_framed:
            answer = self._unframed()
            _, flags, _, opcode, length = struct.unpack(">BBhBi", answer.take(9))
        else:
            _, flags, _, opcode, length = struct.unpack(">BBhBi", self._read(9))
            answer = _Body(self._read(length))
        if flags & 0x02:
            answer.take(16)
        self.warnings = [answer.string() for _ in range(answer.short())] if flags & 0x08 else []
        if opcode == ERROR:
            code, message = answer.int(), answer.string()
            if code == UNAVAILABLE:
                answer.short()
                message += f" required {answer.int()} alive {answer.int()}"
            raise Refused(f"{code:04x} {message}")
        return answer

    def _unframed(self):
        """An answer that is one frame."""
        length = int.from_bytes(self._read(6)[:3], "little") & 0x1FFFF
        answer = _Body(self._read(length))
        self._read(4)
        return answer

    def _read(self, count):
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise EOFError("the server closed the connection")
            data += more
        return data
