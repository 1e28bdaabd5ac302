"""Bytes over TCP, counted by the kernel: a download is seen although it takes no processor time and writes no file."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from phalanx.run.watch.traffic import Traffic, bytes_by_socket, sockets_of

RECEIVE = (
    "import socket, sys\nline = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\nwhile line.recv(65536): pass"
)


@pytest.fixture(autouse=True)
def needs_the_kernels_answer() -> None:
    try:
        next(iter(bytes_by_socket()), None)
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


def test_counters_grow_with_the_bytes_and_stay_when_a_connection_is_closed() -> None:
    traffic, me = Traffic(), os.getpid()
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        line, _ = server.accept()
        before = traffic.note({me: []})
        for _ in range(10):
            client.sendall(b"x" * 10_000)
            left = 10_000
            while left:
                left -= len(line.recv(left))
        after = traffic.note({me: []})
        client.close()
        line.close()
    closed = traffic.note({me: []})
    assert before is not None
    assert after is not None
    assert after[me] - before[me] >= 100_000
    assert closed == after


def test_a_process_that_is_gone_has_no_sockets() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert sockets_of(gone.pid) == frozenset()
