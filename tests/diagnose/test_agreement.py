"""What only a comparison of the ranks shows."""

from __future__ import annotations

from ..conftest import Diagnose


def test_processes_that_each_state_a_world_of_one(diagnose: Diagnose) -> None:
    log = "init: rank 0, world size 1\nepoch 0 loss 2.1\nepoch 1 loss 2.0\n"
    verdict = diagnose({f"rank{rank}.log": log for rank in range(4)}).verdict
    assert verdict is not None
    assert verdict.symptom == "perf.unexpected-parallelization-or-device"
    assert verdict.culprit_ranks == ()
    assert verdict.affected_ranks == (0, 1, 2, 3)
    assert verdict.distributed_specific


def test_a_job_of_one_process_is_fine(diagnose: Diagnose) -> None:
    assert diagnose({"rank0.log": "world size 1\nepoch 0 loss 2.1\n"}).findings == ()
    assert diagnose({f"rank{rank}.log": "world size 2\nepoch 0 loss 2.1\n" for rank in range(2)}).findings == ()


def test_weights_that_differ_between_ranks(diagnose: Diagnose) -> None:
    lines = [
        f"[rank{rank}]: epoch {epoch} loss 1.0 weight norm {6 + rank + epoch}.5"
        for epoch in range(3)
        for rank in range(3)
    ]
    verdict = diagnose("\n".join(lines)).verdict
    assert verdict is not None
    assert verdict.symptom == "perf.unexpected-intermediate-result"
    assert "weight norm" in verdict.summary


def test_weights_that_agree_are_fine(diagnose: Diagnose) -> None:
    lines = [
        f"[rank{rank}]: epoch {epoch} loss 1.{rank} weight norm {6 + epoch}.5"
        for epoch in range(3)
        for rank in range(3)
    ]
    assert diagnose("\n".join(lines)).findings == ()


def test_one_sum_at_the_end_is_enough(diagnose: Diagnose) -> None:
    def job(*sums: str) -> str:
        trained = [f"[rank {rank}] step {step} loss 0.{rank + 5}" for rank in range(2) for step in range(4)]
        return "\n".join([*trained, *(f"[rank {rank}] {text}" for rank, text in enumerate(sums))])

    verdict = diagnose(job("weight checksum -2.808741", "weight checksum 2.805532")).verdict
    assert verdict is not None
    assert verdict.symptom == "perf.unexpected-intermediate-result"
    assert diagnose(job("weight checksum 2.805532", "weight checksum 2.805532")).findings == ()
    assert diagnose(job("weight sum of this shard 1.5", "weight sum of this shard 2.5")).findings == ()
