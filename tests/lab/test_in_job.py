"""Faults that happen in the middle of a job are seen by what the watch of `phalanx run` looks at: the ranks' own connections."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

from phalanx.lab import Bed
from phalanx.lab.fault import find_fault, load_faults
from phalanx.run.watch.network import NetworkView, view_network
from tests.lab.beds import needs_beds

IN_JOB = [name for name, fault in load_faults().items() if fault.expected.found_by == "run"]
# Ranks that send each other something all the time over connections that stay, as libraries do.
RANK = """
import os, socket, sys, threading, time
rank, peers = int(os.environ["RANK"]), sys.argv[1:]
server = socket.create_server(("", 7000))
def echo(peer):
    while data := peer.recv(4096):
        peer.sendall(data)
def listen():
    kept = []
    while True:
        peer, _ = server.accept()
        kept.append(peer)
        threading.Thread(target=echo, args=(peer,), daemon=True).start()
threading.Thread(target=listen, daemon=True).start()
time.sleep(0.5)
for other, address in enumerate(peers):
    if other < rank:
        sock = socket.create_connection((address, 7000), 20)
        sock.settimeout(None)
        def talk(sock=sock):
            while True:
                sock.sendall(b"x" * 500)
                sock.recv(4096)
                time.sleep(0.02)
        threading.Thread(target=talk, daemon=True).start()
print("up", flush=True)
time.sleep(1000)
"""


def ranks_of(running: dict[int, subprocess.Popen[str]]) -> dict[int, int]:
    """The ranks' own processes: children of those that entered the namespaces."""
    found = {}
    for rank, process in running.items():
        children = psutil.Process(process.pid).children(recursive=True)
        if children:
            found[rank] = children[-1].pid
    return found


@needs_beds
@pytest.mark.parametrize("name", IN_JOB)
def test_a_break_in_the_middle_is_seen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Bed(3) as bed:
        addresses = [host.address for host in bed]
        running = {
            host.number: host.start([sys.executable, "-I", "-S", "-c", RANK, *addresses], stdout=subprocess.PIPE)
            for host in bed
        }
        try:
            for process in running.values():
                assert process.stdout is not None
                assert process.stdout.readline() == "up\n"
            pids = ranks_of(running)
            assert len(pids) == 3
            assert view_network(pids).broken == ()
            began = time.monotonic()
            find_fault(name)[0].apply(bed)
            view = wait_for_break(pids, 30.0)
            took = time.monotonic() - began
        finally:
            for process in running.values():
                process.kill()
                process.wait(10)
                if process.stdout is not None:
                    process.stdout.close()
        with capsys.disabled():
            print(f" [{name}: seen after {took:.1f} s]", end="")
        assert view.facts()
        assert 1 in {one.rank for one in view.broken} or any(one.peer[0] == "10.77.0.11" for one in view.broken)


def wait_for_break(pids: dict[int, int], seconds: float) -> NetworkView:
    end = time.monotonic() + seconds
    while not (view := view_network(pids)).broken and time.monotonic() < end:
        time.sleep(0.1)
    return view
