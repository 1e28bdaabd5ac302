"""Rings in which one rank exchanges with another neighbour than the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.model import Frame
from phalanx.run.watch.neighbours import find_other_neighbour
from phalanx.run.watch.stacks import ProcessStacks, Thread

SOURCE = """def shift(value, rank, world, hop):
    request = dist.isend(value, (rank + hop) % world)
    dist.recv(out, src=(rank - 1) % world)
    request.wait()
"""


def ring(tmp_path: Path, hops: list[int], source: str = SOURCE) -> dict[int, ProcessStacks]:
    file = tmp_path / "train.py"
    file.write_text(source)
    found = {}
    for rank, hop in enumerate(hops):
        told = {"rank": str(rank), "world": str(len(hops)), "hop": str(hop)}
        frames = (Frame(str(file), 9, "<module>"), Frame(str(file), 3 + rank % 2, "shift"))
        found[rank] = ProcessStacks(rank, (Thread("MainThread", False, frames, values=({}, told)),))
    return found


def test_one_that_sends_two_hops_away(tmp_path: Path) -> None:
    found = find_other_neighbour(ring(tmp_path, [1, 1, 1, 2]), 4)
    assert found is not None
    assert found.culprits == {3}
    assert found.text == "different neighbours in isend at train.py:2: rank 3 names 1, another than the rest do"


@pytest.mark.parametrize("hops", [[1, 1, 1, 1], [1, 1, 2, 2], [1, 2]])
def test_nobody_is_odd(tmp_path: Path, hops: list[int]) -> None:
    assert find_other_neighbour(ring(tmp_path, hops), len(hops)) is None


def test_whom_a_rank_meets_without_a_ring_depends_on_the_rank_by_nature(tmp_path: Path) -> None:
    source = SOURCE.replace("(rank + hop) % world", "hop").replace("(rank - 1) % world", "0")
    assert find_other_neighbour(ring(tmp_path, [1, 1, 1, 2], source), 4) is None


def test_a_rank_that_is_elsewhere_cannot_be_compared(tmp_path: Path) -> None:
    stacks = ring(tmp_path, [1, 1, 1, 2])
    stacks[0] = ProcessStacks(0, (Thread("MainThread", False, (Frame("other.py", 1, "run"),), values=({},)),))
    assert find_other_neighbour(stacks, 4) is None
