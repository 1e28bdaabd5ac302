"""Dumps of a job that runs: each is of another moment, and that accuses nobody. A job that stands still is judged as ever."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest

from phalanx.diagnosis import diagnose_paths
from phalanx.model import Report
from tests.diagnosis.collective_analysis.jobs import Call, entry

LONG_AGO = 1_000_000_000


def write(folder: Path, ends: list[int], waits: list[bool], made: int = LONG_AGO, op: str = "all_reduce") -> Report:
    """Dumps of ranks that have completed so many calls and may wait in the next; `made`: when the waiting ones were made."""
    folder.mkdir()
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(len(ends))))}}
    for rank, (end, wait) in enumerate(zip(ends, waits, strict=True)):
        entries: list[dict[str, Any]] = [
            entry(number, 0, number + 1, Call(0, op), True, made - 10**9 + number) for number in range(end)
        ]
        if wait:
            entries.append(entry(end, 0, end + 1, Call(0, op), False, made))
        dump = {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, 2))
    return diagnose_paths([str(folder)])


def test_a_rank_whose_dump_is_older_is_not_accused(tmp_path: Path) -> None:
    """The others completed call 15, which needs rank 0: it went on after its dump was written."""
    for number, waits in enumerate(([True] * 4, [False, True, True, True])):
        report = write(tmp_path / str(number), [9, 15, 15, 15], waits)
        assert report.verdict is None
        assert any("rank 0" in item.what and "older" in item.what for item in report.not_checked)


def test_a_broadcast_proves_nothing_of_the_others(tmp_path: Path) -> None:
    """Its root is done with it before the others have come, so who is behind may well stand still."""
    report = write(tmp_path / "dumps", [9, 15, 15, 15], [False, True, True, True], op="broadcast")
    assert report.verdict is not None
    assert report.verdict.culprit_ranks == (0,)


def test_a_rank_that_did_not_come_is_accused(tmp_path: Path) -> None:
    report = write(tmp_path / "dumps", [9, 9, 9, 9], [True, True, False, True])
    assert report.verdict is not None
    assert (report.verdict.cause, report.verdict.culprit_ranks) == ("host-stalled", (2,))


@pytest.mark.parametrize(("seconds", "accused"), [(0, False), (60, True)])
def test_a_wait_of_a_moment_is_no_stall(tmp_path: Path, seconds: int, accused: bool) -> None:
    """Calls made just before the dump was written, as in a running job; a copy only ever makes a file younger."""
    folder = tmp_path / "dumps"
    write(folder, [9, 9, 9], [True, True, False], made=time.time_ns())
    for path in folder.iterdir():
        stamp = path.stat().st_mtime_ns + seconds * 10**9
        os.utime(path, ns=(stamp, stamp))
    verdict = diagnose_paths([str(folder)]).verdict
    assert (verdict is not None) is accused
