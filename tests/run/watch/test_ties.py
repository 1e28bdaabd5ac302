"""Ties that the script itself breaks: conditions on the rank, passes of loops, partners for one pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.model import Frame
from phalanx.model.facts.stall import is_beyond_recorders
from phalanx.run.watch.loops import is_ahead, is_common_path, passes_of
from phalanx.run.watch.partners import Partner
from phalanx.run.watch.rank_position import Doing, RankPosition
from phalanx.run.watch.stall_verdict import judge_stall
from phalanx.run.watch.ties import break_tie

SOURCE = """def train(loader):
    for epoch in range(3):
        for step, batch in enumerate(loader):
            loss = forward(batch)
            if step % EVERY == 0:
                dist.recv(x, 1)
            if loss > best:
                dist.recv(x, 1)
            try:
                forward(batch)
            except OSError:
                dist.recv(x, 1)
"""


def frame(tmp_path: Path, line: int) -> Frame:
    file = tmp_path / "train.py"
    file.write_text(SOURCE)
    return Frame(str(file), line, "train")


def passes(epoch: int, step: int) -> tuple[tuple[str, str, str, int], ...]:
    return (("train.py", "train", "epoch", epoch), ("train.py", "train", "step", step))


def waits(
    rank: int,
    call: str = "all_reduce",
    condition: str = "",
    partner: Partner | None = None,
    at: tuple[int, int] = (0, 20),
    common: bool = True,
) -> RankPosition:
    line = Frame("train.py", 30 + rank, "train")
    return RankPosition(
        rank, Doing.COLLECTIVE, call, line, condition, line if condition else None, partner=partner, passes=passes(*at), common=common
    )  # fmt: skip


def test_the_loops_that_a_stack_stands_in(tmp_path: Path) -> None:
    at = frame(tmp_path, 6)
    assert [one[2:] for one in passes_of((at,), ({"epoch": "1", "step": "7", "x": "3"},))] == [
        ("epoch", 1),
        ("step", 7),
    ]
    assert passes_of((at,), ({"step": "<tensor>"},)) == ()


def test_who_is_in_a_later_pass() -> None:
    assert is_ahead(passes(0, 21), passes(0, 20)) == "step 21"
    assert is_ahead(passes(1, 0), passes(0, 20)) == "epoch 1"
    assert is_ahead(passes(0, 20), passes(0, 20)) == is_ahead(passes(0, 20), passes(1, 0)) == ""
    assert is_ahead((("evaluate.py", "run", "step", 9),), passes(0, 1)) == ""


def test_calls_that_every_pass_makes(tmp_path: Path) -> None:
    assert is_common_path((frame(tmp_path, 4),))
    assert is_common_path((frame(tmp_path, 6),))
    assert not is_common_path((frame(tmp_path, 8),))  # by what was computed
    assert not is_common_path((frame(tmp_path, 12),))  # by an exception


def test_of_two_the_one_under_a_condition_on_the_rank() -> None:
    found = break_tie({0: waits(0, "barrier", "if rank == 0"), 1: waits(1)}, (0, 1))
    assert found is not None
    assert (found.culprits, found.text) == ({0}, "only rank 0 stands under a condition on the rank")


def test_nobody_where_both_stand_under_one_or_the_one_in_its_other_branch() -> None:
    both = {0: waits(0, "barrier", "if rank == 0"), 1: waits(1, "all_reduce", "else of if rank == 0")}
    assert break_tie(both, both) is None
    other = {0: waits(0), 1: waits(1, "barrier", "else of if rank == 0")}
    assert break_tie(other, other) is None


def test_who_left_a_pass_out_that_the_other_waits_in() -> None:
    found = break_tie({0: waits(0, "barrier"), 1: waits(1, at=(0, 21))}, (0, 1))
    assert found is not None
    assert (found.culprits, found.reason) == ({1}, "ahead")
    assert found.text == "rank 1 is in step 21 already and left out what rank 0 still waits for"


def test_nobody_where_only_some_passes_come_to_the_call() -> None:
    assert break_tie({0: waits(0, "barrier", common=False), 1: waits(1, at=(0, 21))}, (0, 1)) is None


def test_a_send_that_was_left_out() -> None:
    positions = {
        0: waits(0, "recv", "if rank == 0", Partner(2, sends=False)),
        1: waits(1, at=(0, 21)),
        2: waits(2, at=(0, 21)),
    }
    verdict = judge_stall(positions, {}, 3)
    assert (verdict.culprits, verdict.reason) == ((2,), "ahead")
    assert is_beyond_recorders(verdict.fact(8.0))
    assert verdict.fact(8.0).id == "stall.left-common-path"


def test_a_circle_of_sends_by_a_partner_for_one_pass() -> None:
    positions = {
        0: waits(0, "recv", "if rank % 2 == 0", Partner(3, sends=False)),
        1: waits(1, "send", "", Partner(2, sends=True)),
        2: waits(2, "send", "", Partner(1, sends=True, aside="if rank == 2 and step == 25")),
        3: waits(3, "recv", "", Partner(2, sends=False)),
    }
    verdict = judge_stall(positions, {}, 4)
    assert (verdict.culprits, verdict.reason) == ((2,), "chosen")
    assert verdict.text.endswith("rank 2 sends to rank 1, chosen by `if rank == 2 and step == 25`")


def test_a_circle_of_equals_accuses_nobody() -> None:
    positions = {
        0: waits(0, "recv", "", Partner(1, sends=False)),
        1: waits(1, "recv", "", Partner(0, sends=False)),
    }
    verdict = judge_stall(positions, {}, 2)
    assert (verdict.culprits, verdict.reason) == ((), "circle")


LEFT = """def train(loader):
    for step in range(limit):
        loss = backward()
        if loss < GOAL:
            break
    dist.barrier()
    for batch in loader:
        backward()
    dist.barrier()
    for step in range(60):
        if step == MOST:
            break
        backward()
    while loss > GOAL:
        loss = backward()
    dist.barrier()
    for step in range(limit):
        if step == MOST:
            break
        backward()
    dist.barrier()
