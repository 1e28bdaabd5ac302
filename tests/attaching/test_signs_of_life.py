"""Bytes between ranks and step lines show that a job gets on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from phalanx.attaching.signs_of_life import Link, Outputs, between, growth, links_of, quiet_of


def test_links_belong_to_two_ranks_also_of_two_machines() -> None:
    links = [Link(0, "10.0.0.1:5", "10.0.0.2:6", 3.0, 10), Link(1, "10.0.0.2:6", "10.0.0.1:5", 2.0, 10)]
    outside = Link(0, "10.0.0.1:7", "52.0.0.1:443", 0.1, 99)
    own = [Link(0, "127.0.0.1:8", "127.0.0.1:9", 0.0, 5), Link(0, "127.0.0.1:9", "127.0.0.1:8", 0.0, 5)]
    assert between([*links, outside, *own]) == links
    assert quiet_of([*links, outside, *own]) == 2.0
    assert quiet_of([outside]) is None
    assert growth(links, [Link(0, "10.0.0.1:5", "10.0.0.2:6", 0.0, 4096), links[1]]) == 4086


def test_a_real_connection_is_counted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        other, _ = server.accept()
        with other:
            pids = {0: os.getpid()}
            before = links_of(pids)
            one.sendall(b"x" * 5000)
            assert len(other.recv(5000, socket.MSG_WAITALL)) == 5000
            after = links_of(pids)
    name = "{}:{}".format(*one.getsockname()) if one.fileno() >= 0 else ""
    counts = {link.local: link.count for link in before}
    assert any(link.count - counts.get(link.local, link.count) >= 5000 for link in after), name


def test_steps_that_come(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=file)
    try:
        out.write_text("step 7 loss 0.5\n")
        outputs = Outputs([process.pid])
        assert outputs.steps() == 0
        with out.open("a") as file:
            file.write("step 7 loss 0.5\nstill waiting at step 7\n")
        assert outputs.steps() == 0  # nothing new
        with out.open("a") as file:
            file.write("step 8 loss 0.4\nstep 9 loss 0.3\n")
        assert outputs.steps() == 2
    finally:
        process.communicate(b"\n", timeout=10)
