"""Who did it: culprits and victims told apart by the design's principles, on small logs."""

from __future__ import annotations

import itertools

import pytest

from phalanx.model import Confidence

from ..conftest import Diagnose

CLOSED = "RuntimeError: [/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.5]:{port}. This is typically caused by a remote worker crashing."
WATCHDOG = (
    "[E ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600026 milliseconds before timing out."
)


def trace(line: int, source: str, error: str) -> str:
    return f'Traceback (most recent call last):\n  File "/home/user/train.py", line {line}, in train\n    {source}\n{error}\n'


def steps(last: int) -> str:
    return "".join(f"epoch 0 step {step} loss 0.5\n" for step in range(0, last + 1, 10))


def test_the_raising_rank_is_the_culprit_and_the_others_its_victims(diagnose: Diagnose) -> None:
    logs = {f"rank{rank}.log": steps(40) + trace(60, "loss.backward()", CLOSED.format(port=rank)) for rank in (0, 1, 3)}
    logs["rank2.log"] = steps(40) + trace(31, "check(batch)", "ValueError: label 12 is not among the classes")
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (2,)
    assert verdict.victim_ranks == (0, 1, 3)
    assert "ValueError" in verdict.evidence[0].text


def test_an_exception_that_is_cut_off_may_be_the_same(diagnose: Diagnose) -> None:
    whole = trace(60, "optimizer.step()", "ValueError: the table is odd")
    named = "".join(f"[rank2]: {line}\n" for line in whole.splitlines())
    cut = "".join(f"[rank4]: {line}\n" for line in whole.splitlines()[:-1])
    verdict = diagnose({"job.log": named + cut}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == ()
    whole_too = "".join(
        f"[rank4]: {line}\n" for line in trace(60, "optimizer.step()", CLOSED.format(port=4)).splitlines()
    )
    verdict = diagnose({"job.log": named + whole_too}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (2,)


def test_a_status_is_explained_by_the_exception_without_a_rank(diagnose: Diagnose) -> None:
    ended = "subprocess.CalledProcessError: Command '['python', '-u', 'train.py', '--local_rank=7']' returned non-zero exit status 1.\n"
    verdict = diagnose({"job.log": trace(60, "step()", "ValueError: the table is odd") + ended}).verdict
    assert verdict is not None
    assert "the table is odd" in verdict.summary


def test_one_rank_pasted_into_a_report_is_not_accused(diagnose: Diagnose) -> None:
    pasted = "".join(
        f"[1,1]<stderr>:{line}\n" for line in trace(9, "hvd.odd(x)", "ValueError: the table is odd").splitlines()
    )
    verdict = diagnose(
        {"report.md": f"# It fails\nI run 2 processes, world_size=2, and get this:\n```\n{pasted}```\n"}
    ).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == ()


@pytest.mark.parametrize("odd", range(4))
def test_whoever_is_missing_from_the_collective(diagnose: Diagnose, odd: int) -> None:
    """Also rank 0, which the peers' tools hold to be innocent."""
    logs = {
        f"rank{rank}.log": steps(40) + WATCHDOG.format(rank=rank, seq=88) + "\n" for rank in range(4) if rank != odd
    }
    logs[f"rank{odd}.log"] = steps(40)
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.symptom == "perf.hang"
    assert verdict.culprit_ranks == (odd,)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[:4])
def test_the_order_of_files_has_no_influence(diagnose: Diagnose, order: tuple[int, ...]) -> None:
    logs = {
        f"rank{rank}.log": steps(40) + WATCHDOG.format(rank=rank, seq=70 if rank == 1 else 88) + "\n"
        for rank in range(3)
    }
    verdict = diagnose({name: logs[name] for name in (f"rank{number}.log" for number in order)}).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)


def test_a_tie_accuses_nobody(diagnose: Diagnose) -> None:
    logs = {
        f"rank{rank}.log": steps(40) + WATCHDOG.format(rank=rank, seq=70 if rank < 2 else 88) + "\n"
        for rank in range(4)
    }
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert len(verdict.culprit_ranks) != 1


