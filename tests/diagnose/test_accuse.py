"""Ranks of a watched job that failed in a collective: who had asked for something else, or went aside."""

from __future__ import annotations

import json
from typing import Any

from tests.conftest import Diagnose

HOROVOD = "horovod.common.exceptions.HorovodInternalError: Mismatched ALLREDUCE tensor shapes: One rank sent a tensor of shape [4], but another rank sent a tensor of shape [3].\n"
TENSORFLOW = (
    "tensorflow.python.framework.errors_impl.InternalError: Collective ops is aborted by: Collective instance 199 "
    "expected type 0 and data_type 1 but got type 0 and data_type 9\n"
)


def job(text: str, why: list[dict[str, Any]], framework: str = "horovod") -> dict[str, bytes]:
    """A bundle in which every rank printed the same and ended with 1."""
    manifest = {"schema": "phalanx.bundle/1", "size": len(why), "framework": framework}
    files = {"manifest.json": json.dumps(manifest).encode()}
    for rank, one in enumerate(why):
        said = f'step 3 loss 0.2\nTraceback (most recent call last):\n  File "/home/user/train.py", line 9, in <module>\n    run()\n{text}'
        record = {"schema": "phalanx.exit/1", "rank": rank, "code": 1, "by": None, "order": rank, "why": one}
        files[f"attempt0/rank{rank}/output.log"] = said.encode()
        files[f"attempt0/rank{rank}/exit.json"] = json.dumps(record).encode()
    return files


def culprits(diagnose: Diagnose, files: dict[str, bytes]) -> tuple[int, ...]:
    verdict = diagnose(files).verdict
    assert verdict is not None
    return verdict.culprit_ranks


def call(**facts: str) -> dict[str, Any]:
    return {"failed_at": "train.py:9", "call": {"op": "allreduce", "name": "counts", **facts}}


def test_the_rank_whose_call_differs_from_most_is_to_blame(diagnose: Diagnose) -> None:
    calls = [call(shape="[4]"), call(shape="[3]"), call(shape="[4]")]
    assert culprits(diagnose, job(HOROVOD, calls)) == (1,)


def test_a_tie_of_calls_accuses_nobody(diagnose: Diagnose) -> None:
    assert culprits(diagnose, job(HOROVOD, [call(shape="[4]"), call(shape="[3]")])) == ()
    assert culprits(diagnose, job(HOROVOD, [call(shape="[4]")] * 3)) == ()
    # of three ranks one told nothing, and the others differ: no majority
    assert culprits(diagnose, job(HOROVOD, [call(shape="[4]"), call(shape="[3]"), {}])) == ()


def test_where_calls_differed_and_all_known_are_alike_it_was_the_one_that_left_none(diagnose: Diagnose) -> None:
    alike = call(shape="[4]")
    assert culprits(diagnose, job(HOROVOD, [alike, alike, {}])) == (2,)
    assert culprits(diagnose, job(HOROVOD, [alike, alike, {}, {}])) == ()  # which of the two is not known
    assert culprits(diagnose, job(HOROVOD, [alike, {}])) == ()
    only_shape = {"call": {"shape": "[4]"}}  # of one that the launcher ended
    assert culprits(diagnose, job(HOROVOD, [alike, only_shape, alike, {}])) == (3,)
    assert culprits(diagnose, job(HOROVOD, [alike, only_shape, {}, {}])) == ()
    lost = "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:34219\n"
    assert culprits(diagnose, job(lost, [alike, alike, {}], "torch")) == ()  # nothing says that calls differed


def test_who_failed_under_a_condition_on_the_rank_went_aside(diagnose: Diagnose) -> None:
    aside = {"failed_at": "train.py:57", "condition": "if rank == 0", "condition_at": "train.py:57"}
    common = {"failed_at": "train.py:52"}
    assert culprits(diagnose, job(TENSORFLOW, [aside, common], "tensorflow")) == (0,)
    assert culprits(diagnose, job(TENSORFLOW, [common, common], "tensorflow")) == ()
    assert culprits(diagnose, job(TENSORFLOW, [aside, aside], "tensorflow")) == ()


def test_who_sends_and_who_receives_ask_for_different_things(diagnose: Diagnose) -> None:
    received = [call(op="recv", root="0", shape="[4]") for _ in range(4)]
    assert culprits(diagnose, job(HOROVOD, [call(op="recv", root="2", shape="[3]"), *received])) == ()


def test_a_rank_that_died_of_too_long_a_message_asked_for_the_smaller_size(diagnose: Diagnose) -> None:
    files = job("RuntimeError: Connection closed by peer [127.0.0.1]:7\n", [call(shape="[5]"), {}, call(shape="[4]")])
    died = (
        "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at /x/gloo/transport/tcp/pair.cc:456] "
        "op.preamble.length <= op.nbytes. {got} vs 8. Received data size doesn't match expected size. Is there a distributed collective mismatch in your code?\n"
    )
    files["attempt0/rank1/output.log"] = died.format(got=10).encode()
    assert culprits(diagnose, files) == (0,)


LOST = "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:34219\n"


def ended_well(files: dict[str, bytes], rank: int) -> dict[str, bytes]:
    """The same job, of which one rank was through before the others failed."""
    record = {"schema": "phalanx.exit/1", "rank": rank, "code": 0, "by": None, "order": 0, "why": {}}
    return {
        **files,
        f"attempt0/rank{rank}/output.log": b"step 3 loss 0.2\n",
        f"attempt0/rank{rank}/exit.json": json.dumps(record).encode(),
    }


def test_of_two_the_one_that_called_under_a_condition_when_the_other_was_through(diagnose: Diagnose) -> None:
    aside = {"failed_at": "train.py:22", "condition": "if rank == 0", "condition_at": "train.py:22"}
    assert culprits(diagnose, ended_well(job(LOST, [aside, {}], "torch"), 1)) == (0,)
    assert culprits(diagnose, ended_well(job(LOST, [{"failed_at": "train.py:18"}, {}], "torch"), 1)) == (1,)


def test_who_only_lost_a_peer_did_not_go_first(diagnose: Diagnose) -> None:
    """Rank 2 died of the connection that rank 1 closed when it left, and what rank 0 says comes of both."""
    unhealthy = "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: The following tasks are unhealthy (stopped sending heartbeats):\n"
    closed = "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: Socket closed\n"
    files = ended_well(job(closed, [{}, {}, {}], "tensorflow"), 1)
    files["attempt0/rank0/output.log"] = job(unhealthy, [{}], "tensorflow")["attempt0/rank0/output.log"]
    assert culprits(diagnose, files) == (1,)


TIMED_OUT = (
    "RuntimeError: [/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation to complete\n"
)


def test_of_two_that_receive_from_each_other_the_one_that_may_have_passed_its_send_by(diagnose: Diagnose) -> None:
    server, worker = call(op="recv", root="2"), call(op="recv", root="0")
    passed_by = {**worker, "left_out": "`if norm > 0.35` at train.py:38"}
    assert culprits(diagnose, job(TIMED_OUT, [server, passed_by, passed_by], "torch")) == (2,)
    assert culprits(diagnose, job(TIMED_OUT, [server, worker, worker], "torch")) == ()
    both = {**server, "left_out": "`if full` at train.py:12"}
    assert culprits(diagnose, job(TIMED_OUT, [both, worker, passed_by], "torch")) == ()
