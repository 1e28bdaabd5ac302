"""An agent's folder: private, gone with it, and swept by the next one where it was killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from phalanx.remote.scratch import Scratch


@pytest.fixture(autouse=True)
def _stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # a folder's end leads to the root; come back after the test


def left_behind(where: Path, name: str, age: float) -> Path:
    """As of an agent that was killed so many seconds ago."""
    folder = where / f"phalanx-agent-{os.getuid()}-{name}"
    folder.mkdir()
    (folder / ".lock").touch()
    (folder / "result.pickle").write_bytes(b"x")
    os.utime(folder, (time.time() - age, time.time() - age))
    return folder


def test_it_is_private_and_gone_at_the_end(tmp_path: Path) -> None:
    with Scratch(tmp_path) as scratch:
        assert scratch.folder.stat().st_mode & 0o077 == 0
        (scratch.folder / "call.pickle").write_bytes(b"x")
    assert list(tmp_path.iterdir()) == []


def test_what_killed_agents_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    old, young = left_behind(tmp_path, "old", 3600), left_behind(tmp_path, "young", 1)
    link = tmp_path / f"phalanx-agent-{os.getuid()}-link"
    link.symlink_to(other)
    with Scratch(tmp_path) as living:
        os.utime(living.folder, (0, 0))
        with Scratch(tmp_path):
            assert not old.exists()
            assert young.exists()  # its agent may be about to lock it
            assert living.folder.exists()  # its agent holds the lock
            assert other.exists()
