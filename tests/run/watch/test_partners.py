"""With whom a rank wants to meet, from its stack and its source, and the circles that come of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.model import Frame
from phalanx.run.watch.partners import Partner, circles, describe_circle, left_out_half, partner_of

C10D = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
USER = Frame("/home/user/job/train.py", 30, "exchange")


def test_the_arguments_of_a_blocking_call_tell() -> None:
    frames = (USER, Frame(C10D, 80, "wrapper"), Frame(C10D, 2790, "recv"))
    values = ({"src": "9"}, {}, {"src": "3", "tag": "7", "tensor": "<Tensor at 0x7f>"})
    assert partner_of(frames, values, 0, 4) == Partner(3, sends=False, tag=7)


def test_a_call_within_a_call_is_told_by_the_outer_one_where_the_inner_counts_within_its_group() -> None:
    frames = (USER, Frame(C10D, 3700, "send_object_list"), Frame(C10D, 2740, "send"))
    values = ({}, {"dst": "2", "group_dst": "0"}, {"dst": "None", "group_dst": "0"})
    assert partner_of(frames, values, 0, 4) == Partner(2, sends=True)


def test_a_receive_from_anybody_has_no_partner() -> None:
    assert partner_of((USER, Frame(C10D, 2790, "recv")), ({}, {"src": "None", "tag": "0"}), 0, 4) is None


@pytest.mark.parametrize(
    ("source", "variables", "expected"),
    [
        ("request = dist.irecv(x, src=peer)\nrequest.wait()", {"peer": "2"}, Partner(2, sends=False)),
        (
            "request = dist.isend(x, (rank + 1) % 4, tag=5)\nrequest.wait()",
            {"rank": "3"},
            Partner(0, sends=True, tag=5),
        ),
        ("request = dist.irecv(x, dist.get_rank() ^ 1)\nrequest.wait()", {}, Partner(0, sends=False)),
        ("dist.irecv(x, src=1).wait()", {}, Partner(1, sends=False)),
        ("request = dist.irecv(x, 2)\nrequest = dist.irecv(x, 3)\nrequest.wait()", {}, Partner(3, sends=False)),
        # what is not known is not guessed
        ("request = dist.irecv(x, src=peers[0])\nrequest.wait()", {"peers": "[2]"}, None),
        ("request = dist.irecv(x, src=peer // none)\nrequest.wait()", {"peer": "2", "none": "0"}, None),
        ("request = dist.all_reduce(x, async_op=True)\nrequest.wait()", {}, None),
        ("requests = dist.batch_isend_irecv(ops)\nfor request in requests:\n    request.wait()", {}, None),
    ],
)
def test_a_request_is_traced_to_the_call_that_made_it(
    tmp_path: Path, source: str, variables: dict[str, str], expected: Partner | None
) -> None:
    script = tmp_path / "train.py"
    body = "\n".join(f"    {line}" for line in source.splitlines())
    script.write_text(f"def exchange(x, rank):\n{body}\n")
    line = source.count("\n") + 2
    assert partner_of((Frame(str(script), line, "exchange"),), (variables,), 1, 4) == expected


def test_two_receivers_are_a_circle() -> None:
    partners = {0: Partner(1, sends=False), 1: Partner(0, sends=False)}
    (circle,) = circles(partners)
    assert describe_circle(circle, partners) == (
        "ranks 0, 1 wait for one another in a circle: rank 0 receives from rank 1, which receives from rank 0"
    )


def test_who_waits_for_a_circle_is_not_in_it() -> None:
    partners = {0: Partner(2, sends=False), 1: Partner(0, sends=False), 2: Partner(0, sends=False), 3: Partner(0, True)}
    assert circles(partners) == [(0, 2)]


def test_a_chain_that_ends_is_no_circle() -> None:
    assert circles({1: Partner(0, sends=False), 2: Partner(1, sends=False), 3: Partner(2, sends=False)}) == []


def test_a_send_and_the_receive_that_takes_it_are_none_unless_their_tags_differ() -> None:
    assert circles({0: Partner(1, sends=True), 1: Partner(0, sends=False)}) == []
    partners = {0: Partner(1, sends=True, tag=1), 1: Partner(0, sends=False, tag=2)}
    (circle,) = circles(partners)
    assert "rank 0 sends to rank 1 (tag 1), which receives from rank 0 (tag 2)" in describe_circle(circle, partners)


def test_a_ring_of_many_is_told_in_one_sentence() -> None:
    partners = {rank: Partner((rank - 1) % 16, sends=False) for rank in range(16)}
    (circle,) = circles(partners)
    told = describe_circle(circle, partners)
    assert told.startswith("ranks 0-15 wait for one another in a circle: rank 0 receives from rank 15, which receives")
    assert told.endswith("and so on through 10 more")


EXCHANGE = """\
def serve():
    for number in range(9):
        for worker in range(1, 4):
            dist.recv(part, src=worker)
        for worker in range(1, 4):
            dist.send(weights, dst=worker)

def work(rank):
    for number in range(9):
        norm = step()
        if norm > 0.35:
            dist.send(gradient, dst=0)
        if rank == 1:
            dist.send(notes, dst=3)
        dist.recv(weights, src=0)
"""


@pytest.mark.parametrize(
    ("line", "function", "left"), [(4, "serve", ""), (15, "work", "`if norm > 0.35` at train.py:11")]
)
def test_a_half_that_a_rank_may_have_passed_by(tmp_path: Path, line: int, function: str, left: str) -> None:
    (tmp_path / "train.py").write_text(EXCHANGE)
    frame = Frame(str(tmp_path / "train.py"), line, function)
    assert left_out_half(frame, sends=False) == left
    assert left_out_half(frame, sends=True) == ""
