"""Engines that are asked by their own programs: answers, silence, and what is done when whoever asked is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from phalanx.backends.asking import AskedJob, OrphanCleanup, ask
from phalanx.backends.backend import BackendError, State
from tests.run.jobs import SOURCE, wait_for


def program(folder: Path, text: str) -> str:
    path = folder / "engine"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def test_answers_and_the_programs_own_words(tmp_path: Path) -> None:
    assert ask([program(tmp_path, 'echo "$1 $X"'), "a;b"], os.environ | {"X": "y"}) == "a;b y\n"
    with pytest.raises(BackendError, match=r"^engine: no such partition$"):
        ask([program(tmp_path, "echo no such partition >&2; exit 3")])
    with pytest.raises(BackendError, match=r"^engine: exit status 4$"):
        ask([program(tmp_path, "exit 4")])
    with pytest.raises(BackendError, match="there is no nothing-here here"):
        ask(["nothing-here"])


def test_a_will_is_executed_when_its_maker_is_killed(tmp_path: Path) -> None:
    mark = tmp_path / "a mark; rm $(x)"
    code = (
        "import sys, time\nfrom phalanx.backends.asking import OrphanCleanup\n"
        "OrphanCleanup(['touch', sys.argv[1]])\nprint('made', flush=True)\ntime.sleep(600)\n"
    )
    maker = subprocess.Popen(
        [sys.executable, "-c", code, str(mark)], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(SOURCE)}
    )
    assert maker.stdout is not None
    assert maker.stdout.readline() == b"made\n"
    assert not mark.exists()
    maker.kill()
    maker.wait()
    maker.stdout.close()
    assert wait_for(mark.exists, 30)


def test_a_will_that_is_revoked_is_not(tmp_path: Path) -> None:
    will = OrphanCleanup(["touch", str(tmp_path / "mark")])
    will.revoke()
    time.sleep(0.5)
    assert not (tmp_path / "mark").exists()
    will.revoke()  # a second time does no harm


class Job(AskedJob):
    """Tells what it was asked."""

    def __init__(self, mark: Path) -> None:
        super().__init__(0.0, ("touch", str(mark)))
        self.answers: list[tuple[State, str] | BackendError] = []
        self.asked: list[str] = []

    def _look(self) -> tuple[State, str]:
        self.asked.append("look")
        answer = self.answers.pop(0)
        if isinstance(answer, BackendError):
            raise answer
        return answer

    def _end(self, by_force: bool) -> None:
        self.asked.append("force" if by_force else "end")

    def _part(self) -> dict[str, str]:
        return {"said": "words", "nothing": ""}


def test_an_engine_that_does_not_answer_leaves_the_last_state(tmp_path: Path) -> None:
    job = Job(tmp_path / "mark")
    job.answers = [(State.RUNNING, ""), BackendError("no answer"), (State.DONE, "")]
    assert [job.follow() for _ in range(4)] == [
        (State.RUNNING, ""),
        (State.RUNNING, "no answer"),
        (State.DONE, ""),
        (State.DONE, ""),
    ]
    assert job.asked == ["look"] * 3  # what has ended is not asked about again
    for _ in range(3):
        job.cancel()
    assert job.asked[3:] == ["end", "force"]
    assert job.collect() == {"said": "words"}
    assert not (tmp_path / "mark").exists()
