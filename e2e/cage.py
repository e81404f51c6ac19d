"""A memory cgroup (version 1 or 2) below the one that the tests are in: what a process started in it may use."""

import os
import time
from pathlib import Path

VERSION_1 = ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.usage_in_bytes", "memory.oom_control")
VERSION_2 = ("memory.max", "memory.peak", "memory.current", "memory.events")


def own_group():
    """The folder of this process's group, as far as memory is concerned, and how its files are called."""
    groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text(encoding="ascii").split()]
    for _, kinds, path in groups:
        if "memory" in kinds.split(","):
            return Path("/sys/fs/cgroup/memory") / path.lstrip("/"), VERSION_1
    path = next((path for number, _, path in groups if number == "0"), None)
    return (Path("/sys/fs/cgroup") / path.lstrip("/"), VERSION_2) if path else (None, None)


class Cage:
    """Raises OSError where no group can be made."""

    def __init__(self, name, limit):
        parent, names = own_group()
        if parent is None:
            raise OSError("this machine has no memory cgroup")
        self.folder = parent / f"halcyon-test-{os.getpid()}-{name}"
        self._limit, self._peak, self._used, self._events = names
        self.folder.mkdir()
        try:
            (self.folder / self._limit).write_text(str(limit), encoding="ascii")
        except OSError:
            self.folder.rmdir()
            raise

    def enter(self):
        """To be called by a process before it becomes another program."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    def tighten(self, limit):
        (self.folder / self._limit).write_text(str(limit), encoding="ascii")

    def used(self):
        return int((self.folder / self._used).read_text(encoding="ascii"))

    def kills(self):
        """How many of its processes the kernel has killed for their memory."""
        lines = (self.folder / self._events).read_text(encoding="ascii").splitlines()
        return dict((name, int(count)) for name, count in (line.split() for line in lines))["oom_kill"]

    def peak_mib(self):
        return int((self.folder / self._peak).read_text(encoding="ascii")) >> 20

    def close(self):
        """When its processes have ended."""
        for _ in range(100):
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.05)
