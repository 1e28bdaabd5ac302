"""What a rank writes down of its own stacks, where py-spy may not look, is read as py-spy's are."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from phalanx.run.watch.heartbeat import HeartbeatFile
from phalanx.run.watch.inside import phalanx_inside as inside
from phalanx.run.watch.inside import phalanx_socket
from phalanx.run.watch.processes import is_alive
from phalanx.run.watch.snapshot import take_snapshot
from phalanx.run.watch.stacks import ENDED, GRANT, ProcessStacks


def recv(tensor: str, src: int) -> str:
    """Stands for PyTorch's, whose arguments tell the partner."""
    return phalanx_socket.stacks_as_text(threading.get_ident())


def test_the_ranks_own_stacks_tell_with_whom_it_wants_to_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "rank0"
    folder.mkdir()
    (folder / "inside-stacks-1.txt").write_text(recv("weights", 3))
    forbidden = ProcessStacks(os.getpid(), error=GRANT)
    monkeypatch.setattr("phalanx.run.watch.snapshot.take_stacks", lambda pids, **_: dict.fromkeys(pids, forbidden))
    taken = take_snapshot(1, tmp_path, {0: os.getpid()}, dict[int, HeartbeatFile]())
    main = taken.stacks[0].main
    assert main is not None
    told = dict(zip((frame.function for frame in main.frames), main.values, strict=True))
    assert told["recv"] == {"src": "3"}
    assert told["test_the_ranks_own_stacks_tell_with_whom_it_wants_to_meet"] == {}  # no other variables are looked at
    assert "src: 3" not in (folder / "stacks-1.txt").read_text()


def test_a_rank_that_has_ended_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a death the others often die within a moment, and answer nobody any more."""
    folder = tmp_path / "rank0"
    folder.mkdir()
    record = folder / "heartbeat"
    page = inside._claim(str(record))
    assert page is not None
    inside._Watch(0, 1, str(folder), page).beat(inside.CONNECTED)
    monkeypatch.setattr("phalanx.run.watch.snapshot._ANSWER_S", 600.0)
    with subprocess.Popen(["true"]) as ended:
        while is_alive(ended.pid):
            time.sleep(0.01)
        taken = take_snapshot(1, tmp_path, {0: ended.pid}, {0: HeartbeatFile(record)})
    assert taken.stacks[0].error == ENDED
    assert not taken.error  # there is nothing to grant
