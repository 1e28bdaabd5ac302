"""A real terminal: colours, the status line, and that a pipe has none of it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from phalanx.run.screen import wants_colour

from .jobs import SOURCE

SCRIPT = "import os, time\nprint('hello', os.environ['RANK'], flush=True)\ntime.sleep(4)\nprint('bye')\n"


def in_terminal(folder: Path, **variables: str) -> str:
    """What a terminal gets to see."""
    (folder / "train.py").write_text(SCRIPT)
    ours, theirs = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "phalanx", "run", "-n", "2", "--bundle", "b", "train.py"],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**kept, "PYTHONPATH": str(SOURCE), "TERM": "xterm", **variables},
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not data:
            break
        seen += data
    os.close(ours)
    assert process.wait(120) == 0
    return seen.decode()


def test_colours_and_a_status_line_that_is_taken_away(tmp_path: Path) -> None:
    seen = in_terminal(tmp_path)
    assert "\x1b[36m[0]\x1b[0m hello 0" in seen
    assert re.search(r"\d:\d\d · 2 ranks", seen)
    assert "\r\x1b[2K" in seen
    lines = [re.sub(r".*\x1b\[2K", "", line) for line in seen.splitlines()]
    assert any(line.endswith("bye") for line in lines)
    assert "ended well" in lines[-1]


def test_no_color_is_honoured(tmp_path: Path) -> None:
    seen = in_terminal(tmp_path, NO_COLOR="1")
    assert "[0] hello 0" in seen
    assert re.search(r"\x1b\[\d+m", seen) is None


@pytest.mark.parametrize(
    ("variables", "wanted"), [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)]
)
def test_who_wants_colour(tmp_path: Path, variables: dict[str, str], wanted: bool) -> None:
    with (tmp_path / "file").open("w") as file:
        assert wants_colour(file, variables) is wanted


def test_a_reader_that_has_stopped_stops_neither_the_time_limit_nor_the_job(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import time\nfor i in range(20000): print('line', i)\nprint('end', flush=True)\ntime.sleep(600)\n"
    )
    command = [
        sys.executable,
        "-m",
        "phalanx",
        "run",
        "-n",
        "1",
        "--timeout",
        "6",
        "--grace",
        "1",
        "--bundle",
        "kept",
        "train.py",
    ]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as job:
        exited = tmp_path / "kept/attempt0/rank0/exit.json"
        deadline = time.monotonic() + 90
        while not exited.exists() and time.monotonic() < deadline:  # nobody reads all the while
            time.sleep(0.1)
        assert exited.exists(), "the rank was ended by the time limit"
        out, _ = job.communicate(timeout=60)
        assert job.returncode == 124
    assert (tmp_path / "kept/attempt0/rank0/output.log").read_bytes().endswith(b"end\n")
    assert out.endswith(b"end\n"), "and what waited is written in the end"
