"""A snapshot waits for what only ranks can tell, but not for those that are gone."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from phalanx.run.watch.heartbeat import HeartbeatFile
from phalanx.run.watch.inside import phalanx_inside as inside
from phalanx.run.watch.processes import is_alive
from phalanx.run.watch.snapshot import take_snapshot
from phalanx.run.watch.stacks import ENDED


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
