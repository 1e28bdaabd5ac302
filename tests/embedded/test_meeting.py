"""Companions without a shared folder: files arrive where a shared folder would have them, and nobody writes what is another's."""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from phalanx.embedded import mirror
from phalanx.embedded.meeting import Meeting
from phalanx.remote.link import Link, LinkError

SECRET = "hunter2-and-more"


def bundle(folder: Path, rank: int) -> Path:
    place = folder / "attempt0" / f"rank{rank}"
    place.mkdir(parents=True)
    (folder / "nodes").mkdir()
    (place / "process.json").write_text("{}")
    (folder / "manifest.json").write_text(json.dumps({"schema": "phalanx.bundle/1", "id": folder.name, "key": "k"}))
    return folder


def wait(is_so: Callable[[], bool], seconds: float = 15) -> bool:
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(0.05)
    return is_so()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_evidence_goes_to_rank_0_and_the_verdict_comes_back(tmp_path: Path) -> None:
    here, there = bundle(tmp_path / "here", 0), bundle(tmp_path / "there", 1)
    variables = {"PHALANX_MEET": f"127.0.0.1:{free_port()}"}
    hub, node = Meeting(here, "h0", variables), Meeting(there, "h1", variables)
    node.secrets = [SECRET]
    try:
        hub.look((0,), 2)
        node.look((1,), 2)
        log = there / "attempt0/rank1/output.log"
        log.write_text(f"first\npassword {SECRET}\n")
        (there / "nodes/h1.json").write_text('{"host": "h1"}')
        (there / "attempt0/rank0").mkdir()
        (there / "attempt0/rank0/exit.json").write_text("{}")  # not a rank of this node: stays here
        arrived = here / "attempt0/rank1/output.log"
        assert wait(lambda: (here / "nodes/h1.json").exists())
        assert arrived.read_text().startswith("first\n")
        assert SECRET not in arrived.read_text()
        with log.open("a") as file:
            file.write("more\n")
        (here / "report.json").write_text("verdict")
        (here / "nodes/h0.json").write_text('{"host": "h0"}')
        assert wait(lambda: arrived.read_text().endswith("more\n"))
        assert arrived.read_text().count("first") == 1
        assert wait(lambda: (there / "report.json").exists() and (there / "nodes/h0.json").exists())
        assert (hub.hub, node.hub) == ("h0", "h0")
        assert not (here / "attempt0/rank0/exit.json").exists()
        assert stat.S_IMODE(arrived.stat().st_mode) == 0o600
    finally:
        node.close()
        hub.close()


def test_nodes_that_share_the_folder_do_not_call(tmp_path: Path) -> None:
    shared = bundle(tmp_path / "shared", 1)
    (shared / "nodes/h1.calls").write_text(json.dumps({"at": [["127.0.0.1", 1]], "token": "t", "bundle": "shared"}))
    node = Meeting(shared, "h1", {})
    node.look((1,), 2)
    assert not node.is_awaited


def test_a_stranger_is_not_heard(tmp_path: Path) -> None:
    here, there = bundle(tmp_path / "here", 0), bundle(tmp_path / "there", 1)
    at = {"PHALANX_MEET": f"127.0.0.1:{free_port()}"}
    hub = Meeting(here, "h0", {**at, "PHALANX_MEET_TOKEN": "right"})
    stranger = Meeting(there, "h1", {**at, "PHALANX_MEET_TOKEN": "wrong"})
    try:
        hub.look((0,), 2)
        stranger.look((1,), 2)
        assert not wait(lambda: (here / "attempt0/rank1").exists() or hub.hub is not None, 3)
    finally:
        hub.close()
        stranger.close()


@pytest.mark.parametrize(
    "name",
    ["manifest.json", "report.json", "attempt0/rank0/exit.json", "attempt0/rank1/../../x", "/etc/x", "nodes/h0.json",
     "attempt0/rank1/.hidden", "attempt0/watch-h0.jsonl", "nodes/h1.listens"],
)  # fmt: skip
def test_a_node_writes_only_what_is_its_own(tmp_path: Path, name: str) -> None:
    here = bundle(tmp_path / "here", 0)
    hub = Meeting(here, "h0", {})
    hub._ranks = (0,)
    reading, writing = os.pipe()
    sending, taking = Link.over_pipes(reading, writing), Link.over_pipes(reading, writing)
    mirror.send(sending, name, b"forged")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(LinkError, match="not a file that it may send"):
        mirror.take(taking, here, mirror.BY_NODE, lambda match: hub._is_of(match, "h1"))
    assert sorted(tmp_path.rglob("*")) == before
    os.close(reading)
    os.close(writing)