def test_the_rank_at_another_line_took_another_path(diagnose: Diagnose) -> None:
    error = "RuntimeError: [x/unbound_buffer.cc:78] Timed out waiting 10000ms for recv operation to complete"
    logs = {f"rank{rank}.log": steps(40) + trace(60, "loss.backward()", error) for rank in (1, 2, 3)}
    logs["rank0.log"] = steps(40) + trace(81, "dist.barrier()", error)
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (0,)


def test_the_killed_rank_not_those_that_lost_it(diagnose: Diagnose) -> None:
    logs: dict[str, str | bytes] = {
        f"rank{rank}.log": steps(40) + trace(60, "loss.backward()", CLOSED.format(port=rank)) for rank in (0, 2)
    }
    logs["rank1.log"] = steps(40)
    logs["exit_codes.json"] = '{"0": 1, "1": -9, "2": 1}'
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (1,)


def test_a_rank_put_away_after_the_others_gave_up_was_not_out_of_memory(diagnose: Diagnose) -> None:
    error = "RuntimeError: [x/unbound_buffer.cc:78] Timed out waiting 10000ms for recv operation to complete"
    logs: dict[str, str | bytes] = {
        f"rank{rank}.log": steps(40) + trace(60, "loss.backward()", error) for rank in (0, 2)
    }
    logs["rank1.log"] = steps(40)
    logs["exit_codes.json"] = '{"0": 1, "1": -9, "2": 1}'
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.symptom == "perf.hang"
    assert verdict.culprit_ranks == (1,)


def test_same_error_everywhere_is_ordinary_and_accuses_nobody(diagnose: Diagnose) -> None:
    error = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x32 and 64x10)"
    logs = {f"rank{rank}.log": trace(40, "out = model(x)", error) for rank in range(4)}
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.symptom == "fail.tensor-mismatch"
    assert verdict.culprit_ranks == ()
    assert verdict.affected_ranks == (0, 1, 2, 3)
    assert not verdict.distributed_specific
    assert "one process" in verdict.distributed_why


def test_unknown_exception_still_names_rank_line_and_what_to_collect(diagnose: Diagnose) -> None:
    logs = {
        "rank0.log": steps(10) + "waiting\n",
        "rank1.log": steps(10) + trace(33, "feed()", "ZorkError: the grue ate the lamp"),
    }
    report = diagnose(logs)
    assert report.verdict is not None
    assert report.verdict.rule is None
    assert report.verdict.culprit_ranks == (1,)
    assert "train.py:33" in report.verdict.summary
    assert report.verdict.confidence.value == "confirmed", "that it was raised there is certain"
    assert report.verdict.cause_confidence is Confidence.POSSIBLE, "why it was is not"
    assert not report.not_checked, "no other output would tell more of an exception"


def test_several_independent_faults_give_several_findings(diagnose: Diagnose) -> None:
    log = (
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
        "[rank3]: FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-3.tar'\n"
        "[rank0]: fine\n[rank2]: fine\n"
    )
    symptoms = {finding.symptom for finding in diagnose(log).findings}
    assert "fail.out-of-memory" in symptoms
    assert len(symptoms) >= 2


@pytest.mark.parametrize(
    "log",
    [
        "[node0:00026] Read -1, expected 36864, errno = 1\nepoch 1 step 10 loss 0.5\ntraining finished\n",
        "node0:12:34 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.5<0>\nnode0:12:34 [0] NCCL INFO NET/IB : No device found.\nepoch 1 step 1 loss 2\n",
        "W1115 10:00:00 torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\nstep 1 loss 2\n",
        "/opt/x.py:3: FutureWarning: torch.cuda.amp.autocast is deprecated.\nepoch 1 step 10 loss 0.5\n0 errors, error rate 0.12\n",
        "",
    ],
)
def test_noise_is_not_a_finding(diagnose: Diagnose, log: str) -> None:
    assert diagnose(log).findings == ()


