"""Each rank clips its own gradients, and only then they are reduced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from phalanx.model import Confidence
from phalanx.verification.evidence import Evidence, Step
from phalanx.verification.found import Found
from phalanx.verification.reduction import rank_weights, reductions
from phalanx.verification.replicas import calls_of, comparable, replicas_of

_REDUCING = ("allreduce", "allreduce_coalesced", "reduce", "_reduce_scatter_base", "reduce_scatter")
_MORE = 1.05  # weights that differ by less are rounding
_FEWEST = 2  # steps


def check(evidence: Evidence) -> Iterator[Found]:
    """By the order of events: a clip, then gradients handed to a reduction, in all steps that were looked at."""
    for one in evidence.ranks.values():
        looked = [step for step in one.steps if step.is_looked_at and step.all("clip")]
        places = [_place(step) for step in looked]
        if len(places) >= 2 and all(place is not None for place in places):
            yield _found(str(places[0]))
            return
    yield from _by_hand(evidence)


def _by_hand(evidence: Evidence) -> Iterator[Found]:
    """Without a call that clips: each rank's own gradient is in the reduced one with another weight, and none with more than its share.

    Weights by the number of samples differ, too, but make one together.
    """
    for optimizer in evidence.optimizers:
        plain = [one for one in replicas_of(evidence, optimizer) if one.wrapper is None]
        seen = []
        for number, steps in evidence.common_steps(optimizer):
            found = [one for one in reductions(plain, steps) if one.is_telling and one.is_reduced]
            step = next(iter(steps.values()))
            weights = rank_weights(found) if comparable(steps) and not step.all("clip") else None
            if weights is not None and len(weights) == len(evidence.ranks):
                seen.append((number, weights, step))
        if len(seen) >= _FEWEST and any(_is_shrunk(weights) for _, weights, _ in seen):
            scaled = [one for one in seen if _is_shrunk(one[1])]
            if len(scaled) >= _FEWEST and all(_at_most_its_share(weights) for _, weights, _ in seen):
                yield _scaled_by_hand(evidence, *scaled[0])
                return


def _at_most_its_share(weights: list[float]) -> bool:
    """Of a mean, or of a sum: clipping only shrinks."""
    share = 1.0 if max(weights) > _MORE / len(weights) else 1 / len(weights)
    return all(0 < weight <= _MORE * share for weight in weights)


def _is_shrunk(weights: list[float]) -> bool:
    """Unequal, and together neither the one of a mean, weighted or not, nor one each."""
    total = sum(weights)
    is_mean = 1 / _MORE < total < _MORE
    return max(weights) > _MORE * min(weights) and not is_mean and total < len(weights) / _MORE


def _scaled_by_hand(evidence: Evidence, number: int, weights: list[float], step: Step) -> Found:
    calls = [call for call in calls_of(step.events) if call["what"].startswith("grad")]
    line = str(calls[0]["line"]) if calls else step.line
    shown = ", ".join(f"{weight:.2f} of rank {rank}'s" for rank, weight in enumerate(weights[:4]))
    return replace(
        _found(line),
        headline=f"Each rank scales its own gradients before they are reduced ({line}), as clipping by its own norm does: at step {number + 1} the reduced gradient is {shown}.",
        do="Reduce first, then clip by the norm of the reduced gradient: move the clipping behind the reduction.",
        confidence=Confidence.LIKELY,
    )  # fmt: skip


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
