"""Steps are counted by the optimizers, whatever becomes of these."""

from __future__ import annotations

from phalanx.replay.inside.phalanx_record.training import Training


class Optimizer:
    """Stands for PyTorch's: only its life and its place in memory count here."""


def steps(training: Training, optimizer: Optimizer, count: int) -> None:
    for _ in range(count):
        training._stepping(optimizer, (), {})
        training._stepped(optimizer, (), {})


def test_a_new_optimizer_for_every_epoch_goes_on_counting_wherever_it_lies() -> None:
    counts = []
    for reuses_memory in (True, False):
        training, held = Training(), []
        for _ in range(50):
            one = Optimizer()
            steps(training, one, 3)
            if not reuses_memory:
                held.append(one)
            del one
        counts.append(training.step)
    assert counts == [101, 101]  # the first step of a new one may belong to the pass before: it does not count


def test_an_optimizer_that_joins_later_does_not_stop_the_count() -> None:
    training = Training()
    early, late = Optimizer(), Optimizer()
    steps(training, early, 10)
    for _ in range(5):
        steps(training, early, 1)
        steps(training, late, 1)
    assert training.step == 15


def test_a_script_may_count_for_itself() -> None:
    training, seen = Training(), []
    training.on_step.append(seen.append)
    for step in (1, 2, 2, 3):
        training.count(step)
    assert seen == [1, 2, 3]


def test_several_optimizers_in_one_pass_count_once() -> None:
    training, seen = Training(), []
    training.on_step.append(seen.append)
    first, second = Optimizer(), Optimizer()
    for _ in range(2):
        steps(training, first, 1)
        steps(training, second, 1)
    assert seen == [1, 2]
