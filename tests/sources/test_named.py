"""What a user names is opened without waiting for ever: files, pipes with and without a writer."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from phalanx.preflight.host_list import read_hosts
from phalanx.sources import named
from phalanx.sources.named import open_named, read_named_text


def test_a_pipe_into_which_nobody_writes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "hosts.txt")
    with pytest.raises(OSError, match="nobody writes"):
        open_named(tmp_path / "hosts.txt", patience=0.05)
    monkeypatch.setattr(named, "open_named", lambda path: open_named(path, patience=0.05))
    with pytest.raises(ValueError, match="nobody writes"):
        read_hosts(f"@{tmp_path / 'hosts.txt'}", {})


def test_a_writer_may_come_later(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Timer(0.1, lambda: path.write_bytes(b"node0\nnode1\n"))
    writer.start()
    with open_named(path, patience=10) as file:
        assert file.read() == b"node0\nnode1\n"
    writer.join()


def test_files_are_read_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"caf\xe9")
    assert read_named_text(tmp_path / "a") == "caf\ufffd"
    monkeypatch.setattr(named, "_MOST_TEXT", 3)
    with pytest.raises(OSError, match="larger than"):
        read_named_text(tmp_path / "a")


def test_a_log_is_read_from_a_pipe_whole(tmp_path: Path) -> None:
    """Whether it is a trace was looked at first, and what that look read was gone: "nothing wrong found"."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Timer(0.1, lambda: path.write_bytes(b"step 1\n[rank1]: ValueError: late\n"))
    writer.start()
    shown = subprocess.run(
        [sys.executable, "-m", "phalanx", "diagnose", str(path)], capture_output=True, text=True, timeout=60
    )
    writer.join()
    assert "Rank 1 raised ValueError: late" in shown.stdout


def test_a_pipe_that_nobody_opened_costs_seconds(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    began = time.monotonic()
    with pytest.raises(OSError, match="nobody writes"):
        open_named(tmp_path / "pipe")
    assert time.monotonic() - began < 10


def test_a_writer_may_think_before_it_writes(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    slow = subprocess.Popen(["sh", "-c", f"exec > '{path}'; sleep 3; echo node0"])
    with open_named(path) as file:
        assert file.read() == b"node0\n"
    assert slow.wait(10) == 0
