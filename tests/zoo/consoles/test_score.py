from dataclasses import replace

from phalanx.zoo.consoles.cell import HELD_BACK, OPEN, Truth
from phalanx.zoo.consoles.score import mark, matrix, misses, totals

TRUTH = Truth(
    situation="rank-missing",
    form="torchrun",
    split=OPEN,
    healthy=False,
    symptom="perf.hang",
    also=(),
    cause="rank-missing-from-collective",
    culprits=(3,),
    true_culprits=(3,),
    fixes=("fix-behavior-logic",),
    shows=("what", "who", "why"),
    world=8,
    torch="2.6",
    nccl="2.21.5",
    parallelism="ddp",
)


def _report(**verdict):
    return {"verdict": {"symptom": "perf.hang", "cause": "x", "culprit_ranks": [3], "fixes": [], **verdict}}


def test_all_right_is_a_dot():
    right = _report(cause="rank-missing-from-collective", fixes=[{"pattern": "fix-behavior-logic"}])
    assert mark(TRUTH, right, {}).letters == "."


def test_an_innocent_rank_is_the_first_letter():
    assert mark(TRUTH, _report(culprit_ranks=[3, 4]), {}).letters == "!wcf"


def test_a_cause_by_another_name_counts():
    causes = {"rank-missing-from-collective": frozenset({"x"})}
    assert mark(TRUTH, _report(), causes).cause is True


def test_what_the_console_does_not_show_is_not_asked():
    blind = replace(TRUTH, culprits=(), shows=("what",))
    nobody = mark(blind, _report(culprit_ranks=[]), {})
    assert nobody.culprit is True
    assert nobody.cause is None
    assert mark(blind, _report(culprit_ranks=[3]), {}).culprit is True
    assert mark(blind, _report(culprit_ranks=[4]), {}).innocent


def test_any_verdict_on_a_healthy_job_is_a_false_alarm():
    healthy = replace(TRUTH, healthy=True, symptom=None, cause=None, culprits=(), true_culprits=(), shows=())
    assert mark(healthy, _report(culprit_ranks=[]), {}).letters == "a"
    assert mark(healthy, {"verdict": None}, {}).letters == "."


def test_held_back_consoles_show_in_totals_only():
    held = mark(replace(TRUTH, split=HELD_BACK, form="srun"), _report(), {})
    shown = mark(TRUTH, _report(), {})
    assert misses([held]) == []
    assert matrix([held, shown]).rows == (("rank-missing", "▒", "cf"),)
    assert [row[0] for row in totals([held, shown], "t").rows] == [OPEN, HELD_BACK]
