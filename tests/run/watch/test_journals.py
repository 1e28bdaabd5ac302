"""Real jobs of Horovod and TensorFlow whose calls are told from inside, and what the journals say of groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.run.watch.journals import Journal, Made, states_of

from ..jobs import run
from ..test_other_frameworks import python_with

HOROVOD = """\
import torch, horovod.torch as hvd
hvd.init()
rank = hvd.rank()
model = torch.nn.Linear(8, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
for step in range(40):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    if not (rank == 1 and step == 12):
        hvd.allreduce(loss.detach(), name="mean")
"""


def made(name: str, number: int, done: bool, op: str = "allreduce") -> Made:
    return Made(name, number, op, name, "", None, (), done)


def test_by_name_an_absent_rank_is_at_nought_and_one_that_joined_holds_nobody_up() -> None:
    waits = Journal("horovod", True, 2, (made("w", 1, True), made("mean", 1, False)))
    other = Journal("horovod", True, 1, (made("w", 1, True),))
    states = states_of({0: waits, 1: other})
    assert states[0]["mean"].waits_in is not None
    assert states[1]["mean"].entered.seq == 0
    joined = Journal("horovod", True, 2, (made("w", 1, True), made("join", 1, False, "join")))
    assert "mean" not in states_of({0: waits, 1: joined})[1]


@pytest.mark.job
@pytest.mark.timeout(300)
def test_two_ranks_of_horovod_and_a_negated_condition(tmp_path: Path) -> None:
    python = python_with("horovod", "horovod")
    (tmp_path / "train.py").write_text(HOROVOD)
    done = run(tmp_path, "-n", "2", "--on-stall", "abort", "--python", python, "train.py")
    assert "Rank 1 skipped allreduce `mean` at train.py:13 in step 12" in " ".join(done.err.split())
    assert done.report()["verdict"]["culprit_ranks"] == [1]
