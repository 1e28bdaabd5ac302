"""Healthy jobs whose logs are full of trouble that was got over: no verdict."""

from __future__ import annotations

import pytest

from ..conftest import Diagnose

STALL = (
    "[0]<stderr>:[2026-01-01 10:00:00.000: W horovod/common/stall_inspector.cc:107] One or more tensors were submitted to be "
    "reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.\n"
    "[0]<stderr>:Missing ranks:\n[0]<stderr>:1: [allreduce.fc.weight, allreduce.fc.bias]\n"
)
LOSSES = "".join(f"[{rank}]<stdout>:epoch {epoch} loss {2 - epoch / 10:.3f}\n" for epoch in range(5) for rank in (0, 1))


@pytest.mark.parametrize(
    "after",
    ["[0]<stdout>:model saved to out/model.pt\n", "[0]<stdout>:Test set: average 0.0521, accuracy 98.31%\n"],
)
def test_a_stall_after_which_its_reporter_speaks_on(diagnose: Diagnose, after: str) -> None:
    assert diagnose({"job.log": LOSSES + STALL + after}).verdict is None


def test_a_stall_after_which_only_others_speak_is_a_hang(diagnose: Diagnose) -> None:
    """Their lines may have been held back in a buffer."""
    verdict = diagnose({"job.log": LOSSES + STALL + "[1]<stdout>:evaluating\n"}).verdict
    assert verdict is not None
    assert verdict.symptom == "perf.hang"
    assert verdict.culprit_ranks == (1,)


def test_an_elastic_job_goes_on_without_a_worker(diagnose: Diagnose) -> None:
    died = "Process 1 exit with status code 134.\n"
    on = "".join(f"[{rank}]<stdout>:epoch {epoch} loss 0.{9 - epoch}\n" for epoch in (5, 6, 7) for rank in (0, 2))
    assert diagnose({"job.log": LOSSES + died + on}).verdict is None


def test_a_warning_in_a_file_of_its_own(diagnose: Diagnose) -> None:
    logs = {
        "stdout.log": "".join(f"step {step} loss {2 - step / 10:.3f}\n" for step in range(9)),
        "stderr.log": "train.py:3: UserWarning: Driver/library version mismatch, is ignored here\n",
    }
    assert diagnose(logs).verdict is None


def test_peers_that_were_reached_at_last(diagnose: Diagnose) -> None:
    refused = "[W socket.cpp:752] [c10d] The client socket has failed to connect to [node0]:29500 (errno: 111 - Connection refused).\n"
    there = "[Gloo] Rank {} is connected to 1 peer ranks. Expected number of connected peer ranks is : 1\n"
    logs = {f"rank{rank}.log": refused * rank + there.format(rank) + "0 of 8\n1 of 8\n" for rank in (0, 1)}
    assert diagnose(logs).verdict is None


def test_a_model_that_writes_about_crashes(diagnose: Diagnose) -> None:
    log = "".join(
        f'epoch {epoch} loss {2 - epoch / 10:.3f}\nSample: "I saw a segmentation fault out of memory in my dream, I think."\n'
        for epoch in range(6)
    )
    assert diagnose({"job.log": log}).verdict is None


def test_one_process_that_a_person_stopped(diagnose: Diagnose) -> None:
    log = "".join(f"epoch {epoch} loss {2 - epoch / 10:.3f}\n" for epoch in range(6))
    stop = 'Traceback (most recent call last):\n  File "/home/user/train.py", line 30, in <module>\n    time.sleep(1)\nKeyboardInterrupt\n'
    assert diagnose({"job.log": log + stop}).verdict is None


LEADER_GONE = (
    "E0000 00:00:1794870716.430983   27198 base_collective_executor.cc:252] BaseCollectiveExecutor::StartAbort UNAVAILABLE: Failed to "
    "send RPC to coordination service. Either the leader task was preempted/died/restarted unexpectedly or this task is experiencing "
    "network issues.\nAdditional GRPC error information from remote target /job:worker/replica:0/task:0 while calling "
    '/tensorflow.CoordinationService/Heartbeat:\n:UNKNOWN:Error received from peer  {grpc_status:14, grpc_message:"failed to connect '
    'to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:40427: Failed to connect to remote host: Connection refused"}\n'
)


