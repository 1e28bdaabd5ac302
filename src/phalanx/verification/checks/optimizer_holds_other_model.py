"""An optimizer whose parameters no backward pass reaches: it was made for a model that is not the one that is trained."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence, Optimizer, RankEvidence, Step
from phalanx.verification.found import DIVERGES, Found

_FEWEST = 2


def check(evidence: Evidence) -> Iterator[Found]:
    """All parameters without a gradient at all steps, or some that belong to no model any more."""
    for optimizer in evidence.optimizers:
        idle = {rank: steps for rank, one in evidence.ranks.items() if (steps := _idle(one, optimizer))}
        if idle and len(idle) == sum(1 for one in evidence.ranks.values() if one.steps_of(optimizer)):
            rank = min(idle)
            yield _nothing(
                evidence, evidence.ranks[rank], evidence.ranks[rank].optimizers[optimizer], idle[rank], tuple(idle)
            )
            continue
        for one in evidence.ranks.values():
            orphans = _orphans(one, optimizer)
            if orphans:
                yield _some(one, one.optimizers[optimizer], orphans)
                break


def _looked(one: RankEvidence, optimizer: int) -> list[Step]:
    return [step for step in one.steps_of(optimizer).values() if step.is_looked_at and not step.closure]


def _idle(one: RankEvidence, optimizer: int) -> list[Step]:
    """Steps without a single gradient, if all are and backward passes ran."""
    steps = _looked(one, optimizer)
    held = one.optimizers.get(optimizer)
    if held is None or len(steps) < _FEWEST or not any(parameter.trainable for parameter in held.parameters):
        return []
    is_idle = all(not any(value is not None for value in step.grad) for step in steps)
    return steps if is_idle and any(step.all("backward") for step in steps) else []


def _orphans(one: RankEvidence, optimizer: int) -> list[int]:
    """Parameters that lie in no model that is called, and never get a gradient, beside others that do."""
    steps, held = _looked(one, optimizer), one.optimizers.get(optimizer)
    if held is None or len(steps) < _FEWEST or all(parameter.model is None for parameter in held.parameters):
        return []
    return [
        index
        for index, parameter in enumerate(held.parameters)
        if parameter.model is None
        and parameter.trainable
        and all(step.grad[index] is None for step in steps if step.grad)
    ]


def _kept_away(evidence: Evidence, held: Optimizer, name: str, ranks: tuple[int, ...]) -> Found:
    """It holds the right parameters, and backward passes bring them nothing."""
    file = held.line.rpartition(":")[0]
    off = [number for number, text in enumerate(evidence.lines(file), 1) if "set_requires_gradient_sync(False" in text]
    line = f"{file}:{off[0]}" if off else held.line
    why = (
        f"`set_requires_gradient_sync(False)` ({line}) keeps them from the shards" if off else "nothing puts them there"
    )
    return Found(
        cause="parameters-without-gradient",
        headline=f"The optimizer ({held.line}) steps without a single gradient on {name_ranks(ranks)}, although it holds the parameters of the `{name}` that is trained: {why}, and the weights never change.",
        line=line,
        pattern="fix-distributed-api-usage",
        do="Call `model.set_requires_gradient_sync(True)` before the last backward pass of each step."
        if off
        else "Run the backward pass through the parameters that the optimizer holds, and leave gradient synchronisation on for the last pass before the step.",
        why="Without a reduction the gradients stay in unsharded buffers that no optimizer sees.",
        symptom=DIVERGES,
        title="No gradient reaches the optimizer",
    )  # fmt: skip


def _nothing(
    evidence: Evidence, one: RankEvidence, held: Optimizer, steps: list[Step], ranks: tuple[int, ...]
) -> Found:
    called = next((fields for step in steps for fields in step.all("forward")), None)
    models = {int(record["m"]): record for record in one.all("model")}
    name = models.get(called["m"], {}).get("cls", "model") if called is not None else "model"
    if called is not None and all(parameter.model == called["m"] for parameter in held.parameters):
        return _kept_away(evidence, held, name, ranks)
    return Found(
        cause="optimizer-holds-other-model",
        headline=f"The optimizer ({held.line}) steps without a single gradient on {name_ranks(ranks)}: none of its {len(held.parameters)} "
        f"parameters is one of the `{name}` that is trained, whose weights never change.",
        line=held.line,
        pattern="fix-optimizer",
        do="Make the optimizer from the model that is trained, after it was moved, wrapped, sharded or replaced: `Optimizer(model.parameters())`.",
        why="It updates tensors that no forward pass uses any more.",
        symptom=DIVERGES,
        title="Optimizer holds another model",
    )  # fmt: skip


def _some(one: RankEvidence, held: Optimizer, orphans: list[int]) -> Found:
    shape = "×".join(map(str, held.parameters[orphans[0]].shape)) or "1"
    return Found(
        cause="optimizer-holds-replaced-parameters",
        headline=f"{len(orphans)} of {len(held.parameters)} parameters of the optimizer ({held.line}) are no longer part of the model that is trained "
        f"and get no gradient, first one of {shape}: a layer was replaced after the optimizer was made.",
        line=held.line,
        pattern="fix-optimizer",
        do="Replace layers first, then make the optimizer.",
        why="The new layer is in no optimizer and keeps its first random weights.",
        symptom=DIVERGES,
        title="Optimizer holds replaced parameters",
    )  # fmt: skip
