"""Gradients that are reduced, but by a factor: summed and not averaged, divided twice, or accumulated and not divided."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from phalanx.model import Confidence
from phalanx.model.ranks import all_of
from phalanx.verification.evidence import Evidence, Record, Step
from phalanx.verification.found import Found
from phalanx.verification.reduction import factor_of, reductions
from phalanx.verification.replicas import calls_of, comparable, replicas_of
from phalanx.verification.sources import RANKS, divides_by_ranks

_CLOSE = 0.02
_ABOVE = 6  # lines
_TIMES_RANKS = re.compile(rf"loss.*\*=?\s*\(?(?:[\w.]*{RANKS})|{RANKS}[\w.()]*\s*\*\s*\w*loss", re.IGNORECASE)
_FEWEST = 2  # steps that must agree


@dataclass(frozen=True)
class Scale:
    """One step: by what the used gradient is the mean of the ranks' own, and how the losses behind it are made up."""

    size: int  # ranks that the gradient was reduced over
    factor: float
    passes: int  # backward passes
    loss_factor: float | None
    is_mean: bool
    lines: frozenset[str]  # of the backward passes
    accumulates: bool  # each pass has a batch of its own, or was kept from synchronising
    divided: str = ""  # the line that divides the loss by the number of ranks


def check(evidence: Evidence) -> Iterator[Found]:
    """What all steps that were looked at agree on."""
    for optimizer in evidence.optimizers:
        seen = [
            (steps, scale)
            for _, steps in evidence.common_steps(optimizer)
            if comparable(steps) and (scale := _scale(evidence, optimizer, steps)) is not None
        ]
        if len(seen) < _FEWEST:
            continue
        scales = [scale for _, scale in seen]
        found = _judge(evidence, seen[0][0], scales)
        if found is not None:
            yield found


def _scale(evidence: Evidence, optimizer: int, steps: dict[int, Step]) -> Scale | None:
    found = [one for one in reductions(replicas_of(evidence, optimizer), steps) if one.is_telling and one.is_reduced]
    factor = factor_of(found)
    if factor is None:
        return None
    step = next(iter(steps.values()))
    backwards = step.all("backward")
    factors = {one["factor"] for one in backwards}
    unscaled = next((one["scale"] for one in step.all("scaler")), 1.0)
    clipped = _clipped(step)
    known = factors.pop() if len(factors) == 1 else None
    return Scale(
        size=len(found[0].replica.ranks),
        factor=factor * unscaled / clipped,
        passes=len(backwards),
        loss_factor=known / unscaled if known is not None else None,
        is_mean=bool(backwards) and all(one["kind"] == "mean" for one in backwards),
        lines=frozenset(str(one["line"]) for one in backwards),
        accumulates=_accumulates(evidence, step, backwards),
        divided=next((str(one["line"]) for one in step.all("divided") if one["loss"]), ""),
    )


def _accumulates(evidence: Evidence, step: Step, backwards: list[Record]) -> bool:
    """Several passes are one batch in parts, and not several losses that belong together."""
    if any(not all(one["syncs"]) for one in backwards[:-1] if one["syncs"]):
        return True
    batches: dict[int, int] = {}
    for one in evidence.ranks[min(evidence.ranks)].all("batch"):
        if one["step"] == step.step:
            batches[one["l"]] = batches.get(one["l"], 0) + 1
    return len(backwards) in batches.values() or _is_said(evidence, step, backwards)


def _is_said(evidence: Evidence, step: Step, backwards: list[Record]) -> bool:
    """The lines before the step or around the backward pass name it, or count passes by a remainder."""
    around = [(step.line, range(-4, 1)), *((str(one["line"]), range(-6, 1)) for one in backwards[:1])]
    for place, offsets in around:
        name, _, number = place.rpartition(":")
        if not number.isdigit():
            continue
        for offset in offsets:
            text = evidence.source(f"{name}:{max(1, int(number) + offset)}").lower()
            if "accum" in text or "micro" in text or (text.startswith("if ") and "%" in text):
                return True
    return False


