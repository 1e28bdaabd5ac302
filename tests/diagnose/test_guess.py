"""Exceptions that no rule knows: the likeliest symptom and fixes, by words and by where they were raised."""

from __future__ import annotations

import pytest

from phalanx.diagnose.guess import guess
from phalanx.model import Event, EventKind, Frame, Stage

SITE = "/opt/venv/lib/python3.11/site-packages/"
MINE = Frame("/home/user/train.py", 9, "main", "value = table[key]")


def raised(kind: str, *frames: Frame, message: str = "something") -> Event:
    return Event(EventKind.EXCEPTION, f"{kind}: {message}", "job.log", 9, frames=frames, data={"type": kind})


@pytest.mark.parametrize(
    ("event", "stage", "symptom", "fix"),
    [
        (raised("KeyError", MINE), Stage.PREP, "prep.other", "fix-behavior-logic"),
        (raised("KeyError", MINE), Stage.TRAIN, "fail.other", "fix-behavior-logic"),
        (raised("ValueError", Frame("/home/user/data.py", 3, "__getitem__", 'raise ValueError("bad")')), Stage.TRAIN,
         "prep.data-loading-failure", "fix-dataset"),
        (raised("IndexError", Frame("/home/user/train.py", 3, "main", "use(gpus[1])")), Stage.PREP,
         "prep.device-error", "fix-device-assignment"),
        (raised("ValueError", MINE, Frame(SITE + "torch/utils/data/sampler.py", 7, "__init__")), Stage.PREP,
         "prep.data-loading-failure", "fix-dataset"),
        (raised("ValueError", MINE, Frame(SITE + "torch/distributed/distributed_c10d.py", 7, "scatter")), Stage.TRAIN,
         "fail.communication-error", "fix-distributed-api-usage"),
        (raised("TypeError", MINE, message="fit() got an unexpected keyword argument 'workers'"), Stage.TRAIN,
         "fail.attribute-not-found", "fix-behavior-logic"),
    ],
)  # fmt: skip
def test_where_it_was_raised_tells(event: Event, stage: Stage, symptom: str, fix: str) -> None:
    guessed = guess(event, stage)
    assert guessed.symptom == symptom
    assert fix in guessed.patterns


def test_without_frames_the_type_tells() -> None:
    assert guess(raised("ValueError"), None).symptom == "fail.graph-execution-error"
