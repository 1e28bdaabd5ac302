"""Gradients of several micro-batches are to be added up, and all but the last are cleared before the step."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.verification.evidence import Evidence, Step
from phalanx.verification.found import Found

_FEWEST = 2


def check(evidence: Evidence) -> Iterator[Found]:
    """Backward, clear, backward on other data, step: in most steps. A step that is left out now and then (a loss that is no number) looks the same."""
    for one in evidence.ranks.values():
        every = [step for step in one.steps if step.is_looked_at and step.all("backward")]
        looked = [step for step in every if len(step.all("backward")) > 1]
        lost = [_lost(step) for step in looked]
        if len(lost) < max(_FEWEST, len(every) / 2) or not all(lost):
            continue
        last = looked[0].all("backward")[-1]
        of = len(looked[0].all("backward"))
        yield Found(
            cause="accumulated-gradients-cleared",
            headline=f"{lost[0]} of {of} backward passes for each step are thrown away: gradients are cleared between them, and only those of the last one ({last.get('line', '')}) are used.",
            line=str(last.get("line", "")),
            pattern="fix-behavior-logic",
            do="Call `optimizer.zero_grad()` once for each `optimizer.step()`, not for each micro-batch.",
            why="Accumulation adds up gradients of several backward passes; clearing them leaves one.",
            title="Accumulated gradients are cleared",
        )
        return


def _lost(step: Step) -> int:
    """How many backward passes are cleared before the last one. One batch that is used twice is another method (SAM)."""
    marks = {at.get("mark") for at in step.all("forward")}
    backwards = [place for place, (kind, _) in enumerate(step.events) if kind == "backward"]
    cleared = [place for place, (kind, _) in enumerate(step.events) if kind == "zeroed" and place < backwards[-1]]
    if len(marks) < len(backwards) or None in marks or not cleared:
        return 0
    return sum(1 for place in backwards if place < max(cleared))
