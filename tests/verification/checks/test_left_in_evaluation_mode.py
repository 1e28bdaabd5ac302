"""The mode that a model is trained in."""

from __future__ import annotations

from phalanx.verification.checks.left_in_evaluation_mode import check
from tests.verification.made import Job


def modes(*flags: bool, layers: tuple[str, ...] = ("Dropout",), ranks: tuple[int, ...] = (0, 1, 2)) -> list[str]:
    model = {"k": "model", "m": 0, "kind": "module", "cls": "Net", "inside": None, "layers": list(layers)}

    def events(rank: int, step: int) -> list[list[object]]:
        return [["forward", {"m": 0, "training": flags[step] or rank not in ranks, "line": "train.py:15"}]]

    job = Job(size=3, steps=len(flags), events=events, more=lambda rank: [model])
    return [f"{one.culprits} {one.headline}" for one in check(job.evidence)]


def test_from_a_step_on() -> None:
    (found,) = modes(True, True, False, False)
    assert "From step 3 on ranks 0, 1, 2 train in evaluation mode (train.py:15): Dropout" in found
    (found,) = modes(True, True, False, False, ranks=(1,))
    assert found.startswith("(1,) From step 3 on rank 1 trains")


def test_what_is_meant_or_does_not_matter() -> None:
    assert modes(True, True, True, True) == []
    assert modes(False, False, False, False) == [], "fine-tuned in evaluation mode from the start"
    assert modes(True, True, False, True) == []
    assert modes(True, True, False, False, layers=()) == []
