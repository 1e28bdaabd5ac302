"""Who named another root than the rest, from stacks with their variables."""

from __future__ import annotations

from pathlib import Path

from phalanx.model import Frame
from phalanx.run.watch.roots import find_dissent, find_other_name
from phalanx.run.watch.stacks import ProcessStacks, Thread

C10D = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
GRAPH = "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py"
SOURCE = """def train(rank, step):
    owner = 0
    if step > 9 and rank == 1:
        owner = 1
    dist.broadcast(x, src=owner)
    loss.backward()
"""


def script(tmp_path: Path) -> str:
    file = tmp_path / "train.py"
    file.write_text(SOURCE)
    return str(file)


def in_broadcast(file: str, rank: int, root: int) -> ProcessStacks:
    frames = (Frame(file, 5, "train"), Frame(C10D, 80, "wrapper"), Frame(C10D, 3000, "broadcast"))
    values = ({"rank": str(rank), "step": "19", "owner": str(root)}, {}, {"src": str(root), "group_src": str(root)})
    return ProcessStacks(100 + rank, (Thread("MainThread", False, frames, values=values),))


def in_backward(file: str, rank: int, root: int) -> ProcessStacks:
    frames = (Frame(file, 6, "train"), Frame(GRAPH, 979, "_engine_run_backward"))
    values = ({"rank": str(rank), "step": "20", "owner": str(root)}, {})
    return ProcessStacks(100 + rank, (Thread("MainThread", False, frames, values=values),))


def test_the_variables_of_those_that_went_on_make_a_majority(tmp_path: Path) -> None:
    file = script(tmp_path)
    stacks = {rank: in_backward(file, rank, 0) for rank in (2, 3)}
    found = find_dissent({0: in_broadcast(file, 0, 0), 1: in_broadcast(file, 1, 1), **stacks}, 4)
    assert found is not None
    assert found.culprits == {1}
    assert found.text == "different roots of broadcast at train.py:5: rank 1 names 1, ranks 0, 2, 3 name 0"


def test_of_two_the_one_whose_root_a_condition_on_the_rank_chose(tmp_path: Path) -> None:
    file = script(tmp_path)
    found = find_dissent({0: in_broadcast(file, 0, 0), 1: in_broadcast(file, 1, 1)}, 2)
    assert found is not None
    assert found.culprits == {1}
    assert found.text.endswith(", chosen by `if step > 9 and rank == 1`")


def test_of_two_nobody_without_such_a_condition(tmp_path: Path) -> None:
    file = script(tmp_path)
    Path(file).write_text(SOURCE.replace(" and rank == 1", ""))
    found = find_dissent({0: in_broadcast(file, 0, 0), 1: in_broadcast(file, 1, 1)}, 2)
    assert found is not None
    assert found.culprits == set()


def test_nothing_where_all_name_the_same(tmp_path: Path) -> None:
    file = script(tmp_path)
    assert find_dissent({rank: in_broadcast(file, rank, 0) for rank in range(3)}, 3) is None
    assert find_dissent({rank: in_backward(file, rank, 0) for rank in range(3)}, 3) is None


def in_allreduce(rank: int, name: str) -> ProcessStacks:
    mpi = "/opt/venv/lib/python3.11/site-packages/horovod/torch/mpi_ops.py"
    frames = (Frame("train.py", 22, "<module>"), Frame(mpi, 254, "allreduce"), Frame(mpi, 1285, "synchronize"))
    return ProcessStacks(
        100 + rank, (Thread("MainThread", True, frames, values=({}, {"name": name}, {"handle": "7"})),)
    )


def test_a_tensor_of_another_name_in_horovod() -> None:
    found = find_other_name(
        {0: in_allreduce(0, '"loss"'), 1: in_allreduce(1, '"loss"'), 2: in_allreduce(2, '"los"')}, 3
    )
    assert found is not None
    assert found.culprits == {2}
    assert found.text == "different names of allreduce at train.py:22: rank 2 names los, ranks 0, 1 name loss"
    assert find_other_name({rank: in_allreduce(rank, '"loss"') for rank in range(3)}, 3) is None
    assert find_other_name({rank: in_allreduce(rank, "None") for rank in range(3)}, 3) is None
