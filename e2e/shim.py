"""
Stands where `halcyon` is expected, and passes on what the real one says, or what a test wants it to have said.

Arguments: the real program, a file that says what to do, then the arguments of the service.
  (no file)  nothing          statistics, data: damage this component of an output before it is named as done
  garbage    answer a task with what is no frame          deaf: answer nothing about tasks
"""

import os
import struct
import subprocess
import sys

DONE, WELCOME, PONG = 0x85, 0x81, 0x87


def frames(pipe):
    while head := pipe.read(4):
        yield head + pipe.read(struct.unpack(">I", head)[0])


def path_of_done(frame):
    """Of the first output: u32 outputs, u32 length, path; behind length, kind and task."""
    (length,) = struct.unpack(">I", frame[17:21])
    return frame[21 : 21 + length].decode()


def damage(path):
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0xFF]))


def passed_on(frame, wanted):
    if wanted == "statistics" and frame[4] == DONE:
        damage(path_of_done(frame).replace("Data.db", "Statistics.db"))
    if wanted == "data" and frame[4] == DONE:
        os.truncate(path_of_done(frame), 10)
    if wanted == "garbage" and frame[4] not in (WELCOME, PONG):
        return b"\xff" * 64
    if wanted == "deaf" and frame[4] not in (WELCOME, PONG):
        return b""
    return frame


def main():
    program, control, *arguments = sys.argv[1:]
    child = subprocess.Popen([program, *arguments], stdin=sys.stdin, stdout=subprocess.PIPE)
    for frame in frames(child.stdout):
        wanted = open(control, encoding="utf-8").read().strip() if os.path.exists(control) else ""
        sys.stdout.buffer.write(passed_on(frame, wanted))
        sys.stdout.buffer.flush()
    sys.exit(child.wait())


if __name__ == "__main__":
    main()
