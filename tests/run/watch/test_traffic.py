"""Bytes over TCP, counted by the kernel: a download is seen although it takes no processor time and writes no file."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from phalanx.run.watch.traffic import Traffic, all_sockets, sockets_of

RECEIVE = (
    "import socket, sys\nline = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\nwhile line.recv(65536): pass"
)


@pytest.fixture(autouse=True)
def needs_the_kernels_answer() -> None:
    try:
        next(iter(all_sockets()), None)
    except OSError:
        pytest.skip("needs the kernel's socket diagnosis (CONFIG_INET_DIAG)")


def test_what_a_child_receives_counts_as_its_parents() -> None:
    traffic = Traffic()
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = subprocess.Popen([sys.executable, "-c", RECEIVE, str(server.getsockname()[1])])
        try:
            line, _ = server.accept()
            before = traffic.note({1: [child.pid]})
            line.sendall(b"x" * 300_000)
            assert before is not None
            deadline = time.monotonic() + 20
            while ((after := traffic.note({1: [child.pid]})) or before)[1] < before[1] + 300_000:
                assert time.monotonic() < deadline, after
                time.sleep(0.05)
            line.close()
        finally:
            child.kill()
            child.wait()


SEND = "import socket, sys\nline = socket.create_server(('127.0.0.1', 0))\nprint(line.getsockname()[1], flush=True)\npeer, _ = line.accept()\npeer.sendall(bytes(200_000))\nsys.stdin.read()"


@contextmanager
def received() -> Iterator[int]:
    """A connection by which this process has been sent 200,000 bytes; the sender's process number."""
    sender = subprocess.Popen([sys.executable, "-c", SEND], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert sender.stdout is not None
        with socket.create_connection(("127.0.0.1", int(sender.stdout.readline()))) as line:
            left = 200_000
            while left:
                left -= len(line.recv(left))
            yield sender.pid
    finally:
        sender.kill()
        sender.wait()


def test_what_ranks_say_to_one_another_is_not_counted() -> None:
    """The sender is a rank of the job once, and once it is not."""
    me = os.getpid()
    with received() as sender:
        within, alone = Traffic().note({me: [], sender: []}), Traffic().note({me: []})
    assert within is not None
    assert alone is not None
    assert (within[me], within[sender]) == (0, 0)


def test_what_a_rank_and_its_own_helper_say_to_one_another_is_counted() -> None:
    """A server of its data that it started itself."""
    me = os.getpid()
    with received() as sender:
        within, alone = Traffic().note({me: [sender]}), Traffic().note({me: []})
    assert within is not None
    assert alone is not None
    assert within[me] >= 400_000  # both ends are its own
    assert alone[me] >= 200_000


def test_a_counter_stays_when_a_connection_is_closed() -> None:
    traffic, me = Traffic(), os.getpid()
    with received():
        open_ = traffic.note({me: []})
    assert open_ is not None
    assert open_[me] >= 200_000
    assert traffic.note({me: []}) == open_


def test_a_process_that_is_gone_has_no_sockets() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert sockets_of(gone.pid) == frozenset()
