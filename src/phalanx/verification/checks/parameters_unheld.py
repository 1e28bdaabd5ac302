"""Trainable parameters of the model that get gradients and are in no optimizer: nothing ever moves them."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.verification.evidence import Evidence, RankEvidence, Step
from phalanx.verification.found import DIVERGES, Found

_FEWEST = 3  # steps
_SHARE = 0.5  # of the model: whoever trains only a head leaves out the larger part, and means it


def check(evidence: Evidence) -> Iterator[Found]:
    """On all ranks, from the first step that was looked at to the last."""
    each = [_unheld(one) for one in evidence.ranks.values() if one.steps]
    common = set.intersection(*each) if each else set()
    if not common:
        return
    one = next(one for one in evidence.ranks.values() if one.steps)
    model = min(number for number, _ in common)
    names = [name for number, name in _order(one) if number == model and (number, name) in common]
    held = [p for found in one.optimizers.values() for p in found.parameters if p.model == model]
    if not held or len(names) >= _SHARE * (len(held) + len(names)):
        return
    maker = next(found for found in one.optimizers.values() if any(p.model == model for p in found.parameters))
    shown = ", ".join(f"`{name}`" for name in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    many = len(names) > 1
    yield Found(
        cause="parameters-not-in-optimizer",
        headline=f"{shown} get{'' if many else 's'} gradients but {'are' if many else 'is'} in no optimizer (made at {maker.line}, {len(held)} parameters): "
        f"{'they keep' if many else 'it keeps'} the first weights.",
        line=maker.line,
        pattern="fix-optimizer",
        do="Give the optimizer every trainable parameter, in whichever group: build the groups from `model.named_parameters()` and check that none is"
        " left over; freeze what is not to be trained (`requires_grad_(False)`).",
        why="Backward and the reduction work for nothing, and a part of the model is never trained.",
        symptom=DIVERGES,
        title="Parameters in no optimizer",
    )  # fmt: skip


def _looked(one: RankEvidence) -> list[Step]:
    return [step for step in one.steps if step.is_looked_at and not step.closure]


def _order(one: RankEvidence) -> list[tuple[int, str]]:
    return [(number, name) for number, name, _ in _looked(one)[-1].unheld]


def _unheld(one: RankEvidence) -> set[tuple[int, str]]:
    """Model and name of those that are left out at every step and have not moved since the first."""
    steps = _looked(one)
    if len(steps) < _FEWEST:
        return set()
    seen = [{(number, name): sketch for number, name, sketch in step.unheld} for step in steps]
    return {key for key in seen[-1] if all(found.get(key) == seen[0].get(key) for found in seen) and key in seen[0]}
