"""A client of `halcyon compact --service`, which plays Cassandra: docs/formats/compaction-protocol.md."""

import struct
import subprocess

from patience import PATIENCE_SECONDS

HELLO, TASK, BOUNDS, GRANTED, GO_ON, STOP, PING = range(0x01, 0x08)
WELCOME, ASK_BOUND, ASK_OUTPUT, TICK, DONE, FAILED, PONG = range(0x81, 0x88)
KINDS = {"partition_key": 0, "clustering": 1, "static": 2, "regular": 3}
NOTHING_OVERLAPS = 2**63 - 1


def text(value):
    value = str(value).encode()
    return struct.pack(">I", len(value)) + value


def listed(items):
    return struct.pack(">I", len(items)) + b"".join(items)


def hello(oldest=5, newest=5, memory=256 << 20):
    return b"HCMP" + struct.pack(">HH", oldest, newest) + text("test") + struct.pack(">QB", memory, 2)


def column(kind, name, type_class):
    return bytes([KINDS[kind]]) + text(name) + text(type_class)


def task(columns, inputs, version, *, dropped=(), compression=None, gc_before=0, now=0, level=0, size=0, tokens=(), host=None, intervals=(), rows=True):
    """`columns`: (kind, name, class); `dropped`: the same and the time; `version`: ("big", "oa")."""
    schema = text("ks") + text("t") + b"\0" + listed([column(*c) for c in columns])
    schema += listed([column(*c[:3]) + struct.pack(">q", c[3]) for c in dropped])
    options = [text(name) + text(value) for name, value in (compression or {}).items()]
    outputs = text(version[0]) + text(version[1]) + listed(options) + struct.pack(">dIQ", 0.01, 128, 0)
    times = struct.pack(">II", gc_before, now)
    split = struct.pack(">QI", size, 0) + listed([struct.pack(">q", token) for token in tokens])
    names = struct.pack(">iq??", level, 0, False, False) + (b"\1" + host if host else b"\0")
    names += listed([struct.pack(">qiqi", *interval) for interval in intervals])
    return schema + listed([text(path) for path in inputs]) + outputs + times + split + names + struct.pack(">Q?", 1000, rows)


def frame(kind, number, body=b""):
    return struct.pack(">IBQ", 9 + len(body), kind, number) + body


class Service:
    def __init__(self, program, greet=True):
        command = [program, "compact", "--service"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if greet:
            self.send(HELLO, 0, hello())
            kind, _, body = self.receive()
            assert (kind, body[:6]) == (WELCOME, b"HCMP\0\5")

    def send(self, kind, number, body=b""):
        self.raw(frame(kind, number, body))

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self):
        """Kind, task and body; None at the end."""
        head = self.process.stdout.read(4)
        if not head:
            return None
        rest = self.process.stdout.read(struct.unpack(">I", head)[0])
        return rest[0], struct.unpack(">Q", rest[1:9])[0], rest[9:]

    def end(self):
        """Its exit status, and what it said."""
        _, said = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, said.decode()

    def run(self, number, body, paths, bound=NOTHING_OVERLAPS, floor=-(2**63)):
        """Plays one task to its end: kind and body of the last message, and how many questions of each kind there were."""
        asked = dict.fromkeys((ASK_BOUND, ASK_OUTPUT, TICK), 0)
        self.send(TASK, number, body)
        while True:
            kind, about, said = self.receive()
            assert about == number
            if kind in (DONE, FAILED):
                return kind, said, asked
            asked[kind] += 1
            if kind == TICK:
                self.last_tick = struct.unpack(">7Q", said)
            if kind == ASK_BOUND:
                self.send(BOUNDS, number, struct.pack(">q", bound) + listed([]))
            elif kind == ASK_OUTPUT:
                self.send(GRANTED, number, text(next(paths)))
            else:
                self.send(GO_ON, number, struct.pack(">q", floor))
