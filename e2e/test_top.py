"""`halcyon top` on a pseudo-terminal: pages, keys, signals, a node that goes away, and texts that a terminal would obey."""

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time

import pytest

from native import Client
from patience import PATIENCE_SECONDS, until
from server import HOST, Server

ENTERS, LEAVES = b"\x1b[?1049h", b"\x1b[?1049l"
HIDES, SHOWS = b"\x1b[?25l", b"\x1b[?25h"
HOSTILE = "\x1b]0;owned\x07\x9b31m"


@pytest.fixture(scope="module")
def node(request, tmp_path_factory):
    server = Server(request.config.getoption("--halcyon"), tmp_path_factory.mktemp("top")).start()
    client = Client(server.port)
    client.query("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    client.query("CREATE TABLE shop.orders (k int PRIMARY KEY, v int)")
    for k in range(20):
        client.query(f"INSERT INTO shop.orders (k, v) VALUES ({k}, 0)")
        client.query(f"SELECT v FROM shop.orders WHERE k = {k}")
    yield server
    client.close()
    server.close()


class Terminal:
    """The program, and all that it wrote."""

    def __init__(self, binary, port, *options, lines=24, columns=80):
        self._master, slave = pty.openpty()
        self.resize(lines, columns)
        self._slave = slave
        self.before = termios.tcgetattr(slave)
        command = [binary, "top", "-p", str(port), "--interval", "0.2", *options]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        self.said = b""

    def resize(self, lines, columns):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self):
        if select.select([self._master], [], [], 0.1)[0]:
            self.said += os.read(self._master, 1 << 16)

    def screen(self):
        """What a terminal shows after all that."""
        cells, row, column = {}, 0, 0
        for code, end, character in re.findall(r"\x1b\[([?0-9;]*)([A-Za-z])|(.)", self.said.decode(errors="replace"), re.DOTALL):
            if end == "H":
                row, column = (int(number) - 1 for number in (code or "1;1").split(";"))
            elif end == "J":
                cells.clear()
            elif character:
                cells[row, column] = character
                column += 1
        lines = range(max((row for row, _ in cells), default=0) + 1)
        return "\n".join("".join(cells.get((line, at), " ") for at in range(250)).rstrip() for line in lines)

    def shows(self, *words, without="\0"):
        """Waits until the screen has the words, and lacks another."""
        end = time.monotonic() + PATIENCE_SECONDS
        while without in self.screen() or not all(word in self.screen() for word in words):
            assert time.monotonic() < end and self.process.poll() is None, self.screen()
            self._read()

    def press(self, keys):
        os.write(self._master, keys.encode())

    def ends(self):
        """The exit status, once the terminal is as it was."""
        end = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None or select.select([self._master], [], [], 0)[0]:
            assert time.monotonic() < end, self.said
            self._read()
        assert termios.tcgetattr(self._slave) == self.before
        assert self.said.index(ENTERS) < self.said.rindex(LEAVES) and self.said.rindex(HIDES) < self.said.rindex(SHOWS)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture
def top(halcyon, node):
    opened = []

    def start(*options, port=node.port, **size):
        opened.append(Terminal(halcyon.path, port, *options, **size))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def once(halcyon, port, *options):
    command = [halcyon.path, "top", "-p", str(port), "--interval", "0.2", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def test_keys_turn_pages_and_quit(top):
    """Proves that keys open pages and the help, that a resize is followed, and that the terminal is restored."""
    terminal = top()
    terminal.shows("Overview", "Latency", "Compaction", "Memory", "q quit")
    terminal.press("\t")
    terminal.shows("shop.orders", "reads/s", "tombstones", without="Latency")
    terminal.press("4")
    terminal.shows("requests/s", f"{HOST}:", without="reads/s")
    terminal.press("?")
    terminal.shows("any key closes it")
    terminal.press("x1")
    terminal.resize(10, 40)
    os.killpg(terminal.process.pid, signal.SIGWINCH)
    terminal.shows("Latency", " reads ", without="Memory")
    terminal.press("q")
    assert terminal.ends() == 0


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda by: by.name)
def test_signals_restore_the_terminal(top, by):
    terminal = top()
    terminal.shows("Latency")
    terminal.process.send_signal(by)
    assert terminal.ends() == 0


