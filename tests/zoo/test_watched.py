"""What is made of the bundles that faults leave under `phalanx run`: who was accused, and how long after the fault."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phalanx.zoo.fault import Fault, RunPlan
from phalanx.zoo.schedule import Result, remember
from phalanx.zoo.watched import FOLDER, fill_page, read_runs, rows_table, summary_table

PLAN = RunPlan("torchrun", ("torchrun", "train.py"), 2, 60.0, "merged")


class Zoo:
    """Faults in a folder, and what running them left."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.keep = folder, folder / "runs"
        self.faults: list[Fault] = []

    def add(self, name: str, *, culprits: tuple[int, ...] = (1,), healthy: bool = False, split: str = "train") -> Fault:
        (self.folder / name).mkdir()
        fault = Fault(self.folder / name, "t", "torch", healthy, split, PLAN, culprit_ranks=culprits)
        self.faults.append(fault)
        return fault

    def ran(
        self, fault: Fault, accused: list[int] | None, spoke: float | None, alone: float | None = None, **files: Any
    ) -> None:
        bundle = self.keep / FOLDER / fault.name
        (bundle / "attempt0" / "rank1").mkdir(parents=True)
        verdict = None if accused is None else {"culprit_ranks": accused}
        (bundle / "report.json").write_text(json.dumps({"verdict": verdict}))
        for name, value in files.items():
            place = bundle / "attempt0" / ("watch.jsonl" if name == "watch" else "rank1/exit.json")
            place.write_text(json.dumps(value) + "\n")
        result = Result(fault.name, False, True, "", 30.0, fault.fingerprint(), spoke_s=spoke, began=1000.0)
        remember(self.keep, replace(result, watched=True))
        if alone is not None:
            remember(self.keep, replace(result, spoke_s=alone if alone >= 0 else None))


@pytest.fixture
def zoo(tmp_path: Path) -> Zoo:
    return Zoo(tmp_path)


def test_times_are_counted_from_the_fault_not_from_the_start(zoo: Zoo) -> None:
    stall = {"at": 1020.0, "kind": "stall", "ranks": [1], "data": {"quiet_s": 8.0}}
    zoo.ran(zoo.add("hangs"), [1], 25.0, 72.0, watch=stall)  # stood still from 12 s on
    zoo.ran(zoo.add("dies"), [1], 9.0, -1.0, exit={"at": 1004.0, "by": None})
    zoo.ran(zoo.add("was-ended"), [1], 9.0, exit={"at": 1004.0, "by": "a stall"})
    hangs, dies, ended = read_runs(zoo.faults, zoo.keep)
    assert (hangs.verdict_s, hangs.framework_s) == (13.0, 60.0)
    assert (dies.verdict_s, dies.framework_s, dies.framework_ran) == (5.0, None, True)
    assert (ended.verdict_s, ended.framework_ran) == (None, False)


def test_the_framework_speaks_in_words_or_by_the_jobs_end(zoo: Zoo) -> None:
    fault = zoo.add("ends-without-a-word")
    zoo.ran(fault, [1], 9.0, exit={"at": 1004.0, "by": None})
    alone = Result(fault.name, False, True, "", 24.0, fault.fingerprint(), {"launcher": 1})
    for told, expected in (
        (alone, 20.0),
        (replace(alone, exit_codes={"launcher": 0}), None),  # ended well: nobody would look
        (replace(alone, timed_out=True), None),  # ended by us
        (replace(alone, spoke_s=10.0), 6.0),
    ):
        remember(zoo.keep, told)
        (found,) = read_runs(zoo.faults, zoo.keep)
        assert (found.framework_s, found.framework_ran) == (expected, True)


def test_a_slower_start_of_the_other_run_is_not_counted(zoo: Zoo) -> None:
    fault = zoo.add("starts-slowly")
    zoo.ran(fault, [1], 9.0, exit={"at": 1004.0, "by": None})
    ran = Result(fault.name, False, True, "", 30.0, fault.fingerprint(), spoke_s=9.0, began=1000.0, first_s=3.0)
    remember(zoo.keep, replace(ran, watched=True))
    remember(zoo.keep, replace(ran, spoke_s=40.0, first_s=8.0))  # the fault came 1 s after the first word, here at 9 s
    (found,) = read_runs(zoo.faults, zoo.keep)
    assert (found.verdict_s, found.framework_s) == (5.0, 31.0)
    remember(zoo.keep, replace(ran, spoke_s=40.0, files="another form of the fault"))
    assert not read_runs(zoo.faults, zoo.keep)[0].framework_ran


def test_hits_stand_beside_false_accusations(zoo: Zoo) -> None:
    exit_ = {"at": 1004.0, "by": None}
    zoo.ran(zoo.add("right"), [1], 9.0, 64.0, exit=exit_)
    zoo.ran(zoo.add("wrong", culprits=(0,)), [1], 11.0, -1.0, exit=exit_)
    zoo.ran(zoo.add("held-back", split="test"), [1], 7.0, exit=exit_)
    zoo.ran(zoo.add("well", culprits=(), healthy=True), None, None)
    stall = {"at": 1020.0, "kind": "stall", "ranks": [0], "data": {"quiet_s": 8.0}}
    zoo.ran(zoo.add("slow-but-well", culprits=(), healthy=True), None, None, watch=stall)
    zoo.add("not-run")
    runs = read_runs(zoo.faults, zoo.keep)
    rows = {row[0]: row[1:] for row in summary_table(runs).rows}
    assert rows["all"] == ("3", "2 (66.7%)", "1", "2", "1", "5.0", "7.0", "60.0", "1 of 2")
    assert rows["split test"][:3] == ("1", "1 (100.0%)", "0")
    named = [row[0] for row in rows_table(runs).rows]
    assert named == ["right", "slow-but-well", "wrong"]  # those held back are not told one by one


def test_a_fault_that_was_changed_since_does_not_count(zoo: Zoo) -> None:
    fault = zoo.add("changed")
    zoo.ran(fault, [1], 9.0)
    (fault.folder / "train.py").write_text("print()")
    assert read_runs(zoo.faults, zoo.keep) == []


def test_the_page_is_filled_between_its_markers(zoo: Zoo) -> None:
    zoo.ran(zoo.add("right"), [1], 9.0, exit={"at": 1004.0, "by": None})
    runs = read_runs(zoo.faults, zoo.keep)
    page = "before\n<!-- made by `phalanx faults score --runs --write` -->\nold\n<!-- end of runs -->\nafter\n"
    filled = fill_page(page, runs)
    assert (filled[:7], filled[-6:]) == ("before\n", "after\n")
    assert "old" not in filled
    assert "| right | 1 | 1 | 5.0 | not run |" in filled
    assert fill_page(filled, runs) == filled
    with pytest.raises(ValueError, match="needs the lines"):
        fill_page("nothing", runs)
