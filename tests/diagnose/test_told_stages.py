"""The stage at which trouble comes, by what a person says."""

from __future__ import annotations

import pytest

from phalanx.diagnose.told_stages import stage_shares, told_stages
from phalanx.model import Stage


def likeliest(text: str) -> Stage:
    told = told_stages(text)
    return max(told, key=lambda stage: told[stage])


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("Two hosts ¶ I start it with mpirun over ssh. After ~75 epochs the training hangs.", Stage.TRAIN),
        ("A job ¶ I want to train for many epochs with this optimizer. It hangs at init_process_group.", Stage.COMM),
        ("A toolkit stalls on pods ¶ The code hangs whenever local_device_count() is called.", Stage.COMM),
        ("Spawned ¶ I train a model. The spawning process hangs.", Stage.COMM),
        ("Freezes ¶ We train 10 epochs. It gets stuck when wrapping the model in DDP(model).", Stage.PREP),
    ],
)
def test_the_sentence_that_tells_of_the_trouble_counts_most(text: str, stage: Stage) -> None:
    assert likeliest(text) is stage


def test_a_neural_network_is_no_network_between_hosts() -> None:
    assert told_stages("Running an LSTM network ¶ My network hangs.") == {}


def test_where_nothing_is_told_the_counts_tell() -> None:
    shares = stage_shares("It hangs ¶ why?", "horovod")
    assert sum(shares.values()) == pytest.approx(1.0)
    assert all(share > 0 for share in shares.values())


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        (
            "Two nodes ¶ The machines connect to each other, the model is loaded, but training does not continue.",
            Stage.TRAIN,
        ),
        ("Stuck in the initiliazation ¶ Two GPUs, and it hangs.", Stage.COMM),
        ("Multi-GPU training never starts ¶ It works with one.", Stage.COMM),
    ],
)
def test_what_was_got_over_and_what_never_began(text: str, stage: Stage) -> None:
    assert likeliest(text) is stage


def test_the_steps_of_a_recipe_are_no_steps_of_training() -> None:
    assert told_stages("It hangs ¶ Steps to reproduce the behavior. It is stuck at this step.") == {}
