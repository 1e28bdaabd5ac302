"""Marks and totals: what counts as a hit, as an accusation, as an alarm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phalanx.zoo.fault import Fault, FaultError, RunPlan
from phalanx.zoo.named import Named
from phalanx.zoo.score import as_json, mark, read_causes, read_report, total
from phalanx.zoo.tables import fill_score, misses, named_table, score_table

PLAN = RunPlan("torchrun", ("torchrun",), 4, 10.0, "merged")
HANG = Fault(
    Path("torch-hang"),
    "t",
    "torch",
    False,
    "test",
    PLAN,
    symptom="perf.hang",
    cause="uneven-steps",
    stage="training & evaluation",
    distributed_specific=True,
    culprit_ranks=(2,),
    accepted_fixes=("fix-dataset",),
)
FINE = Fault(Path("torch-fine"), "t", "torch", True, "train", PLAN)


def report(
    symptom: str = "perf.hang", culprits: tuple[int, ...] = (2,), fixes: tuple[str, ...] = ("fix-dataset",)
) -> Any:
    verdict = {
        "symptom": symptom,
        "cause": "uneven-steps",
        "rule": "HNG001",
        "culprit_ranks": list(culprits),
        "fixes": [{"pattern": fix} for fix in fixes],
    }
    return {"verdict": verdict, "findings": [verdict, {"symptom": "perf.hang"}]}


def test_a_right_verdict_hits_everywhere() -> None:
    one = mark(HANG, report())
    assert one.symptom_first
    assert one.symptom_in_three
    assert one.cause
    assert one.culprit_exact
    assert one.fix_first
    assert not one.innocent_accused


def test_half_right_is_told_apart() -> None:
    one = mark(HANG, report("fail.other", (1, 2), ("other", "fix-dataset")))
    assert not one.symptom_first
    assert one.symptom_in_three
    assert not one.culprit_exact
    assert one.innocent_accused
    assert not one.fix_first
    assert one.fix_in_three


def test_no_report_is_a_miss_and_accuses_nobody() -> None:
    one = mark(HANG, None)
    assert not (one.symptom_first)
    assert not (one.cause)
    assert not (one.culprit_exact)
    assert not (one.innocent_accused)
    assert not (one.fix_in_three)
    assert not mark(FINE, None).false_alarm


def test_a_verdict_on_a_healthy_job_is_a_false_alarm_and_its_accusation_counts() -> None:
    one = mark(FINE, report())
    assert one.false_alarm
    assert one.innocent_accused
    score = total([one, mark(HANG, report())])
    assert (score.faults, score.healthy, score.false_alarms) == (1, 1, 1)
    assert score.innocent_accused == 0.5
    assert score.symptom_first == 1.0


def test_names_of_causes_may_mean_the_same(tmp_path: Path) -> None:
    other = report()
    other["verdict"]["cause"] = "ran-out-of-data"
    assert not mark(HANG, other).cause
    (tmp_path / "causes.toml").write_text('uneven-steps = ["ran-out-of-data"]', encoding="utf-8")
    assert mark(HANG, other, causes=read_causes(tmp_path)).cause
    (tmp_path / "causes.toml").write_text("uneven-steps = [", encoding="utf-8")
    with pytest.raises(FaultError, match="not valid TOML"):
        read_causes(tmp_path)


def test_the_frameworks_word_is_scored_beside_the_verdict() -> None:
    right = mark(HANG, report(), named=Named(frozenset({2}), ("torchrun's root cause",)))
    wrong = mark(HANG, report(), named=Named(frozenset({0}), ("torchrun's root cause",)))
    silent = mark(HANG, report(), named=Named())
    score = total([right, wrong, silent, silent])
    assert (score.named_exact, score.named_innocent, score.ours_exact) == (0.25, 0.25, 1.0)
    assert named_table([right, wrong, silent, silent]).rows[0][-1] == "50.0%"


def test_tables_json_and_misses_say_the_same() -> None:
    marks = [mark(HANG, report("fail.other"), seconds=0.5), mark(FINE, None, seconds=0.25)]
    made = as_json(marks)
    json.dumps(made)
    assert made["all"]["symptom_first"] == 0.0
    assert made["by_symptom"]["perf.hang"]["faults"] == 1
    assert made["by_split"]["test"]["faults"] == 1
    table = score_table(marks, times=True)
    assert [row[0] for row in table.rows] == [
        "all",
        "split test",
        "split train",
        "framework torch",
        "symptom perf.hang",
    ]
    assert table.rows[0][-1] == "0.50"
    assert "seconds" not in score_table(marks, times=False).markdown()
    assert list(misses(marks)) == ["torch-hang: symptom fail.other (HNG001) instead of perf.hang"]


def test_a_page_is_filled_between_its_markers() -> None:
    page = "# Zoo\n<!-- made by `phalanx faults score --write` -->\nold\n<!-- end -->\nafter\n"
    marks = [mark(HANG, report())]
    filled = fill_score(page, marks)
    assert "old" not in filled
    assert filled.startswith("# Zoo\n")
    assert filled.endswith("<!-- end -->\nafter\n")
    assert fill_score(filled, marks) == filled
    with pytest.raises(ValueError, match="the page needs the lines"):
        fill_score("# Zoo", marks)


@pytest.mark.parametrize("text", ["{", "[]", '{"verdict": 3}'])
def test_another_tools_report_that_cannot_be_scored_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "torch-hang.json").write_text(text, encoding="utf-8")
    with pytest.raises(FaultError, match=r"torch-hang\.json: "):
        read_report(tmp_path / "torch-hang.json")
    assert read_report(tmp_path / "nothing.json") is None
