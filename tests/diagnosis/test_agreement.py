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


def test_the_one_rank_whose_model_differs_is_named(diagnose: Diagnose) -> None:
    def job(ranks: int) -> str:
        forms = [(rank, step) for step in range(3) for rank in range(ranks)]
        return "\n".join(
            f'{{"rank": {rank}, "step": {step}, "loss": 0.5, "param_norm": {3 + step + (rank == 1) / 8}}}' for rank, step in forms
        )  # fmt: skip

    verdict = diagnose(job(3)).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)
    tie = diagnose(job(2)).verdict
    assert tie is not None
    assert tie.culprit_ranks == ()


def test_ranks_that_hold_parts_of_a_model_differ_rightly(diagnose: Diagnose) -> None:
    lines = [f"[rank {rank}] step {step} loss 0.5 local shard weight norm {rank + 1}.5" for step in range(4) for rank in range(2)]  # fmt: skip
    assert diagnose("\n".join(lines)).findings == ()


def test_the_same_samples_on_all_ranks(diagnose: Diagnose) -> None:
    def job(shift: int) -> str:
        forms = [(rank, epoch) for epoch in range(2) for rank in range(2)]
        return "\n".join(f"rank {rank}: epoch {epoch} first samples {[epoch + rank * shift + k for k in (4, 9, 2, 7)]}" for rank, epoch in forms)  # fmt: skip

    verdict = diagnose(job(0)).verdict
    assert verdict is not None
    assert verdict.cause == "data-not-sharded"
    assert diagnose(job(1)).verdict is None


def test_more_samples_than_there_are(diagnose: Diagnose) -> None:
    def job(total: int) -> str:
        return "train set: 6000 samples\n" + "".join(
            f"epoch {epoch}: {total} samples over all ranks, loss 0.{9 - epoch}\n" for epoch in range(3)
        )

    verdict = diagnose(job(12000)).verdict
    assert verdict is not None
    assert verdict.cause == "data-not-sharded"
    assert diagnose(job(6000)).verdict is None


def test_several_worlds_of_one_in_one_file(diagnose: Diagnose) -> None:
    one = ["hvd rank 0 size 1 local_rank 0", "epoch 0 samples 1024 loss 0.5", "epoch 1 samples 1024 loss 0.4"]
    verdict = diagnose("\n".join(one + one)).verdict
    assert verdict is not None
    assert verdict.cause == "each-process-trains-alone"
    assert diagnose("\n".join(one)).findings == ()


def test_ranks_of_a_launcher_that_are_worlds_of_one(diagnose: Diagnose) -> None:
    """mpirun counts three, and the library in each of them knows of no other."""
    steps = [f"[1,{rank}]<stdout>:rank 0 of 1 step {step} loss 0.{9 - step}" for step in range(4) for rank in range(3)]
    verdict = diagnose("\n".join(steps)).verdict
    assert verdict is not None
    assert (verdict.cause, verdict.culprit_ranks) == ("each-process-trains-alone", ())
    together = [f"[1,{rank}]<stdout>:rank {rank} of 3 step {step} loss 0.{9 - step}" for step in range(4) for rank in range(3)]  # fmt: skip
    assert diagnose("\n".join(together)).verdict is None


def test_hosts_that_are_worlds_of_one(diagnose: Diagnose) -> None:
    one = "world size: 1\nstep 0 loss 0.9\nstep 1 loss 0.8\ndone\n"
    verdict = diagnose({"host0.log": one, "host1.log": one}).verdict
    assert verdict is not None
    assert verdict.cause == "each-process-trains-alone"
    assert diagnose({"monday.log": one, "tuesday.log": one}).verdict is None  # two jobs, one after the other


def test_a_line_of_a_rank_that_leaves_progress_to_another(diagnose: Diagnose) -> None:
    missing = [
        f"rank {rank}: could not load last.pt ([Errno 2] No such file or directory: 'last.pt')" for rank in (0, 1)
    ]
    progress = [f"epoch {epoch}: loss=0.{90 - epoch}" for epoch in range(6)]
    assert diagnose("\n".join(missing + progress)).findings == ()


def _orders(values: list[list[int]]) -> str:
    return "".join(f"[rank0] epoch {epoch} indices: {order} loss 0.{9 - epoch}\n" for epoch, order in enumerate(values))


def test_the_same_mixed_order_in_every_epoch(diagnose: Diagnose) -> None:
    verdict = diagnose({"job.log": _orders([[7, 3, 60, 12, 5]] * 3)}).verdict
    assert verdict is not None
    assert (verdict.cause, verdict.culprit_ranks) == ("sampler-not-reshuffled", ())
    assert verdict.fixes[0].pattern == "fix-distributed-api-usage"


def test_orders_that_change_or_were_never_mixed(diagnose: Diagnose) -> None:
    assert diagnose({"job.log": _orders([[7, 3, 60, 12, 5], [3, 7, 12, 60, 5], [60, 3, 7, 12, 5]])}).verdict is None
    assert diagnose({"job.log": _orders([[0, 2, 4, 6, 8]] * 3)}).verdict is None


def _epochs(ranks: int, samples: int) -> str:
    lines = [f"rank {rank}/{ranks}: dataset 512 samples" for rank in range(ranks)]
    for epoch in range(3):
        lines += [f"rank {rank} epoch {epoch} loss 0.5 samples seen {samples}" for rank in range(ranks)]
    return "\n".join(lines) + "\n"


def test_ranks_that_each_take_the_whole_data_set(diagnose: Diagnose) -> None:
    verdict = diagnose({"job.log": _epochs(2, 512)}).verdict
    assert verdict is not None
    assert verdict.cause == "data-not-sharded"
    assert diagnose({"job.log": _epochs(2, 256)}).verdict is None


def test_files_named_for_ranks_that_each_train_on_one_process(diagnose: Diagnose) -> None:
    text = "Training on {} process(es), rank 0\n" + "".join(f"Epoch [{n}/5] loss: 0.{9 - n}001\n" for n in range(1, 6))
    verdict = diagnose({f"rank{rank}.log": text.format(1) for rank in range(3)}).verdict
    assert verdict is not None
    assert verdict.cause == "each-process-trains-alone"
    assert diagnose({f"rank{rank}.log": text.format(3) for rank in range(3)}).verdict is None
