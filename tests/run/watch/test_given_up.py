"""Jobs that end by time-outs of their own before the watch speaks: whom they had waited for."""

from __future__ import annotations

from pathlib import Path

from phalanx.model import Frame
from phalanx.run.observer import GIVEN_UP
from phalanx.run.watch.given_up import GivenUp
from phalanx.run.watch.snapshot import Snapshot
from phalanx.run.watch.stacks import ProcessStacks, Thread

C10D = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
TIMED_OUT = "RuntimeError: [gloo/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation to complete"
LOST = "RuntimeError: [gloo/pair.cc:553] Connection closed by peer [127.0.0.1]:27327"
SCRIPT = """\
import torch.distributed as dist
def serve():
    for number in range(9):
        dist.recv(part, src=2)
def work():
    for number in range(9):
        norm = step()
        if norm > 0.35:
            dist.send(gradient, dst=0)
        dist.recv(weights, src=0)
def settings(rank):
    if rank == 0:
        dist.broadcast(box, src=0)
    dist.all_reduce(total)
"""


def words(script: Path, line: int, call: str, said: str = TIMED_OUT) -> tuple[bytes, ...]:
    lines = [
        "Traceback (most recent call last):",
        f'  File "{script}", line {line}, in work',
        f'  File "{C10D}", line 83, in {call}',
        "    work.wait()",
        said,
    ]
    return tuple(text.encode() for text in lines)


def test_two_that_receive_from_each_other(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    given_up = GivenUp(3)
    given_up.ended(0, 1, words(script, 4, "recv", LOST), {"op": "recv", "root": "2"}, 100.0, 8.2)
    given_up.ended(1, 1, words(script, 10, "recv"), {"op": "recv", "root": "0"}, 100.1, 0.0)
    given_up.ended(2, 1, words(script, 10, "recv"), {"op": "recv", "root": "0"}, 100.1, 0.0)
    (found,) = given_up.tell(101.0, living=False)
    assert found.ranks == (2,)
    assert found.text.endswith("rank 2 left out its send, which stands under `if norm > 0.35` at train.py:8")
    assert (found.data["kind"], found.data["quiet_s"], found.data["told_after_s"]) == (GIVEN_UP, 8.2, 9.2)
    assert given_up.tell(102.0, living=False) == []


def living(script: Path, line: int, call: str) -> ProcessStacks:
    frames = (Frame(str(script), line, "<module>"), Frame(C10D, 83, call))
    return ProcessStacks(7, (Thread("MainThread", active=False, frames=frames),))


def test_who_waited_under_its_own_condition_while_the_others_live(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    given_up = GivenUp(3)
    given_up.ended(0, 1, words(script, 13, "broadcast"), {}, 50.0, 10.0)
    assert given_up.tell(50.1, living=True) == []  # where the others stand is not known yet
    given_up.seen(Snapshot(1, {rank: living(script, 14, "all_reduce") for rank in (1, 2)}, {}, {}))
    (found,) = given_up.tell(50.6, living=True)
    assert found.ranks == (0,)
    assert found.text.startswith(
        "nothing has moved for 10 s: ranks 1, 2 wait in all_reduce at train.py:14; rank 0 waits in broadcast"
    )


def test_nobody_where_all_waited_at_one_place_or_one_is_not_known_or_nothing_timed_out(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    for known, said in ((3, TIMED_OUT), (2, TIMED_OUT), (3, LOST), (3, "ValueError: no such shard")):
        given_up = GivenUp(3)
        for rank in range(known):
            given_up.ended(rank, 1, words(script, 14, "all_reduce", said), {}, 50.0, 10.0)
        assert given_up.tell(50.1, living=False) == []
