"""What the kernel's table of connections tells: a broken path, a peer that does not read, and silence."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from phalanx.model.facts import sentence_of
from phalanx.run.watch.network import NetworkView, Tables, listening_ports, parse_line, view_network

LINE = "   3: 0100007F:1F90 0100007F:A2C4 01 000000{sent:02X}:00000000 {timer:02X}:00000014 000000{resent:02X}     0        0 4711 1 0000000000000000 20 4 30 10 -1"


def connection(sent: int = 16, timer: int = 1, resent: int = 3) -> NetworkView:
    found = parse_line(1, LINE.format(sent=sent, timer=timer, resent=resent))
    assert found is not None
    return NetworkView((found,) if found.is_broken else (), {("127.0.0.1", 0xA2C4): 2})


def test_data_that_is_sent_again_and_again_is_a_broken_path() -> None:
    view = connection()
    assert view.ranks() == (1, 2)
    told = sentence_of(*view.facts())
    assert (
        told
        == "16 bytes from rank 1 to rank 2 (127.0.0.1:41668) are not acknowledged, 3 times sent again: the path is broken"
    )


@pytest.mark.parametrize("values", [{"resent": 0}, {"resent": 1}, {"sent": 0}, {"timer": 0}, {"timer": 2}])
def test_what_is_no_broken_path(values: dict[str, int]) -> None:
    assert connection(**values).facts() == []


def test_a_socket_of_somebody_else_is_left_out() -> None:
    tables: Tables = {}
    with socket.create_server(("127.0.0.1", 0)) as server, subprocess.Popen(["sleep", "60"]) as other:
        port = server.getsockname()[1]
        assert port in listening_ports(os.getpid(), tables)
        assert port not in listening_ports(other.pid, tables)
        assert len(tables) == 1  # one network, read once
        other.kill()


def test_a_peer_that_does_not_read_is_not_a_broken_path() -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = stack.enter_context(socket.create_connection(server.getsockname()))
        peer, _ = server.accept()
        stack.enter_context(peer)
        client.setblocking(False)
        try:
            while True:
                client.send(b"x" * 65536)
        except BlockingIOError:
            pass
        end = time.monotonic() + 2
        while time.monotonic() < end:  # the kernel asks again and again whether it reads now
            assert view_network({0: os.getpid()}).broken == ()
            time.sleep(0.2)


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[list[str]]:
    """A network of our own, in which packets can be dropped: the command that runs something in it."""
    if os.geteuid() != 0 or not all(shutil.which(name) for name in ("unshare", "nsenter", "nft", "ip")):
        pytest.skip("needs root, and nftables, iproute2 and util-linux: apt-get install nftables iproute2 util-linux")
    holder = subprocess.Popen(["unshare", "-n", "sleep", "600"])
    inside = ["nsenter", "-t", str(holder.pid), "-n", "--"]
    try:
        end = time.monotonic() + 10
        while time.monotonic() < end and _net(holder.pid) == _net(os.getpid()):
            time.sleep(0.05)
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True, timeout=20)
        yield inside
    finally:
        holder.kill()
        holder.wait()


def _net(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    except OSError:
        return ""


SPEAKER = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 7001))
client = socket.create_connection(("127.0.0.1", 7001))
peer, _ = server.accept()
print("up", flush=True)
sys.stdin.readline()
client.send(b"x" * 100)
time.sleep(60)
"""


def test_a_real_broken_path(bed: list[str]) -> None:
    speaker = subprocess.Popen(
        [*bed, sys.executable, "-c", SPEAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert speaker.stdout is not None
        assert speaker.stdin is not None
        assert speaker.stdout.readline() == "up\n"
        rules = "table inet t {\n chain c {\n type filter hook input priority 0;\n tcp dport 7001 drop\n }\n}\n"
        subprocess.run([*bed, "nft", "-f", "-"], input=rules, text=True, check=True, timeout=20)
        speaker.stdin.write("\n")
        speaker.stdin.flush()
        end = time.monotonic() + 30
        while time.monotonic() < end and not (view := view_network({0: speaker.pid})).broken:
            time.sleep(0.2)
        told = sentence_of(*view.facts())
        assert told.startswith("100 bytes from rank 0 to rank 0 (127.0.0.1:7001) are not acknowledged")
    finally:
        speaker.kill()
        speaker.wait()
