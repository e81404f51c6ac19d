"""
Stands where `halcyon` is expected, and passes on what the real one says, or what a test wants it to have said.

Arguments: the real program, a file that says what to do, then the arguments of the service.
  (no file)  nothing          statistics, data: damage this component of an output before it is named as done
  garbage    answer a task with bytes that are not a frame deaf: answer nothing about tasks, only pings
  hung       say nothing more of a task that has asked for an output, only answer pings
  version    say that it speaks another version of the protocol
  hold STAGE keep what comes at this stage of a task, and all behind it, until there is another file or none; the file `held` says that it is kept.
             If the real one is killed meanwhile, no other process notices
             sent: the first tick   asked: the first output is asked for   granted: the first tick behind it   written: everything is read   done
"""

import ctypes
import os
import signal
import struct
import subprocess
import sys
import time

WELCOME, ASK_OUTPUT, TICK, DONE, PONG = 0x81, 0x83, 0x84, 0x85, 0x87


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


class Shim:
    def __init__(self, child, control):
        self._child = child
        self._control = control
        self._asked = set()

    def wanted(self):
        try:
            with open(self._control, encoding="utf-8") as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""

    def passed_on(self, frame):
        kind, task = frame[4], frame[5:13]
        wanted = self.wanted()
        if wanted.startswith("hold ") and wanted.split()[1] in self._stages(frame):
            self._hold(wanted)
        if wanted == "hung" and task in self._asked:
            return b""
        if kind == ASK_OUTPUT:
            self._asked.add(task)
        if wanted == "statistics" and kind == DONE:
            damage(path_of_done(frame).replace("Data.db", "Statistics.db"))
        if wanted == "data" and kind == DONE:
            os.truncate(path_of_done(frame), 10)
        if wanted == "garbage" and kind not in (WELCOME, PONG):
            return b"\xff" * 64
        if wanted == "deaf" and kind not in (WELCOME, PONG):
            return b""
        if wanted == "version" and kind == WELCOME:
            return frame[:17] + struct.pack(">H", 99) + frame[19:]
        return frame

    def _stages(self, frame):
        """Those at which a task is that says this."""
        kind, has_output = frame[4], frame[5:13] in self._asked
        if kind == DONE:
            return ["done"]
        if kind == ASK_OUTPUT and not has_output:
            return ["asked"]
        if kind != TICK:
            return []
        _, read, total = struct.unpack(">QQQ", frame[13:37])
        return ["granted", "written"] if has_output and read == total else ["granted"] if has_output else ["sent"]

    def _hold(self, wanted):
        held = os.path.join(os.path.dirname(self._control), "held")
        with open(held, "w", encoding="utf-8"):
            pass
        while self.wanted() == wanted:
            time.sleep(0.02)
        os.unlink(held)
        if self._child.poll() is not None:
            sys.exit(self._child.returncode)


def main():
    program, control, *arguments = sys.argv[1:]
    # As the real one, it ends with the node (PR_SET_PDEATHSIG), and the real one with it.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    child = subprocess.Popen([program, *arguments], stdin=sys.stdin, stdout=subprocess.PIPE)
    shim = Shim(child, control)
    for frame in frames(child.stdout):
        sys.stdout.buffer.write(shim.passed_on(frame))
        sys.stdout.buffer.flush()
    sys.exit(child.wait())


if __name__ == "__main__":
    main()
