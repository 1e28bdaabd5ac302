"""Most of the parameters that an optimizer holds never get a gradient, or get one and never move."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.verification.evidence import Evidence, RankEvidence, Step
from phalanx.verification.found import DIVERGES, Found

_FEWEST = 3
_SHARE = 0.5  # a head or a pooler that is not used is common and harms nobody


def check(evidence: Evidence) -> Iterator[Found]:
    """On all ranks: what only some ranks lack shows in the comparison of gradients."""
    for optimizer in evidence.optimizers:
        shut = _group_without_gradients(evidence, optimizer)
        if shut is not None:
            yield shut
            continue
        each = [_idle(one, optimizer) for one in evidence.ranks.values() if one.steps_of(optimizer)]
        for place, make in enumerate((_without_gradient, _without_movement)):
            common = set.intersection(*(found[place] for found in each)) if each else set()
            one = next(iter(evidence.ranks.values()))
            held = one.optimizers.get(optimizer)
            trainable = (
                [index for index, parameter in enumerate(held.parameters) if parameter.trainable] if held else []
            )
            if held is not None and len(common) >= max(1, _SHARE * len(trainable)):
                yield make([held.parameters[index].name for index in sorted(common)], len(trainable), held.line)
                break


def _group_without_gradients(evidence: Evidence, optimizer: int) -> Found | None:
    """A group with a learning rate of its own is meant to be trained, also where DDP was told to expect unused parameters.

    What another part of the script writes (a momentum encoder) moves, and is left alone.
    """
    one = evidence.ranks[min(evidence.ranks)]
    held = one.optimizers.get(optimizer)
    lines = {name: str(record["line"]) for record in one.all("shut") for name in record["names"]}
    if held is None or not lines:
        return None
    groups: dict[int, list[int]] = {}
    for index, parameter in enumerate(held.parameters):
        if parameter.trainable:
            groups.setdefault(parameter.group, []).append(index)
    for indices in groups.values() if len(groups) > 1 else ():
        names = [held.parameters[index].name for index in indices]
        if any(name not in lines for name in names) or not _all_idle(evidence, optimizer, indices):
            continue
        line = lines[names[0]]
        return Found(
            cause="parameters-without-gradient",
            headline=f"`{names[0]}`{f' and {len(names) - 1} more' if len(names) > 1 else ''} never get{'s' if len(names) == 1 else ''} a gradient, although the optimizer at {held.line} is to train them: "
            f"the layers are called without gradients at {line} (`torch.no_grad()`).",
            line=line,
            pattern="fix-model-construction",
            do="Call these layers outside of `no_grad()`/`inference_mode()`; if they are to stay as they are, freeze them (`requires_grad_(False)`) and leave them out of the optimizer.",
            why="Their weights stay as they were at the start, and `find_unused_parameters=True` keeps DDP from saying so.",
            symptom=DIVERGES,
            title="Trained layers are called without gradients",
        )  # fmt: skip
    return None


def _all_idle(evidence: Evidence, optimizer: int, indices: list[int]) -> bool:
    """None of them gets a gradient or moves, on any rank, while others get one."""
    for one in evidence.ranks.values():
        steps = [step for step in one.steps_of(optimizer).values() if step.is_looked_at and not step.closure]
        if len(steps) < _FEWEST or len(one.optimizers[optimizer].parameters) <= max(indices):
            return False
        if any(
            _has_gradient(step, index) or step.before[index] != steps[0].before[index]
            for step in steps
            for index in indices
        ):
            return False
        if not any(value is not None for step in steps for value in step.grad):
            return False
    return True


def _idle(one: RankEvidence, optimizer: int) -> tuple[set[int], set[int]]:
    """Parameters without any gradient beside others that have one; and those with one that never change."""
    steps = [
        step for step in one.steps_of(optimizer).values() if step.is_looked_at and not step.closure and not step.skipped
    ]
    held = one.optimizers.get(optimizer)
    if held is None or len(steps) < _FEWEST or any(record["find_unused"] for record in one.wrapped.values()):
        return set(), set()
    known = [
        index
        for index, parameter in enumerate(held.parameters)
        if parameter.trainable and parameter.model is not None and parameter.model >= 0
    ]
    if not any(_has_gradient(step, index) for step in steps for index in known):
        return set(), set()  # another check's
    without = {index for index in known if not any(_has_gradient(step, index) for step in steps)}
    still = {
        index
        for index in known
        if all(
            _has_gradient(step, index)
            and step.before[index] == step.after[index]
            and _rate(step, held.parameters[index].group)
            for step in steps
        )
    }
    return without, still


def _has_gradient(step: Step, index: int) -> bool:
    value = step.grad[index] if index < len(step.grad) else None
    return value is not None and value[2] > 0


def _rate(step: Step, group: int) -> float:
    return step.lr[group] or 0.0 if group < len(step.lr) else 0.0


def _without_gradient(names: list[str], of: int, line: str) -> Found:
    return Found(
        cause="parameters-without-gradient",
        headline=f"{len(names)} of {of} trainable parameters never get a gradient, on no rank and at no step: first `{names[0]}`.",
        line=line,
        pattern="fix-model-construction",
        do="Look for a `detach()`, a `no_grad()` block or a converted tensor between these layers and the loss; freeze what is not to be trained (`requires_grad_(False)`).",
        why="Their weights stay as they were at the start.",
        symptom=DIVERGES,
        title="Parameters without gradient",
    )  # fmt: skip


def _without_movement(names: list[str], of: int, line: str) -> Found:
    return Found(
        cause="weights-do-not-move",
        headline=f"{len(names)} of {of} trainable parameters get gradients but no step changes them: first `{names[0]}`.",
        line=line,
        pattern="fix-optimizer",
        do="Keep the weights that the optimizer updates in float32 (autocast for the rest), or raise the learning rate: updates are lost in rounding.",
        why="A step below the precision of the weights leaves them as they are.",
        symptom=DIVERGES,
        title="Weights do not move",
    )  # fmt: skip
