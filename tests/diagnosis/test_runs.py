"""Several runs of a job, in one file or in the folders of its attempts."""

from __future__ import annotations

from ..conftest import Diagnose

OOM = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
TYPO = "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/home/user/train.py\", line 3, in <module>\n[rank0]:     import torhc\n[rank0]: ModuleNotFoundError: No module named 'torhc'\n"


def summary(rank: int, time: str) -> str:
    return (
        f"Root Cause (first observed failure):\n[0]:\n  time      : 2026-09-07_{time}\n  host      : localhost\n"
        f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : 1 (pid: 7)\n  error_file: <N/A>\n"
    )


def ends(time: str) -> str:
    return summary(0, time) + summary(1, time)


def test_the_last_run_is_judged_and_the_earlier_one_listed(diagnose: Diagnose) -> None:
    report = diagnose({"job.log": "step 1 loss 0.5\n" + OOM + ends("13:02:58") + TYPO + ends("14:10:00")})
    assert report.verdict is not None
    assert report.verdict.symptom == "build.import-error"
    assert [found.symptom for found in report.findings if "memory" in found.symptom] == []
    assert len(report.restarts) == 1
    assert "job.log" in report.restarts[0]


def test_the_summaries_of_two_nodes_are_one_run(diagnose: Diagnose) -> None:
    report = diagnose({"job.log": "step 1 loss 0.5\n" + OOM + summary(0, "13:02:58") + summary(1, "13:03:20")})
    assert report.verdict is not None
    assert report.verdict.symptom == "fail.out-of-memory"
    assert report.restarts == ()


AGENT = "E0907 13:02:58.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 1 (pid: 9) of binary: python\n"
STEPS = "".join(f"step {step} loss 0.5\n" for step in range(40))


def attempts(*last: str) -> dict[str, str]:
    first = {"none_1/attempt_0/0/stderr.log": STEPS, "none_1/attempt_0/1/stderr.log": OOM}
    return first | {f"none_1/attempt_1/{rank}/stderr.log": text for rank, text in enumerate(last)}


def test_an_attempt_that_torchrun_made_up_for_is_no_failure(diagnose: Diagnose) -> None:
    report = diagnose({"console.log": AGENT, **attempts(STEPS + "Training complete.\n", "")})
    assert report.verdict is None
    assert report.restarts == ("an earlier attempt in none_1/attempt_0",)


def test_the_last_attempt_of_torchrun_is_judged(diagnose: Diagnose) -> None:
    typo = TYPO.replace("[rank0]: ", "")
    agent = AGENT + AGENT.replace("local_rank: 1", "local_rank: 0")
    report = diagnose({"console.log": agent + summary(0, "14:10:00"), **attempts(typo, "")})
    assert report.verdict is not None
    assert (report.verdict.symptom, report.verdict.culprit_ranks) == ("build.import-error", (0,))
    assert [found.symptom for found in report.findings if "memory" in found.symptom] == []


def test_another_rank_of_the_same_node_fails_in_the_second_run(diagnose: Diagnose) -> None:
    """The first run's agent and summary name rank 0, the second's rank 1: one node gives up once a run."""
    agent = AGENT.replace("local_rank: 1 (pid: 9)", "local_rank: 0 (pid: 8)")
    first = TYPO + agent + summary(0, "13:02:58").replace("pid: 7", "pid: 8")
    second = STEPS + OOM + AGENT + summary(1, "14:10:00").replace("pid: 7", "pid: 9")
    report = diagnose({"job.log": first + second})
    assert report.verdict is not None
    assert report.verdict.symptom == "fail.out-of-memory"
    assert len(report.restarts) == 1