def _clipped(step: Step) -> float:
    """By what clipping shrank the gradients."""
    total = 1.0
    for one in step.all("clip"):
        if one["norm"] and one["most"] and one["norm"] > one["most"]:
            total *= one["most"] / (one["norm"] + 1e-6)
    return total


def _is(value: float, other: float) -> bool:
    return abs(value - other) <= _CLOSE * other


def _judge(evidence: Evidence, steps: dict[int, Step], scales: list[Scale]) -> Found | None:
    if any(not one.is_mean or one.loss_factor is None for one in scales):
        return None
    return _wrong_by_ranks(evidence, steps, scales) or _wrong_by_passes(steps, scales)


def _wrong_by_ranks(evidence: Evidence, steps: dict[int, Step], scales: list[Scale]) -> Found | None:
    """Gradients or loss are too large or too small by the number of ranks."""
    size = scales[0].size
    if _is_undivided(scales) or all(_is(_loss(one) * one.passes, 1.0) for one in scales):
        if all(_is(one.factor, size) for one in scales):
            return _summed(evidence, steps, size)
        if all(_is(one.factor, 1 / size) for one in scales):
            return _divided_twice(evidence, steps, size)
    if any(one.passes != 1 or not _is(one.factor, 1.0) for one in scales):
        return None
    line = scales[0].divided
    if all(one.divided and _is(_loss(one) * size, 1.0) for one in scales) and divides_by_ranks(evidence, line):
        return _divided_twice(evidence, steps, size, line)
    if size > 1 and all(_is(_loss(one), size) for one in scales):
        line = _multiplied_at(evidence, next(iter(steps.values())))
        return _multiplied(line, size) if line else None
    return None


def _wrong_by_passes(steps: dict[int, Step], scales: list[Scale]) -> Found | None:
    """The loss of an accumulated step is not divided by its passes, or twice."""
    accumulated = [one for one in scales if one.passes > 1 and one.accumulates and len(one.lines) == 1]
    if len(accumulated) < max(_FEWEST, len(scales) / 2) or not all(_is(one.factor, 1.0) for one in accumulated):
        return None
    if all(_is(_loss(one) * one.passes**2, 1.0) for one in accumulated):
        return _accumulation_divided_twice(accumulated)
    return _not_divided(steps, accumulated) if _is_undivided(scales) else None


def _is_undivided(scales: list[Scale]) -> bool:
    return all(_is(_loss(one), 1.0) for one in scales)


def _loss(one: Scale) -> float:
    return one.loss_factor or 0.0


def _multiplied_at(evidence: Evidence, step: Step) -> str:
    """The line before the backward pass that multiplies by the number of ranks; none where outputs of others are in the loss."""
    first = next((place for place, (kind, _) in enumerate(step.events) if kind == "forward"), 0)
    if any("gather" in str(call["op"]) for call in calls_of(step.events[first:])):
        return ""
    name, _, number = str(step.all("backward")[0]["line"]).rpartition(":")
    places = [f"{name}:{int(number) - back}" for back in range(_ABOVE)] if number.isdigit() else []
    return next((place for place in places if _TIMES_RANKS.search(evidence.source(place))), "")


def _multiplied(line: str, size: int) -> Found:
    return Found(
        cause="loss-multiplied-by-ranks",
        headline=f"The loss is multiplied by the number of ranks ({line}), and the gradients are averaged: they are {size}.00 × the gradient of the mean loss over {all_of(size, 'ranks')}.",
        line=line,
        pattern="fix-loss-function",
        do="Take the factor out: the average over ranks of each rank's mean loss is the mean over the global batch.",
        why="Every update is as large as with a learning rate that many times higher.",
        title="Loss multiplied by the number of ranks",
        confidence=Confidence.LIKELY,
    )  # fmt: skip