def test_a_handled_exception_is_not_a_finding(diagnose: Diagnose) -> None:
    log = (
        steps(20)
        + trace(9, "fetch()", "ConnectionError: connection reset by peer")
        + "retrying\n"
        + steps(60)
        + "training finished\n"
    )
    assert diagnose(log).findings == ()


def test_exit_status_zero_everywhere_is_health(diagnose: Diagnose) -> None:
    logs: dict[str, str | bytes] = {
        "rank0.log": steps(20) + trace(9, "fetch()", "ValueError: x"),
        "rank1.log": steps(20),
    }
    logs["exit_codes.json"] = '{"0": 0, "1": 0}'
    assert diagnose(logs).findings == ()


def test_a_restart_that_succeeds_is_health(diagnose: Diagnose) -> None:
    failed = "E1115 10:00:00 torch/distributed/elastic/agent.py:1] failed (exitcode: -9) local_rank: 1 (pid: 77) of binary: python\n"
    log = steps(20) + failed + "W1115 restarting worker group, attempt 1/3\n" + steps(60) + "training finished\n"
    assert diagnose(log).findings == ()
    verdict = diagnose(steps(20) + failed).verdict
    assert verdict is not None


def test_what_was_got_over_often_may_still_end_the_rank(diagnose: Diagnose) -> None:
    error = trace(9, "out = model(x)", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    survived = "".join(error + f"batch skipped\nepoch 0 step {step} loss 0.5\n" for step in range(0, 200, 10))
    logs: dict[str, str | bytes] = {"rank0.log": steps(190), "rank1.log": survived}
    assert diagnose(logs).findings == ()
    verdict = diagnose({**logs, "rank1.log": survived + error}).verdict
    assert verdict is not None
    assert verdict.symptom == "fail.out-of-memory"
    assert verdict.culprit_ranks == (1,)


def test_a_check_of_the_scripts_own_that_ends_one_rank_is_the_cause(diagnose: Diagnose) -> None:
    logs = {f"rank{rank}.log": steps(40) + trace(60, "loss.backward()", CLOSED.format(port=rank)) for rank in (0, 1, 3)}
    logs["rank2.log"] = steps(40) + trace(31, "check(loss)", "FloatingPointError: loss is nan at step 41")
    logs["exit_codes.json"] = '{"0": 1, "1": 1, "2": 1, "3": 1}'
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("perf.non-convergence", (2,))


def test_what_one_rank_tells_of_steps_holds_for_all(diagnose: Diagnose) -> None:
    deep = 'Traceback (most recent call last):\n  File "/home/user/run.py", line 9, in main\n    look(x)\nOddError: the table is odd\n'
    logs = {"rank0.log": trace(60, "loss.backward()", CLOSED.format(port=7)), "rank1.log": deep}
    before = diagnose(logs).verdict
    logs["rank0.log"] = steps(0) + logs["rank0.log"]
    after = diagnose(logs).verdict
    assert before is not None
    assert after is not None
    assert (before.symptom, after.symptom) == ("prep.other", "fail.other")


def test_a_rank_that_still_calls_when_most_have_ended_well_made_more_calls(diagnose: Diagnose) -> None:
    logs = {f"rank{rank}.log": steps(40) + "done\n" for rank in (0, 1)}
    logs["rank2.log"] = steps(40) + trace(60, "loss.backward()", CLOSED.format(port=2))
    logs["exit_codes.json"] = '{"0": 0, "1": 0, "2": 1}'
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (2,)
    assert verdict.summary.endswith("The other ranks had ended well by then: rank 2 made more calls than they did.")
    logs["exit_codes.json"] = '{"0": 0, "1": 1, "2": 1}'
    logs["rank1.log"] = logs["rank2.log"]
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert verdict.culprit_ranks == (0,), "one that left while most still called is to blame, as before"


def test_the_first_of_spawned_processes_is_not_accused_alone(diagnose: Diagnose) -> None:
    def job(rank: int) -> str:
        told = trace(
            12,
            "main()",
            f"torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process {rank} terminated with the following error:",
        )
        return "world size 2\n" + told + trace(31, "check(batch)", "KeyError: 'val_loss'")

    for rank, accused in ((0, ()), (1, (1,))):
        verdict = diagnose({"job.log": job(rank)}).verdict
        assert verdict is not None
        assert verdict.culprit_ranks == accused


def test_what_was_cut_out_of_a_log_accuses_nobody(diagnose: Diagnose) -> None:
    timed_out = "[rank{0}]:[E321 02:07:08.4 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n"
    finding = diagnose({"job.log": "".join(timed_out.format(rank) for rank in (0, 2, 3, 4))}).findings[0]
    assert finding.symptom == "perf.hang"
    assert finding.culprit_ranks == ()  # the log begins with the failure: nobody knows what was left out


def test_a_rank_that_torchrun_killed_later_is_not_accused(diagnose: Diagnose) -> None:
    def entry(number: int, time: str, rank: int, code: int) -> str:
        cause = "Signal 9 (SIGKILL) received by PID 7" if code == -9 else "To enable traceback see: https://pytorch.org"
        return (
            f"[{number}]:\n  time      : 2026-09-07_{time}\n  host      : localhost\n  rank      : {rank} (local_rank: {rank})\n"
            f"  exitcode  : {code} (pid: {7 + rank})\n  error_file: <N/A>\n  traceback : {cause}\n"
        )

    summary = entry(1, "13:02:58", 3, 1) + entry(2, "13:03:29", 0, -9) + entry(0, "13:02:58", 1, 1)
    assert 0 not in diagnose({"job.log": summary}).findings[0].culprit_ranks
    at_once = entry(1, "13:02:59", 3, 1) + entry(0, "13:02:58", 0, -9)
    assert diagnose({"job.log": at_once}).findings[0].culprit_ranks == (0,)


def test_a_status_of_the_shell_says_that_the_command_was_not_found(diagnose: Diagnose) -> None:
    told = "".join(f"srun: error: n{rank}: task {rank}: Exited with exit code 127\n" for rank in range(2))
    verdict = diagnose({"slurm-12.out": told}).verdict
    assert verdict is not None
    assert verdict.symptom == "fail.path-error"
    assert verdict.fixes[0].pattern == "fix-command-line"


def test_a_coordinator_that_raises_what_workers_did_is_not_accused(diagnose: Diagnose) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/job/train.py", line 24, in <module>\n    coordinator.join()\n'
        '  File "/venv/lib/python3.11/site-packages/tensorflow/python/distribute/coordinator/cluster_coordinator.py", line 1700, in join\n'
        "    self._cluster.join()\n"
        "tensorflow.python.framework.errors_impl.OutOfRangeError: Graph execution error:\n\nEnd of sequence\n"
    )
    serves = "I0000 00:00:1.2 77 grpc_server_lib.cc:467] Started server with target: grpc://localhost:{}\n"
    logs = {"chief.log": raised, "worker-0.log": serves.format(4001), "worker-1.log": serves.format(4002)}
    verdict = diagnose(logs).verdict
    assert verdict is not None
    assert (verdict.symptom, verdict.culprit_ranks) == ("prep.iteration-failure", ())


def test_what_ray_had_held_back_is_no_progress_after_the_exception(diagnose: Diagnose) -> None:
    log = (
        "(Worker pid=31723) rank 1 step 3 loss 1.283\n"
        'Traceback (most recent call last):\n  File "/job/train.py", line 14, in <module>\n    ray.get(results)\n'
        "ray.exceptions.RayTaskError(ZeroDivisionError): ray::Worker.fit() (pid=31723, ip=192.0.2.2)\n"
        '  File "/job/train.py", line 9, in fit\n    total += 1 / (5 - i)\n'
        "ZeroDivisionError: division by zero\n"
        "(Worker pid=31723) rank 1 step 4 loss 2.283 [repeated 5x across cluster] (Ray deduplicates logs by default.)\n"
    )
    verdict = diagnose({"driver.log": log}).verdict
    assert verdict is not None
    assert "division by zero" in verdict.summary
