"""Replicas that train together and do not hold the same weights: from the start, or from some step on."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence, Step
from phalanx.verification.found import Found
from phalanx.verification.replicas import (
    FAR,
    SAME,
    Replica,
    Values,
    averages_parameters,
    comparable,
    replicas_of,
    spread,
)
from phalanx.verification.sources import changes_on_some_ranks


def check(evidence: Evidence) -> Iterator[Found]:
    """Only where gradients were equal: those that are not explain more."""
    if averages_parameters(evidence):
        return
    for optimizer in evidence.optimizers:
        at_first: Values | None = None
        for number, steps in evidence.common_steps(optimizer):
            at_first = at_first or {rank: step.before for rank, step in steps.items()}
            found = _look(evidence, optimizer, number, steps, at_first)
            if found is not None:
                yield found
                break


def _look(evidence: Evidence, optimizer: int, number: int, steps: dict[int, Step], at_first: Values) -> Found | None:
    if not comparable(steps):
        return None
    before: Values = {rank: step.before for rank, step in steps.items()}
    after: Values = {rank: step.after for rank, step in steps.items()}
    together = [one for one in replicas_of(evidence, optimizer) if _trains_together(one, steps)]
    apart = [one for one in together if spread(one.of(before)) > SAME]
    lines = {rank: step.line for rank, step in steps.items()}
    if apart:
        made = evidence.ranks[apart[0].ranks[0]].optimizers[optimizer].line
        if spread(apart[0].of(at_first)) > SAME:
            return _from_the_start(evidence, apart, len(together), before, made, lines)
        return _changed_outside(evidence, apart, steps, before, lines)
    drifted = [one for one in together if spread(one.of(after)) > SAME]
    return _from_a_step(drifted, number, after, lines) if drifted else None


def _trains_together(one: Replica, steps: dict[int, Step]) -> bool:
    """Gradients are equal although each rank's own were not."""
    grads = one.of({rank: step.grad for rank, step in steps.items()})
    if any(value is None for value in grads) or spread(grads) > SAME:
        return False
    own = one.of({rank: step.own for rank, step in steps.items()})
    return one.wrapper is not None or (all(value is not None for value in own) and spread(own) > FAR)


def _from_the_start(
    evidence: Evidence, apart: list[Replica], of: int, before: Values, made: str, lines: dict[int, str]
) -> Found:
    first = apart[0]
    odd = first.odd(before)
    who = name_ranks(odd) if odd else name_ranks(first.ranks)
    how = "started from other weights than the rest" if odd else "started from different weights"
    do = (
        "Do not change or reload the weights after the model is wrapped, or do it on every rank alike: DDP copies rank 0's"
        " weights only when it is made."
        if first.wrapper is not None
        else "Call `hvd.broadcast_parameters(model.state_dict(), root_rank=0)` before the first step (and"
        " `hvd.broadcast_optimizer_state(optimizer, root_rank=0)`)."
        if evidence.framework == "horovod"
        else "Give all ranks rank 0's weights before the first step, `for p in model.parameters(): dist.broadcast(p.data, src=0)`"
        " (buffers too), or wrap the model in DistributedDataParallel, which does it."
    )
    if (loaded := _loaded_on_some(evidence)) is not None:
        return _loaded(loaded, apart, of, before, lines, odd)
    under = changes_on_some_ranks(evidence, made.rpartition(":")[0]) if first.wrapper is not None else None
    because = f" (changed at {under[0]} under `if {under[1]}`)" if under is not None else _seeds(evidence)
    return Found(
        cause="initial-weights-differ",
        headline=f"{_capital(who)} {how}, although gradients are reduced: {len(apart)} of {of} parameters differ before "
        f"step 1, first `{first.parameter.name}`{because}.",
        line=under[0] if under is not None else made,
        pattern="fix-consistency-between-devices",
        do=do,
        why="Equal gradients on unequal weights never bring the ranks together: each trains a model of its own.",
        title="Replicas do not start from the same weights",
        culprits=odd,
        explains=("weights-diverge",),
        quotes=first.quotes(before, lines, "before step 1"),
    )


def _loaded_on_some(evidence: Evidence) -> tuple[tuple[int, ...], str] | None:
    """The ranks that put saved weights into a model before their first step, where others do not, and the line."""
    loads = {rank: [one for one in found.all("loaded") if one["step"] == 0] for rank, found in evidence.ranks.items()}
    most = max(map(len, loads.values()))
    who = tuple(rank for rank, found in loads.items() if len(found) == most)
    return (who, str(loads[who[0]][-1]["line"])) if 0 < len(who) < len(loads) else None