def _reduced_at(evidence: Evidence, steps: dict[int, Step]) -> str:
    """The line that hands gradients to a collective, else that of the step."""
    for step in steps.values():
        for call in calls_of(step.events):
            if call["what"].startswith("grad") or (call["op"] == "allreduce" and call["n"] > 1):
                return str(call["line"])
    return next(iter(steps.values())).line


def _summed(evidence: Evidence, steps: dict[int, Step], size: int) -> Found:
    by_hand = [
        call for call in calls_of(next(iter(steps.values())).events) if call["what"] == "grad" and call["red"] == "SUM"
    ]
    line = str(by_hand[0]["line"]) if by_hand else _reduced_at(evidence, steps)
    again = by_hand and all(one.wrapped for one in evidence.ranks.values())
    how = (
        f"DDP has averaged them, and {line} sums them over the ranks once more"
        if again
        else "they are summed, not averaged"
    )
    return Found(
        cause="gradients-summed-not-averaged",
        headline=f"All gradients are {size}.00 × the mean over the {size} ranks: {how}.",
        line=line,
        pattern="fix-distributed-api-usage",
        do="Divide by the number of ranks after the reduction, `p.grad /= dist.get_world_size()`, or reduce with `op=dist.ReduceOp.AVG`"
        " (NCCL); with DDP leave the reduction to it.",
        why="Each rank's loss is a mean over its own batch, so the sum makes every update as large as with a learning rate that many times higher.",
        title="Gradients summed, not averaged",
        quotes=((None, next(iter(steps.values())).line, f"used gradient = {size}.00 × mean of the ranks' own, at every step looked at"),),
    )  # fmt: skip


def _divided_twice(evidence: Evidence, steps: dict[int, Step], size: int, divided: str = "") -> Found:
    how = (
        f"the loss is divided by the number of ranks ({divided}), and the reduction averages once more"
        if divided
        else "they are divided by the number of ranks twice"
    )
    return Found(
        cause="gradients-divided-twice",
        headline=f"All gradients are 1/{size} of the mean over the {size} ranks: {how}.",
        line=divided or next(iter(steps.values())).line,
        pattern="fix-distributed-api-usage",
        do="Take the division by the world size out: DDP (and ReduceOp.AVG) has already averaged the gradients.",
        why="Every update is as small as with a learning rate that many times lower.",
        title="Gradients divided twice",
        quotes=((None, next(iter(steps.values())).line, f"used gradient = 1/{size} × mean of the ranks' own, at every step looked at"),),
    )  # fmt: skip


def _accumulation_divided_twice(scales: list[Scale]) -> Found:
    passes, line = scales[0].passes, next(iter(scales[0].lines))
    return Found(
        cause="accumulation-divided-twice",
        headline=f"The loss is divided by the {passes} accumulated passes twice ({line}): each pass brings 1/{passes**2} of its gradient, and updates are {passes} × too small.",
        line=line,
        pattern="fix-loss-function",
        do=f"Divide by {passes} once: `accelerator.backward` and the trainers divide the loss themselves; take the division out of the script.",
        why=f"{passes} passes with 1/{passes} each make the mean over the whole batch.",
        title="Accumulated gradients are divided twice",
        confidence=Confidence.LIKELY,
    )  # fmt: skip


def _not_divided(steps: dict[int, Step], scales: list[Scale]) -> Found:
    passes = scales[0].passes
    line = next(iter(scales[0].lines))
    return Found(
        cause="accumulation-not-divided",
        headline=f"Gradients of {passes} backward passes are added up for each step and the loss is not divided by {passes} ({line}): "
        f"updates are {passes} × too large.",
        line=line,
        pattern="fix-loss-function",
        do=f"Divide the loss before backward: `(loss / {passes}).backward()`.",
        why="The loss is a mean over one micro-batch; the sum over several is that many times the mean over the whole batch.",
        title="Accumulated gradients are not divided",
        confidence=Confidence.LIKELY,
    )
