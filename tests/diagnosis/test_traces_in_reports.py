"""Collective traces beside logs: who is accused, and which of the two the verdict follows."""

from __future__ import annotations

import pickle

from phalanx.diagnosis.collective_analysis import Break
from phalanx.knowledge import load_rules
from phalanx.model.facts import fact_types
from phalanx.report import Format, render
from tests.conftest import Diagnose
from tests.diagnosis.collective_analysis.jobs import Call, Job

WATCHDOG = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:474] [Rank {rank}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600026 milliseconds\n"
)


def stalled(rank: int, world: int = 4, kind: str = "host") -> dict[str, bytes]:
    return Job(world, [tuple(range(world))], [Call(0)] * 6, (kind, rank, 3), ahead=1).run().dumps()


def test_a_trace_beats_a_guess_from_silence(diagnose: Diagnose) -> None:
    """Two of four ranks print the time-out; the trace knows which of the two silent ones is missing."""
    logs = {f"rank{rank}.log": WATCHDOG.format(rank=rank).encode() for rank in (0, 1)}
    logs |= {f"rank{rank}.log": b"step 3 loss 0.2\n" for rank in (2, 3)}
    report = diagnose(logs | stalled(3))
    assert report.verdict is not None
    assert report.verdict.cause == "host-stalled"
    assert report.verdict.culprit_ranks == (3,)


def test_the_exception_of_the_accused_explains_the_trace(diagnose: Diagnose) -> None:
    logs = {
        "rank3.log": b"step 3 loss 0.2\nTraceback (most recent call last):\n"
        b'  File "/home/user/train.py", line 9, in train\n    loss.backward()\n'
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        "rank0.log": b"step 3 loss 0.2\n",
    }
    report = diagnose(logs | stalled(3))
    assert report.verdict is not None
    assert report.verdict.symptom == "fail.out-of-memory"
    assert report.verdict.culprit_ranks == (3,)


def test_a_dead_rank_and_a_missing_dump(diagnose: Diagnose) -> None:
    report = diagnose(stalled(2, kind="dead"))
    assert report.verdict is not None
    assert (report.verdict.cause, report.verdict.culprit_ranks) == ("rank-left-no-trace", (2,))


def test_the_world_is_known_from_traces(diagnose: Diagnose) -> None:
    report = diagnose(stalled(1))
    assert report.world.size == 4
    assert report.world.framework == "torch"
    assert report.world.seen == {0, 1, 2, 3}
    assert not any("output of" in item.what for item in report.not_checked)


def test_missing_dumps_of_a_healthy_job_are_not_checked(diagnose: Diagnose) -> None:
    files = Job(4, [(0, 1, 2, 3)], [Call(0)] * 3).run().dumps()
    del files["nccl_trace_rank_2"]
    report = diagnose(files)
    assert report.verdict is None
    assert any(item.what == "collective traces of rank 2" for item in report.not_checked)


def test_a_leftover_of_another_run_is_told_apart(diagnose: Diagnose) -> None:
    """Dumps of an older job of eight ranks lie beside those of a job of four."""
    old = {name: data for name, data in stalled(1, 8).items() if int(name[-1]) >= 4}
    report = diagnose(old | stalled(3))
    assert report.verdict is not None
    assert any("another job" in item.what for item in report.not_checked)


def test_every_form_of_report_can_be_made(diagnose: Diagnose) -> None:
    report = diagnose(stalled(2))
    for form in (Format.JSON, Format.SARIF, Format.HTML):
        assert "never entered" in render(report, form)


def test_hostile_group_names_stay_inert(diagnose: Diagnose) -> None:
    files = {name: pickle.dumps(_renamed(pickle.loads(data)), 2) for name, data in stalled(2).items()}  # noqa: S301
    page = render(diagnose(files), Format.HTML)
    assert "<script>alert" not in page


def _renamed(dump: dict[str, object]) -> dict[str, object]:
    dump["pg_config"]["0"]["desc"] = "<script>alert(1)</script>"  # type: ignore[index]
    return dump


def test_every_kind_of_break_has_its_rule() -> None:
    asked = {spec.fact.id for rule in load_rules() for spec in rule.evidence if spec.fact is not None}
    assert {kind.value for kind in Break} <= asked
    assert {name for name in fact_types() if name.startswith("trace.")} == {kind.value for kind in Break}
