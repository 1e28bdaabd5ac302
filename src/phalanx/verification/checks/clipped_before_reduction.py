"""Each rank clips its own gradients, and only then they are reduced."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.verification.evidence import Evidence, Step
from phalanx.verification.found import Found

_REDUCING = ("allreduce", "allreduce_coalesced", "reduce", "_reduce_scatter_base", "reduce_scatter")


def check(evidence: Evidence) -> Iterator[Found]:
    """By the order of events: a clip, then gradients handed to a reduction, in all steps that were looked at."""
    for one in evidence.ranks.values():
        looked = [step for step in one.steps if step.is_looked_at and step.all("clip")]
        places = [_place(step) for step in looked]
        if len(places) >= 2 and all(place is not None for place in places):
            yield _found(str(places[0]))
            return


def _place(step: Step) -> str | None:
    """The line that clips, if gradients are reduced after it and none before it."""
    clip = next((place for place, (kind, _) in enumerate(step.events) if kind == "clip"), -1)
    reduced = [
        place
        for place, (kind, fields) in enumerate(step.events)
        if kind == "call" and fields["op"] in _REDUCING and fields["what"].startswith("grad")
    ]
    backward = max((place for place, (kind, _) in enumerate(step.events) if kind == "backward"), default=-1)
    after = [place for place in reduced if place > clip]
    return str(step.events[clip][1]["line"]) if backward < clip and after and len(after) == len(reduced) else None


def _found(line: str) -> Found:
    return Found(
        cause="clipped-before-reduction",
        headline=f"Each rank clips its own gradients ({line}) before they are reduced: the reduced gradient is not clipped, and ranks with large gradients weigh less.",
        line=line,
        pattern="fix-behavior-logic",
        do="Reduce first, then clip: move `clip_grad_norm_` behind the reduction, right before `optimizer.step()`.",
        why="The mean of clipped gradients is not the clipped mean; one device would clip the whole batch's gradient.",
        title="Clipped before the reduction",
        explains=("weights-diverge", "weights-changed-on-some-ranks"),
    )  # fmt: skip
