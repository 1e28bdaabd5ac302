"""What is concluded from what replays found: no more than was compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phalanx.replay.changes import Change
from phalanx.replay.divergence import Verdict, _order, _part, _with_difference, _without_difference
from phalanx.replay.recordings import Recording
from phalanx.replay.rerun import Replayed

CHANGED = [Change("arguments", "4", "2", "the arguments: 2 was 4")]


def recorded(folder: Path, code: int = 0, by: str | None = None, raised: str = "") -> Recording:
    rank = folder / "attempt0" / "rank0"
    (rank / "record").mkdir(parents=True)
    lines: list[dict[str, Any]] = [{"k": "exception", "what": raised}] if raised else []
    (rank / "record" / "calls.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (rank / "exit.json").write_text(json.dumps({"code": code, "by": by}))
    return Recording(folder, folder / "attempt0", {"size": 1, "command": []}, {0: {"mode": "full"}})


def replayed(folder: Path, **facts: Any) -> Replayed:
    ended = Replayed(0, "the script ended", "script", "", 5, 12, 12, 12, 0, folder)
    return replace(ended, **facts)


@pytest.mark.parametrize(
    ("then", "now", "changes", "verdict"),
    [
        ({}, {}, [], Verdict.SAME),
        ({}, {"calls": 9, "compared": 9}, [], Verdict.ENDS_OTHERWISE),
        ({}, {"calls": 9, "compared": 9}, CHANGED, Verdict.SAME),
        ({}, {"calls": 12, "compared": 4}, [], Verdict.SAME),  # from a checkpoint: the others were passed over
        ({}, {"compared": 0}, [], Verdict.INCOMPLETE),
        ({}, {"how": "gap", "why": "a share is missing"}, [], Verdict.INCOMPLETE),
        ({"code": 1, "raised": "ValueError: bad"}, {}, [], Verdict.ENDS_OTHERWISE),
        ({"code": 3}, {}, [], Verdict.ENDS_OTHERWISE),
        ({"code": 3}, {"status": 3}, [], Verdict.REPEATS),
        ({}, {"status": 3}, [], Verdict.ENDS_OTHERWISE),
        ({"code": 1, "raised": "ValueError: bad"}, {"exception": "…\nValueError: bad"}, [], Verdict.REPEATS),
        ({"code": 1, "raised": "ValueError: bad"}, {"exception": "…\nKeyError: 3"}, [], Verdict.ENDS_OTHERWISE),
        ({"code": -9}, {"exception": "ended by SIGKILL", "status": -9}, [], Verdict.REPEATS),
        ({"code": -15, "by": "rank 1 ended"}, {"how": "recording"}, [], Verdict.SAME),
    ],
)
def test_a_replay_without_a_difference(
    tmp_path: Path, then: dict[str, Any], now: dict[str, Any], changes: list[Change], verdict: Verdict
) -> None:
    how = {"how": "exception"} if "exception" in now else {}
    found, sentence = _without_difference(recorded(tmp_path, **then), replayed(tmp_path, **how, **now), changes)
    assert found is verdict, sentence


def difference(kind: str, step: int = 3, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "step": step, "what": f"{kind} differs", **more}


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([difference("random")], Verdict.DIFFERS),  # accuses no hardware
        ([difference("result", n=7)], Verdict.INCOMPLETE),
        ([difference("batch"), difference("input", n=7)], Verdict.DATA),
        ([difference("input", n=7), difference("random", 4)], Verdict.TRANSIENT),
        ([difference("input", n=7), difference("batch", 5)], Verdict.TRANSIENT),
    ],
)
def test_two_replays_that_agree_and_differ_from_the_recording(
    tmp_path: Path, differences: list[dict[str, Any]], verdict: Verdict
) -> None:
    found, sentence = _with_difference(replayed(tmp_path, differences=tuple(differences)), [])
    assert found is verdict, sentence
    found, _ = _with_difference(replayed(tmp_path, differences=tuple(differences)), CHANGED)
    assert found is Verdict.SOFTWARE


def test_replays_of_different_length_differ_from_each_other(tmp_path: Path) -> None:
    lines = [{"k": "call", "s": step, "op": "allreduce_", "g": "0", "q": step, "in": ["1"]} for step in range(4)]
    lines += [{"k": "step", "s": 4, "random": {"python": 1}}]
    folders = []
    for name, kept in (
        ("one", lines),
        ("two", lines[:3]),
        ("three", [*lines[:4], {**lines[4], "random": {"python": 2}}]),
    ):
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        (folders[-1] / "calls.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    one, two, three = folders
    assert _part(one, one) is None
    assert "at step 3" in str(_part(one, two))
    assert "at step 3" in str(_part(two, one))
    assert "at step 4: step" in str(_part(one, three))


def test_among_ranks_the_one_that_handed_in_something_else_came_first(tmp_path: Path) -> None:
    victim = replayed(tmp_path, differences=(difference("result", 4, n=9),))
    culprit = replayed(tmp_path, rank=1, differences=(difference("input", 4, n=9), difference("result", 4, n=9)))
    later = replayed(tmp_path, rank=2, differences=(difference("input", 4, n=10),))
    assert [one.rank for one in sorted([later, victim, culprit], key=_order)] == [1, 0, 2]
