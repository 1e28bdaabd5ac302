"""Evidence is read from what ranks wrote, torn lines and missing ranks included."""

from __future__ import annotations

import json
from pathlib import Path

from phalanx.verification.evidence import read, read_spawned
from phalanx.verification.judge import judge
from tests.verification.made import Job


def test_files_of_ranks_and_a_torn_last_line(tmp_path: Path) -> None:
    files = {}
    for rank, one in Job().evidence.ranks.items():
        files[rank] = tmp_path / f"{rank}.jsonl"
        files[rank].write_text("".join(json.dumps(record) + "\n" for record in one.records) + '{"k": "step", "o"')
    evidence = read(files, 2)
    assert [step.number for step in evidence.ranks[1].steps] == [0, 1, 2, 3]
    assert evidence.holders(0)[0].parameters[0].name == "fc1.weight"
    report = judge(evidence)
    assert report.findings == ()
    assert report.scope == "4 steps on 2 ranks"
    assert report.is_complete


def test_a_rank_without_evidence_is_said(tmp_path: Path) -> None:
    (tmp_path / "0.jsonl").write_text('{"k": "start", "rank": 0}\n')
    report = judge(read({0: tmp_path / "0.jsonl", 1: tmp_path / "1.jsonl"}, 2))
    assert not report.is_complete
    assert [item.what for item in report.not_checked] == ["ranks [1]", "parameters, gradients and schedules"]


def test_steps_at_other_places_of_the_collectives_are_not_compared() -> None:
    job = Job(fields=lambda rank, step: {"made": 3 * step + (rank if step > 1 else 0)})
    assert [number for number, _ in job.evidence.common_steps(0)] == [0, 1]


def test_ranks_that_hold_other_parameters_are_not_compared() -> None:
    def other(rank: int) -> list[dict[str, object]]:
        held = [[0, "head.weight", [5], "float32", True, 0, None]]
        return [{"k": "optimizer", "o": 0, "cls": "SGD", "line": "", "parameters": held}] if rank == 2 else []

    assert sorted(Job(size=3, more=other).evidence.holders(0)) == [0, 1]


def test_the_users_line_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("one\n  two()\n")
    evidence = read({}, 1, tmp_path)
    assert evidence.source("train.py:2") == "two()"
    assert evidence.source("train.py:9") == evidence.source("") == ""


def test_ranks_that_a_script_started_say_which_they_became(tmp_path: Path) -> None:
    for pid, rank in ((11, 1), (12, 0), (13, None)):
        folder = tmp_path / f"spawned-{pid}"
        folder.mkdir()
        became = "" if rank is None else json.dumps({"k": "rank", "rank": rank, "size": 2}) + "\n"
        (folder / "verify.jsonl").write_text('{"k":"start"}\n' + became)
    found = read_spawned(tmp_path / "verify.jsonl", 4)
    assert (sorted(found.ranks), found.size) == ([0, 1], 2)


def test_what_loader_workers_wrote_beside_a_rank(tmp_path: Path) -> None:
    (tmp_path / "verify.jsonl").write_text('{"k":"start"}\n')
    (tmp_path / "verify-worker-7.jsonl").write_text('{"k":"fetch","worker":0}\n')
    found = read({0: tmp_path / "verify.jsonl"}, 1)
    assert [record["worker"] for record in found.ranks[0].all("fetch")] == [0]
