"""A model wrapped in DDP whose gradients differ between ranks when the optimizer uses them: something went past the wrapper."""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence, RankEvidence, Record, Step
from phalanx.verification.found import Found
from phalanx.verification.reduction import Reduction, reductions
from phalanx.verification.replicas import SAME, averages_parameters, calls_of, comparable, replicas_of, spread

_WRITES = re.compile(r"\.grad(?:\.data)?(?:\.\w+_\(|\s*[-+*/]?=[^=])")
_CONSEQUENCES = (
    "weights-diverge",
    "initial-weights-differ",
    "weights-changed-on-some-ranks",
    "gradients-not-synchronised",
)


def check(evidence: Evidence) -> Iterator[Found]:
    """The first step at which it shows, for each optimizer and wrapper."""
    if averages_parameters(evidence):  # local SGD under DDP: declared by what it does
        return
    for optimizer in evidence.optimizers:
        told: set[str] = set()
        for number, steps in evidence.common_steps(optimizer):
            if not comparable(steps):
                continue
            wrapped = [one for one in replicas_of(evidence, optimizer) if one.wrapper is not None]
            apart = [one for one in reductions(wrapped, steps) if one.is_telling and not one.is_reduced]
            for found in _found(evidence, apart, number, steps):
                if found.cause not in told:
                    told.add(found.cause)
                    yield found


def _found(evidence: Evidence, apart: list[Reduction], number: int, steps: dict[int, Step]) -> Iterator[Found]:
    for wrapper in sorted({one.replica.wrapper for one in apart if one.replica.wrapper is not None}):
        mine = [one for one in apart if one.replica.wrapper == wrapper]
        ranks = mine[0].replica.ranks
        first = evidence.ranks[ranks[0]]
        told = first.wrapped[wrapper]
        declared = {str(name) for name in told["ignored"]}
        ignored = [one for one in mine if one.replica.parameter.name in declared]
        mine = [one for one in mine if one.replica.parameter.name not in declared]
        if ignored and _is_left_alone(evidence, ignored, steps):
            yield _ignored(ignored, number, told, steps)
        known = set(told["parameters"])
        late = [one for one in mine if one.replica.parameter.name not in known]
        rest = [one for one in mine if one.replica.parameter.name in known]
        if late:
            yield _added_late(late, number, told, steps)
        if rest:
            yield _unsynchronised(evidence, first, rest, number, told, steps)


def _names(found: list[Reduction]) -> str:
    names = [f"`{one.replica.parameter.name}`" for one in found]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _is_left_alone(evidence: Evidence, ignored: list[Reduction], steps: dict[int, Step]) -> bool:
    """All ranks start it alike, as replicas do, and nobody else reduces it: a part that is each rank's own starts with weights of its own."""
    before = {rank: step.before for rank, step in steps.items()}
    calls = [call for one in evidence.ranks.values() for call in calls_of(one.events)]
    by_hand = any(str(call["what"]).startswith("grad") and call["red"] for call in calls)
    return not by_hand and any(spread(one.replica.of(before)) <= SAME for one in ignored)


def _ignored(ignored: list[Reduction], number: int, told: Record, steps: dict[int, Step]) -> Found:
    return Found(
        cause="gradients-partly-reduced",
        headline=f"DDP was told to ignore {_names(ignored)}, which the optimizer trains: its gradient is never reduced and differs between "
        f"{name_ranks(ignored[0].replica.ranks)} at step {number + 1}.",
        line=told["line"],
        pattern="fix-distributed-api-usage",
        do="Take it off the ignore list (`_ddp_params_and_buffers_to_ignore`), or reduce its gradient yourself between backward and step.",
        why="All ranks start it alike and each trains it on its own data: the replicas drift apart.",
        title="A trained parameter is on DDP's ignore list",
        explains=_CONSEQUENCES,
        quotes=_quotes(ignored[0], steps),
    )


def _added_late(late: list[Reduction], number: int, told: Record, steps: dict[int, Step]) -> Found:
    return Found(
        cause="parameters-added-after-wrapping",
        headline=f"DDP does not know {_names(late)}: the gradient differs between {name_ranks(late[0].replica.ranks)} at step {number + 1}, "
        "because the parameter came into the model or began to need gradients after DDP was made.",
        line=told["line"],
        pattern="fix-model-construction",
        do="Finish the model first (add layers, unfreeze parameters), then wrap it in DistributedDataParallel, then make the optimizer.",
        why="DDP reduces the parameters that need gradients when it is made, and no others.",
        title="Parameters added after wrapping",
        explains=_CONSEQUENCES,
        quotes=_quotes(late[0], steps),
    )


