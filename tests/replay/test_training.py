"""Steps are counted by the optimizers, whatever becomes of these."""

from __future__ import annotations

from phalanx.replay.inside.phalanx_record.training import Training


class Optimizer:
    """Stands for PyTorch's: only its life and its place in memory count here."""


def steps(training: Training, optimizer: Optimizer, count: int) -> None:
    for _ in range(count):
        training._stepping(optimizer, (), {})
        training._stepped(optimizer, (), {})


def test_an_optimizer_that_comes_to_lie_where_another_lay_begins_anew() -> None:
    training = Training()
    for _ in range(50):  # memory is used again at once
        one = Optimizer()
        steps(training, one, 3)
        del one
    assert training.step == 3


def test_several_optimizers_in_one_pass_count_once() -> None:
    training, seen = Training(), []
    training.on_step.append(seen.append)
    first, second = Optimizer(), Optimizer()
    for _ in range(2):
        steps(training, first, 1)
        steps(training, second, 1)
    assert seen == [1, 2]