def _loaded(
    loaded: tuple[tuple[int, ...], str], apart: list[Replica], of: int, before: Values, lines: dict[int, str],
    odd: tuple[int, ...],
) -> Found:  # fmt: skip
    who, line = loaded
    return Found(
        cause="weights-loaded-on-some-ranks",
        headline=f"Only {name_ranks(who)} load{'s' if len(who) == 1 else ''} saved weights ({line}), after the ranks were given the same ones: {len(apart)} of {of} parameters "
        f"differ before step 1, first `{apart[0].parameter.name}`.",
        line=line,
        pattern="fix-consistency-between-devices",
        do="Load the checkpoint before the model is wrapped or broadcast, or load it on every rank.",
        why="Weights are copied from rank 0 once, when the model is wrapped or broadcast; equal gradients never bring the ranks together afterwards.",
        title="Weights loaded on some ranks only",
        culprits=odd,
        explains=("weights-diverge", "initial-weights-differ"),
        quotes=apart[0].quotes(before, lines, "before step 1"),
    )  # fmt: skip


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _seeds(evidence: Evidence) -> str:
    """What the script seeded PyTorch with last, where that differs or nothing is seeded."""
    last = {
        rank: str(seeds[-1]["value"])
        for rank, one in evidence.ranks.items()
        if (seeds := [seed for seed in one.all("seed") if seed["what"] == "torch"])
    }
    if not last:
        return " (no seed is set)"
    if len(set(last.values())) == 1:
        return ""
    return f" (seeded with {', '.join(f'{seed} on rank {rank}' for rank, seed in sorted(last.items())[:4])})"


def _changed_outside(
    evidence: Evidence, apart: list[Replica], steps: dict[int, Step], before: Values, lines: dict[int, str]
) -> Found:
    first, step = apart[0], next(iter(steps.values()))
    odd = first.odd(before)
    line, how = _change(evidence, steps)
    return Found(
        cause="weights-changed-on-some-ranks",
        headline=f"{how} before step {step.number + 1}: `{first.parameter.name}` differs between {name_ranks(first.ranks)}, and nothing brings the weights together again.",
        line=line or lines[first.ranks[0]],
        pattern="fix-consistency-between-devices",
        do="Load, reset or average weights on every rank alike, or broadcast them from rank 0 afterwards.",
        why="From then on the ranks train different models.",
        title="Weights change on some ranks only",
        culprits=odd,
        explains=("weights-diverge",),
        quotes=first.quotes(before, lines, f"before step {step.number + 1}"),
    )  # fmt: skip


def _change(evidence: Evidence, steps: dict[int, Step]) -> tuple[str, str]:
    """Where weights are changed beside the optimizer, and how, as far as that is known."""
    loads = {
        rank: [str(one["line"]) for one in evidence.ranks[rank].all("loaded") if one["step"] == step.step]
        for rank, step in steps.items()
    }
    who = [rank for rank, found in loads.items() if found]
    if who:
        line = loads[who[0]][-1]
        own = "weights of its own" if len(who) == len(steps) else "weights that the others do not load"
        return line, f"{_capital(name_ranks(who))} load{'s' if len(who) == 1 else ''} {own} ({line})"
    under = changes_on_some_ranks(evidence, next(iter(steps.values())).line.rpartition(":")[0])
    if under is not None:
        return under[0], f"Weights are changed on some ranks only ({under[0]}, under `if {under[1]}`)"
    return "", "Something other than the optimizer changed the weights, differently on each rank,"


def _from_a_step(drifted: list[Replica], number: int, after: Values, lines: dict[int, str]) -> Found:
    first = drifted[0]
    odd = first.odd(after)
    who = (
        f"{_capital(name_ranks(odd))} moved away from the rest"
        if odd
        else f"{_capital(name_ranks(first.ranks))} moved apart"
    )
    return Found(
        cause="weights-diverge",
        headline=f"{who} in step {number + 1} of the optimizer, although weights and gradients were equal before it: first "
        f"`{first.parameter.name}`.",
        line=lines[first.ranks[0]],
        pattern="fix-consistency-between-devices",
        do="Make the optimizer's step the same on all ranks: the same learning rate, options and state.",
        why="From then on the ranks train different models.",
        title="Replicas drift apart",
        culprits=odd,
        quotes=first.quotes(after, lines, f"after step {number + 1}"),
    )
