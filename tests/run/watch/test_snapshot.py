"""What a rank writes down of its own stacks, where py-spy may not look, is read as py-spy's are."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from phalanx.run.watch.heartbeat import HeartbeatFile
from phalanx.run.watch.inside import phalanx_inside as inside
from phalanx.run.watch.snapshot import take_snapshot
from phalanx.run.watch.stacks import GRANT, ProcessStacks


def recv(tensor: str, src: int) -> str:
    """Stands for PyTorch's, whose arguments tell the partner."""
    return inside._stacks(os.getpid(), threading.get_ident())


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
