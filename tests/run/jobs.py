"""Starts `phalanx run` as a user does: a real process with real ranks, and looks at what it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import phalanx

SOURCE = Path(phalanx.__file__).parent.parent


@dataclass
class Done:
    status: int
    out: str
    err: str
    bundle: Path

    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.bundle / "manifest.json").read_text()))

    def report(self) -> dict[str, Any]:
        return dict(json.loads((self.bundle / "report.json").read_text()))

    def rank(self, number: int, attempt: int = 0) -> Path:
        return self.bundle / f"attempt{attempt}" / f"rank{number}"

    def exit(self, number: int, attempt: int = 0) -> dict[str, Any]:
        return dict(json.loads((self.rank(number, attempt) / "exit.json").read_text()))


def start(folder: Path, *arguments: str, script: str | None = None, **variables: str) -> subprocess.Popen[bytes]:
    """Start it; the bundle goes to `folder/bundle`."""
    if script is not None:
        (folder / "train.py").write_text(script)
    return subprocess.Popen(
        [sys.executable, "-m", "phalanx", "run", "--bundle", str(folder / "bundle"), *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=(folder / "out").open("wb"),
        stderr=(folder / "err").open("wb"),
        env={**os.environ, "PYTHONPATH": str(SOURCE), "TEST_JOB": str(folder), **variables},
    )


def finish(process: subprocess.Popen[bytes], folder: Path, timeout: float = 240) -> Done:
    try:
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError((folder / "err").read_text()[-4000:]) from None
    return Done(status, (folder / "out").read_text(), (folder / "err").read_text(), folder / "bundle")


def run(folder: Path, *arguments: str, script: str | None = None, **variables: str) -> Done:
    return finish(start(folder, *arguments, script=script, **variables), folder)


def wait_for(true: Callable[[], bool], seconds: float = 120) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.05)
    return true()


def processes_of(folder: Path) -> list[psutil.Process]:
    """Every living process that was started in this test's job, whoever its parent is by now."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TEST_JOB") == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def said(text: str) -> dict[str, list[int]]:
    """Who said each line, folded or not: on a loaded machine ranks say the same too far apart to be folded."""
    found: dict[str, list[int]] = {}
    for line in text.splitlines():
        who, _, words = line.partition("] ")
        for part in who.removeprefix("[").split(","):
            first, _, last = part.partition("-")
            if first.isdigit():
                found.setdefault(words, []).extend(range(int(first), int(last or first) + 1))
    return {words: sorted(ranks) for words, ranks in found.items()}