"""


def at_line(tmp_path: Path, rank: int, line: int, call: str) -> RankPosition:
    file = tmp_path / "train.py"
    file.write_text(LEFT)
    own = Frame(str(file), line, "train")
    return RankPosition(rank, Doing.COLLECTIVE, call, own, stack=(Frame(str(file), 99, "<module>"), own), common=True)


@pytest.mark.parametrize(
    ("waits_at", "stands_at", "loop"),
    [(3, 6, 2), (8, 9, None), (13, 16, 10), (15, 16, 14), (20, 21, None), (6, 9, None), (3, 3, None)],
)
def test_a_loop_that_was_left_by_what_was_computed(
    tmp_path: Path, waits_at: int, stands_at: int, loop: int | None
) -> None:
    """Not where the data end, or the number of passes is handed in: then either side may be right."""
    ranks = {0: at_line(tmp_path, 0, waits_at, "backward"), 1: at_line(tmp_path, 1, stands_at, "barrier")}
    found = break_tie(ranks, (0, 1))
    assert (found.culprits if found else None) == ({1} if loop else None)
    if found and loop:
        assert found.text == f"rank 1 has left the loop at train.py:{loop}, in which rank 0 still waits"


HALVES = """def collect(rank, hits):
    if rank == 0:
        dist.recv(count, src=1)
    elif hits:
        dist.send(hits, dst=0)
    dist.barrier()
    if rank == 0:
        dist.recv(count, src=1)
    dist.barrier()
"""


@pytest.mark.parametrize(("line", "accused"), [(3, {1}), (8, None)])
def test_the_other_half_of_an_exchange_that_was_left_out(tmp_path: Path, line: int, accused: set[int] | None) -> None:
    """Where the script has no other half, it is the receive that is too much."""
    file = tmp_path / "train.py"
    file.write_text(HALVES)
    receives = RankPosition(
        0, Doing.COLLECTIVE, "recv", Frame(str(file), line, "collect"), "if rank == 0", partner=Partner(1, sends=False)
    )
    others = {rank: RankPosition(rank, Doing.COLLECTIVE, "barrier", Frame(str(file), 9, "collect")) for rank in (1, 2)}
    found = break_tie({0: receives, **others}, (0, 1, 2))
    assert (found.culprits if found else None) == accused
