"""Gradients of earlier steps that are still there when the next backward pass begins: nobody clears them."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence, Step
from phalanx.verification.found import Found

_FEWEST = 2


def check(evidence: Evidence) -> Iterator[Found]:
    """Every parameter that has a gradient carried the last one over, at every step that was looked at."""
    for optimizer in evidence.optimizers:
        guilty: dict[int, Step] = {}
        for rank, one in evidence.ranks.items():
            later = [
                step
                for step in one.steps_of(optimizer).values()
                if step.is_looked_at and step.number > 0 and not step.closure
            ]
            fresh = [step for step in later if any(own is not None for own in step.own)]
            if len(fresh) >= _FEWEST and all(_carries(step) for step in fresh):
                guilty[rank] = fresh[0]
        if guilty:
            yield _found(evidence, guilty)


def _carries(step: Step) -> bool:
    came = [bool(carried) for own, carried in zip(step.own, step.carried, strict=True) if own is not None]
    return bool(came) and all(came)


def _found(evidence: Evidence, guilty: dict[int, Step]) -> Found:
    step = next(iter(guilty.values()))
    backward = next((str(one["line"]) for one in step.all("backward")), step.line)
    who = "" if len(guilty) == len(evidence.ranks) else f" on {name_ranks(guilty)}"
    few = len(guilty) * 2 < len(evidence.ranks)
    return Found(
        cause="gradients-not-cleared",
        headline=f"Gradients are never cleared{who}: at step {step.number + 1} and every later one the backward pass adds to those of the steps before.",
        line=backward,
        pattern="fix-behavior-logic",
        do="Call `optimizer.zero_grad()` once for each step, before the backward pass or right after `optimizer.step()`.",
        why="Each update then repeats all earlier gradients, and grows with every step.",
        title="Gradients are not cleared",
        culprits=tuple(sorted(guilty)) if few else (),
    )  # fmt: skip
