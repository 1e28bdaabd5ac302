"""Folding keeps every rank's words in order and loses none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from phalanx.model.ranks import ranges
from phalanx.run.fold import Fold


def shown(fold: Fold, now: float = 0.0, everything: bool = False) -> list[tuple[str, str]]:
    return [(ranges(said.ranks), said.text.decode()) for said in fold.ready(now, everything)]


def test_the_same_line_of_all_ranks_goes_at_once() -> None:
    fold = Fold(range(3))
    for rank in (1, 0, 2):
        fold.add(rank, b"step 1", False, 0.0)
    assert shown(fold) == [("0-2", "step 1")]


def test_a_line_of_few_ranks_waits_a_moment_for_the_others() -> None:
    fold = Fold(range(3), wait=0.1)
    fold.add(0, b"step 1", False, 0.0)
    fold.add(2, b"step 1", False, 0.05)
    assert shown(fold, 0.06) == []
    assert fold.due(0.06) is not None
    assert shown(fold, 0.11) == [("0,2", "step 1")]
    assert fold.due(0.2) is None


def test_order_is_kept() -> None:
    fold = Fold(range(2))
    fold.add(0, b"a", False, 0.0)
    fold.add(0, b"b", False, 0.0)
    fold.add(1, b"b", False, 0.0)
    fold.add(1, b"a", False, 0.0)  # after its b: may not join the a before it
    assert shown(fold, everything=True) == [("0", "a"), ("0-1", "b"), ("1", "a")]


def test_streams_are_not_mixed() -> None:
    fold = Fold(range(2))
    fold.add(0, b"x", False, 0.0)
    fold.add(1, b"x", True, 0.0)
    assert len(shown(fold, everything=True)) == 2


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([b"a", b"b", b"c"])), max_size=60))
def test_nothing_is_lost_or_turned_around(lines: list[tuple[int, bytes]]) -> None:
    fold = Fold(range(4))
    for rank, text in lines:
        fold.add(rank, text, False, 0.0)
    out = list(fold.ready(0.0, everything=True))
    for rank in range(4):
        assert [said.text for said in out if rank in said.ranks] == [text for one, text in lines if one == rank]
    assert all(len(set(said.ranks)) == len(said.ranks) for said in out)