def _changed_at(evidence: Evidence, step: Step) -> str:
    """The only line between the last backward pass and the step that writes into gradients."""
    name, _, last = step.line.rpartition(":")
    begins = [str(one["line"]).rpartition(":") for one in step.all("backward")]
    first = max((int(line) for file, _, line in begins if file == name and line.isdigit()), default=0)
    if not first or not last.isdigit():
        return ""
    found = [at for at in range(first + 1, int(last)) if _WRITES.search(evidence.source(f"{name}:{at}"))]
    return f"{name}:{found[0]}" if len(found) == 1 else ""


def _unsynchronised(
    evidence: Evidence, one: RankEvidence, rest: list[Reduction], number: int, told: Record, steps: dict[int, Step]
) -> Found:
    wrapper, ranks = int(told["m"]), rest[0].replica.ranks
    step = steps[ranks[0]]
    forwards = step.all("forward")
    models = {int(record["m"]): record for record in one.all("model")}
    past = [at for at in forwards if models.get(at["m"], {}).get("inside") == wrapper]
    through = [at for at in forwards if at["m"] == wrapper]
    backwards = step.all("backward")
    place = sorted(one.wrapped).index(wrapper)
    last = backwards[-1] if backwards else {}
    held_back = place < len(last.get("syncs", ())) and not last["syncs"][place]
    shown = f"{_names(rest)} differ{'s' if len(rest) == 1 else ''} between {name_ranks(ranks)} at step {number + 1}"
    if past and not through:
        return Found(
            cause="forward-bypasses-wrapper",
            headline=f"The forward pass goes past DDP ({past[0]['line']}), so gradients are never reduced: {shown}.",
            line=str(past[0]["line"]),
            pattern="fix-distributed-api-usage",
            do="Call the wrapped model, `model(x)`, not `model.module(x)` or the module that was wrapped.",
            why="DDP prepares the reduction in its own forward pass; without it, backward reduces nothing.",
            title="Forward pass past the wrapper",
            explains=_CONSEQUENCES,
            quotes=_quotes(rest[0], steps),
        )
    if not held_back and through and through[-1].get("syncs") is False:
        held_back, last = True, through[-1]  # DDP decides in its forward pass whether the backward pass will reduce
    if held_back:
        return Found(
            cause="no-sync-around-last-backward",
            headline=f"The last pass before step {number + 1} ({last['line']}) ran under no_sync, so gradients were not "
            f"reduced: {shown}.",
            line=str(last["line"]),
            pattern="fix-distributed-api-usage",
            do="Leave `no_sync()` for the last micro-batch before `optimizer.step()`, also for the last, shorter group of an epoch.",
            why="Under no_sync gradients stay local until a backward pass outside of it reduces all that was accumulated.",
            title="no_sync around the pass that should synchronise",
            explains=_CONSEQUENCES,
            quotes=_quotes(rest[0], steps),
        )
    line = _changed_at(evidence, step) if through else ""
    how = f"are changed on each rank after DDP has reduced them ({line})" if line else "are not the same on all ranks when the optimizer uses them"  # fmt: skip
    return Found(
        cause="gradients-not-synchronised",
        headline=f"DDP's gradients {how}: {shown}.",
        line=line or step.line,
        pattern="fix-distributed-api-usage",
        do="Let nothing change gradients on one rank alone between backward and step, and run every backward pass through the wrapped model.",
        why="Unequal gradients make the ranks' weights drift apart.",
        title="Gradients differ under DDP",
        explains=("weights-diverge", "initial-weights-differ", "weights-changed-on-some-ranks"),
        quotes=_quotes(rest[0], steps),
    )


def _quotes(one: Reduction, steps: dict[int, Step]) -> tuple[tuple[int | None, str, str], ...]:
    lines = {rank: step.line for rank, step in steps.items()}
    return one.replica.quotes({rank: step.grad for rank, step in steps.items()}, lines, "in the gradient that is used")
