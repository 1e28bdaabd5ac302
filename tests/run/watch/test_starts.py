"""Who looks for the others elsewhere than they, from stacks with their variables."""

from __future__ import annotations

from phalanx.model import Frame
from phalanx.run.watch.stacks import ProcessStacks, Thread
from phalanx.run.watch.starts import find_stranger

TORCH = "/opt/venv/lib/python3.11/site-packages/torch/distributed"


def at_store(rank: int, port: int) -> ProcessStacks:
    frames = (Frame("/home/user/job/train.py", 20, "setup"), Frame(f"{TORCH}/rendezvous.py", 199, "_create_c10d_store"))
    values = ({}, {"hostname": '"127.0.0.1"', "port": str(port), "world_size": "3"})
    return ProcessStacks(100 + rank, (Thread("MainThread", False, frames, values=values),))


def inside(rank: int) -> ProcessStacks:
    frames = (
        Frame("/home/user/job/train.py", 20, "setup"),
        Frame(f"{TORCH}/distributed_c10d.py", 2169, "_new_process_group_helper"),
    )
    return ProcessStacks(100 + rank, (Thread("MainThread", False, frames, values=({"x": "1"}, {})),))


def test_who_found_the_store_of_rank_0_is_with_it() -> None:
    found = find_stranger({0: at_store(0, 4000), 1: inside(1), 2: at_store(2, 4001)}, 3)
    assert found is not None
    assert found.culprits == {2}
    assert found.text == "different addresses to meet at: rank 2 uses 127.0.0.1:4001, ranks 0, 1 use 127.0.0.1:4000"


def test_of_two_nobody() -> None:
    found = find_stranger({0: at_store(0, 4000), 1: at_store(1, 4001)}, 2)
    assert found is not None
    assert found.culprits == set()


def test_nothing_where_all_are_at_one() -> None:
    assert find_stranger({rank: at_store(rank, 4000) for rank in range(3)}, 3) is None
    assert find_stranger({0: at_store(0, 4000), 1: inside(1)}, 2) is None