def test_a_leader_that_ends_first_when_all_have_come_equally_far(diagnose: Diagnose) -> None:
    losses = "".join(f"epoch {epoch} loss {1 / (epoch + 1):.4f}\n" for epoch in range(3))
    assert diagnose({"worker0.log": losses, "worker1.log": losses + LEADER_GONE}).verdict is None


def test_a_leader_that_is_lost_while_others_train_is_a_fault(diagnose: Diagnose) -> None:
    losses = "".join(f"epoch {epoch} loss {1 / (epoch + 1):.4f}\n" for epoch in range(3))
    raised = 'Traceback (most recent call last):\n  File "/home/user/train.py", line 60, in <module>\n    train_step(batch)\n'
    raised += "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: Failed to send RPC to coordination service.\n"
    assert diagnose({"worker0.log": losses, "worker1.log": losses + LEADER_GONE + raised}).verdict is not None


def test_a_file_that_is_missing_and_done_without(diagnose: Diagnose) -> None:
    losses = "".join(f"epoch {epoch} loss {1 / (epoch + 1):.4f}\n" for epoch in range(3))
    missing = "FileNotFoundError [Errno 2] Unable to open file: No such file or directory: 'w.weights.h5'"
    assert diagnose({"job.log": f"{losses}no earlier weights, starting fresh: {missing}\nfinal 0.03\n"}).verdict is None
    assert diagnose({"job.log": f"{losses}the weights cannot be read: {missing}\nfinal 0.03\n"}).verdict is not None


def test_a_peer_that_is_missed_when_all_are_through(diagnose: Diagnose) -> None:
    steps = "".join(f"step {n} loss {2 - n / 10:.3f}\n" for n in range(8))
    missed = (
        "E0000 00:00:1794906568.768732 17444 base_collective_executor.cc:252] BaseCollectiveExecutor::StartAbort UNAVAILABLE: "
        "Error reported from /job:worker/task:1: The following tasks are unhealthy (stopped sending heartbeats):\n"
        "/job:worker/replica:0/task:1\n"
    )
    ended = {"worker-0.log": steps + "finished\n" + missed, "worker-1.log": steps + "finished\n"}
    assert diagnose(ended).verdict is None
    lost = {"worker-0.log": steps + "finished\n" + missed, "worker-1.log": steps}
    assert diagnose(lost).verdict is not None


CAUGHT = """\
[1]<stderr>:Traceback (most recent call last):
[1]<stderr>:  File "/home/user/train.py", line 34, in <module>
[1]<stderr>:    push(metrics)
[1]<stderr>:ConnectionResetError: [Errno 104] Connection reset by peer
"""


def test_what_a_rank_caught_that_leaves_the_talking_to_another(diagnose: Diagnose) -> None:
    epochs = [f"[0]<stdout>:epoch {epoch} loss {1 / (epoch + 1):.4f}\n" for epoch in range(4)]
    on = "[1]<stderr>:rank 1: metrics server does not answer, trying again\n"
    ready = "[0]<stdout>:rank 0 of 2 ready\n[1]<stdout>:rank 1 of 2 ready\n"
    job = ready + "".join(CAUGHT + on + epoch for epoch in epochs)
    assert diagnose({"job.log": job + "[0]<stdout>:done\n"}).verdict is None
    died = "Process name: [1]\nExit code: 1\n"
    assert diagnose({"job.log": job + CAUGHT + died}).verdict is not None


def test_what_both_ranks_caught_and_one_stream_shows_last(diagnose: Diagnose) -> None:
    """torchrun's --tee copies a rank's two streams one after the other, so what was raised early may stand at the end."""
    steps = {rank: "".join(f"[default{rank}]:step {step} loss 0.{9 - step}\n" for step in range(6)) for rank in (0, 1)}
    raised = 'Traceback (most recent call last):\n  File "/home/u/train.py", line 11, in <module>\n    fetch()\nConnectionResetError: [Errno 104] Connection reset by peer\nretrying\n'
    caught = {rank: "".join(f"[default{rank}]:{line}\n" for line in raised.splitlines()) for rank in (0, 1)}
    assert diagnose({"job.log": steps[0] + caught[1] + steps[1] + caught[0]}).verdict is None
    assert diagnose({"job.log": steps[0] + steps[1] + caught[1] + caught[0]}).verdict is not None
