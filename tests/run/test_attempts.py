"""When a job is started again, and what is written down of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phalanx.run.attempts import RestartError, run_attempts
from phalanx.run.bundle import BundleWriter
from phalanx.run.ending import Reason

FAILED = Reason("failed", "rank 1 ended with exit status 1", 1, (1,))
DONE = Reason("done", "all ranks ended well", 0)


class Job:
    """Ends as it is told, attempt by attempt."""

    def __init__(self, folder: Path, *ends: Reason | Exception) -> None:
        self.ends, self.said = ends, list[str]()
        self.writer = BundleWriter(folder, self.said.append)
        self.writer.begin({"size": 2})

    def attempt(self, number: int) -> Reason:
        if isinstance(self.ends[number], Exception):
            raise self.ends[number]
        self.writer.begin_attempt(number, range(2))
        return self.ends[number]  # type: ignore[return-value]

    def run(self, max_restarts: int, may_restart: bool = True) -> Reason:
        return run_attempts(max_restarts, self.attempt, self.writer, self.said.append, lambda: may_restart)

    def restarted(self) -> list[bool]:
        manifest = json.loads((self.writer.folder / "manifest.json").read_text())
        return [bool(one.get("restarted")) for one in manifest["attempts"]]


def test_a_failure_is_tried_again_until_it_ends_well(tmp_path: Path) -> None:
    job = Job(tmp_path, FAILED, FAILED, DONE)
    assert job.run(5) is DONE
    assert [text for text in job.said if "starting again" in text][-1].endswith("starting again (2 of 5)")


def test_not_more_often_than_was_asked(tmp_path: Path) -> None:
    assert Job(tmp_path, FAILED, FAILED, DONE).run(1) is FAILED


def test_a_user_who_has_enough_is_obeyed(tmp_path: Path) -> None:
    assert Job(tmp_path, FAILED, DONE).run(3, may_restart=False) is FAILED


def test_why_it_failed_is_worth_more_than_why_it_cannot_start_again(tmp_path: Path) -> None:
    job = Job(tmp_path, FAILED, RestartError("no node is left"))
    assert job.run(3) is FAILED
    assert job.said[-1] == "cannot start again: no node is left"


def test_the_first_attempt_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RestartError):
        Job(tmp_path, RestartError("no node at all")).run(3)
