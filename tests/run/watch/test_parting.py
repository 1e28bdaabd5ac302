"""What is told when all ranks are gone: a call that was left out, or that nobody ever called a peer."""

from __future__ import annotations

import json
from pathlib import Path

from phalanx.model.bundle import rank_folder
from phalanx.run.observer import Setup
from phalanx.run.watch.heartbeat import GroupCounts, Heartbeat
from phalanx.run.watch.inside.phalanx_inside import LEAVING, STARTED
from phalanx.run.watch.parting import Partings, never_communicated


def beat(phase: int = LEAVING, **groups: int) -> Heartbeat:
    counts = {name: GroupCounts(number, -1, number) for name, number in groups.items()}
    return Heartbeat(1, 1, 0.0, phase, sum(groups.values()), 0, 0, groups=counts)


def setup(folder: Path, script: str = "model.fit(data)", **more: object) -> Setup:
    (folder / "job.py").write_text(script)
    return Setup(folder, 2, "tensorflow", ("python", str(folder / "job.py")), **more)  # type: ignore[arg-type]


def leave(folder: Path, rank: int, steps: list[int], done: bool, file: str) -> None:
    calls = [
        ["tensorflow", n, "step", "step", "", "", [file, 2, "f"], [["i", step]], True] for n, step in enumerate(steps)
    ]
    calls[-1][-1] = done
    target = rank_folder(folder, rank)
    target.mkdir()
    told = {"library": "tensorflow", "by_name": False, "entered": len(calls), "calls": calls}
    (target / "calls-1.json").write_text(json.dumps(told))


def test_who_left_a_step_out_is_told_when_the_job_has_failed(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("for i in range(9):\n    step()\n")
    leave(tmp_path, 0, [0, 1, 2, 3, 4], False, str(script))
    leave(tmp_path, 1, [0, 1, 3, 4, 5], False, str(script))
    partings = Partings(setup(tmp_path))
    partings.ended(1, 1, {"failed_at": "train.py:2"}, None)
    assert partings.tell(living=True) == []
    partings.ended(0, -9, {}, None)  # the launcher's
    (told,) = partings.tell(living=False)
    assert told.ranks == (1,)
    assert "in i 2" in told.text
    assert partings.tell(living=False) == []


def test_who_failed_by_itself_left_nothing_out(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("for i in range(9):\n    step()\n")
    leave(tmp_path, 0, [0, 1, 2, 3], False, str(script))
    leave(tmp_path, 1, [0, 1, 2], True, str(script))
    partings = Partings(setup(tmp_path))
    partings.ended(1, 1, {"failed_at": "train.py:7"}, None)
    partings.ended(0, 1, {"failed_at": "train.py:2"}, None)
    assert partings.tell(living=False) == []


def test_ranks_that_never_called_one_another(tmp_path: Path) -> None:
    alone = never_communicated(setup(tmp_path), {0: beat(), 1: beat()})
    assert alone is not None
    assert "met" not in alone.facts[0].fields
    outside_scope = never_communicated(setup(tmp_path), {0: beat(tensorflow=0), 1: beat(tensorflow=0)})
    assert outside_scope is not None
    assert outside_scope.facts[0].fields["met"] is True
    assert never_communicated(setup(tmp_path), {0: beat(tensorflow=3), 1: beat(tensorflow=3)}) is None
    assert (
        never_communicated(setup(tmp_path), {0: beat(default_pg=0), 1: beat(default_pg=0)}) is None
    )  # sends are not counted
    assert never_communicated(setup(tmp_path), {0: beat(STARTED), 1: beat(STARTED)}) is None  # no framework was seen
    assert never_communicated(setup(tmp_path, roles={0: "chief 0", 1: "ps 0"}), {0: beat(), 1: beat()}) is None


def test_ranks_that_need_not_talk(tmp_path: Path) -> None:
    beats = {0: beat(), 1: beat()}
    assert never_communicated(setup(tmp_path, "model.predict(data[rank::size])"), beats) is None
    assert never_communicated(setup(tmp_path, "rate = RATES[hvd.rank()]\nloss.backward()"), beats) is None
    assert never_communicated(setup(tmp_path, "mine = data[rank::size]\nloss.backward()"), beats) is not None


LOST = {
    "failed_at": "train.py:9",
    "error": "UnavailableError: Collective ops is aborted by: Error reported from task 1",
}


def test_who_ended_well_before_the_others_and_left_no_journal(tmp_path: Path) -> None:
    leave(tmp_path, 0, [0, 1, 2], False, "train.py")
    partings = Partings(setup(tmp_path))
    partings.ended(1, 0, {}, None, 1)
    partings.ended(0, 1, LOST, None)
    (told,) = partings.tell(living=False)
    assert told.ranks == (1,)
    assert "ended with status 0 (the last step it reported is 1)" in told.text
    assert "in i 2" in told.text


def test_who_failed_for_a_reason_of_its_own_was_not_left(tmp_path: Path) -> None:
    leave(tmp_path, 0, [0, 1, 2], False, "train.py")
    partings = Partings(setup(tmp_path))
    partings.ended(1, 0, {}, None, 1)
    partings.ended(0, 1, {"error": "ResourceExhaustedError: OOM when allocating tensor"}, None)
    assert partings.tell(living=False) == []
    partings = Partings(setup(tmp_path))
    partings.ended(0, 1, LOST, None)  # before the other ended
    partings.ended(1, 0, {}, None, 1)
    assert partings.tell(living=False) == []
    partings = Partings(setup(tmp_path))
    partings.ended(0, 1, LOST, None)
    partings.ended(1, 0, {}, beat(), 1)  # which had been through with its script long before
    assert len(partings.tell(living=False)) == 1