def test_a_terminal_that_hangs_up_ends_it(halcyon, node):
    """Proves that the program ends with its terminal, as where a connection of ssh breaks: it would read the end of it without a pause."""
    child, master = pty.fork()
    if child == 0:
        os.execv(halcyon.path, [str(halcyon.path), "top", "-p", str(node.port), "--interval", "0.2"])
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.kill(child, signal.SIGWINCH)
    said = b""
    while b"Latency" not in said:
        assert select.select([master], [], [], PATIENCE_SECONDS)[0], said
        said += os.read(master, 1 << 16)
    os.close(master)
    try:
        until(lambda: os.waitpid(child, os.WNOHANG)[0] == child, "top outlives its terminal")
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def test_colours_can_be_refused(top, monkeypatch):
    """Proves that NO_COLOR leaves bold and reversed text only."""
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = top()
    terminal.shows("Latency", "Memory")
    terminal.press("q")
    assert terminal.ends() == 0
    coloured = [code for code in re.findall(rb"\x1b\[([0-9;]*)m", terminal.said) if re.search(rb"(^|;)(3[0-8]|4[0-8])(;|$)", code)]
    assert not coloured, coloured


def test_a_lost_node_is_told_and_found_again(request, tmp_path, top):
    """Proves that the reason is shown when a node goes away, and that figures return with it."""
    server = Server(request.config.getoption("--halcyon"), tmp_path).start()
    try:
        terminal = top(port=server.port, columns=160)
        terminal.shows("Latency")
        server.stop()
        terminal.shows("No connection", "Connection refused", "Latency")
        server.start()
        terminal.shows("Latency", without="No connection")
        terminal.press("q")
        assert terminal.ends() == 0
    finally:
        server.close()


def hostile_client(port):
    """Connected under the name of a driver that a terminal would obey."""
    def text(word):
        return struct.pack(">H", len(word.encode())) + word.encode()

    body = struct.pack(">H", 2) + text("CQL_VERSION") + text("3.0.0") + text("DRIVER_NAME") + text(HOSTILE)
    client = socket.create_connection((HOST, port), timeout=PATIENCE_SECONDS)
    client.sendall(struct.pack(">BBhBi", 4, 0, 0, 1, len(body)) + body)
    assert client.recv(9)[4] == 2
    return client


def test_texts_of_the_server_are_escaped(halcyon, node, top):
    """Proves that the name of a driver cannot command the terminal, in text and on a terminal."""
    with hostile_client(node.port):
        printed = once(halcyon, node.port, "--once").stdout
        assert "\\u{1b}]0;owned\\u{7}\\u{9b}31m" in printed
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", printed)
        terminal = top(columns=200)
        terminal.shows("Latency")
        terminal.press("4")
        terminal.shows("\\u{1b}]0;owned")
        terminal.press("q")
        assert terminal.ends() == 0
        assert HOSTILE.encode() not in terminal.said and b"\x1b]0;" not in terminal.said


def test_without_a_terminal_the_pages_are_printed_once(halcyon, node):
    """Proves that output is text with all pages, with and without --once, and what a wrong line and a missing node are answered with."""
    for options in ([], ["--once"]):
        done = once(halcyon, node.port, *options)
        assert (done.returncode, done.stderr) == (0, "")
        for word in ("Latency", "== Tables ==", "shop.orders", "== Slow requests ==", "== Clients ==", HOST):
            assert word in done.stdout, done.stdout
    line = next(line for line in done.stdout.splitlines() if line.startswith(" reads "))
    assert re.fullmatch(r" reads( +\d+(\.\d+)? (µs|ms|s)){3} +\d+(\.\d+)?( .*)?", line), line
    refused = once(halcyon, node.port, "--once", "nonsense")
    assert (refused.returncode, refused.stderr) == (2, "halcyon: unknown argument 'nonsense'; see halcyon top --help\n")
    missing = once(halcyon, 1, "--once")
    assert missing.returncode == 3 and "Failed to connect to '127.0.0.1:1' - " in missing.stderr
