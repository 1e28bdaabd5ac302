"""Gradients that the script reduces itself, by collectives: some are left out, it happens too late, or over the wrong ranks."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model import Confidence
from phalanx.model.ranks import all_of, name_ranks
from phalanx.verification.evidence import Evidence, Record, Step
from phalanx.verification.found import Found
from phalanx.verification.reduction import Reduction, factor_over, own_factor, reductions
from phalanx.verification.replicas import (
    SAME,
    averages_parameters,
    calls_of,
    comparable,
    is_model_parallel,
    replicas_of,
    spread,
)

_CONSEQUENCES = ("weights-diverge", "initial-weights-differ", "weights-changed-on-some-ranks")
Looked = list[tuple[int, dict[int, Step], list[Reduction]]]


def check(evidence: Evidence) -> Iterator[Found]:
    """Only where gradients are handed to collectives at all, and each rank starts from the same weights."""
    if averages_parameters(evidence) or is_model_parallel(evidence):
        return
    for optimizer in evidence.optimizers:
        plain = [one for one in replicas_of(evidence, optimizer) if one.wrapper is None and one.parameter.is_whole]
        looked: Looked = [
            (number, steps, [one for one in reductions(plain, steps) if one.is_telling])
            for number, steps in evidence.common_steps(optimizer)
            if comparable(steps)
        ]
        looked = [one for one in looked if one[2]]
        calls = [
            call
            for rank in evidence.ranks.values()
            for call in calls_of(rank.events)
            if call["what"].startswith("grad")
        ]
        if len(looked) >= 2 and calls:
            found = _judge(evidence, looked, calls)
            if found is not None:
                yield found


def _judge(evidence: Evidence, looked: Looked, calls: list[Record]) -> Found | None:
    never = set.intersection(*({one.replica.index for one in at if not one.is_reduced} for _, _, at in looked))
    number, steps, first = looked[0]
    apart = [one for one in first if one.replica.index in never and _starts_alike(one, steps)]
    if not apart:
        return None
    if len(apart) < len(first):
        together = [one for one in first if one.is_reduced]
        return _partly(apart, together, number, steps, calls) if together and own_factor(apart) is not None else None
    groups = {tuple(members) for rank in evidence.ranks.values() for members in rank.groups().values()}
    small = next((members for members in sorted(groups) if _is_over(members, apart)), None)
    if small is not None:
        return _wrong_group(apart, small, evidence, number, steps, calls)
    if own_factor(apart) is None:
        return _to_one(apart, number, steps, calls)
    alone = next((members for members in sorted(groups) if len(members) == 1 and _is_used(members, evidence)), None)
    if alone is not None:
        return _wrong_group(apart, alone, evidence, number, steps, calls)
    return _all_own(apart, number, steps, calls)


def _starts_alike(one: Reduction, steps: dict[int, Step]) -> bool:
    """A part that is each rank's own on purpose (experts, personal heads) starts with weights of its own."""
    return spread(one.replica.of({rank: step.before for rank, step in steps.items()})) <= SAME


def _is_used(members: tuple[int, ...], evidence: Evidence) -> bool:
    """Whether gradients are handed to collectives of this group."""
    one = evidence.ranks.get(members[0])
    names = {name for name, found in one.groups().items() if found == members} if one is not None else set()
    calls = calls_of(one.events) if one is not None else []
    return any(call["what"].startswith("grad") and call["group"] in names for call in calls)


def _is_over(members: tuple[int, ...], apart: list[Reduction]) -> bool:
    ranks = set(apart[0].replica.ranks)
    return set(members) < ranks and len(members) > 1 and factor_over(apart, members) is not None


def _found(cause: str, title: str, headline: str, line: str, do: str, why: str, one: Reduction, steps: dict[int, Step], *,
           pattern: str = "fix-distributed-api-usage", confidence: Confidence = Confidence.CONFIRMED) -> Found:  # fmt: skip
    lines = {rank: step.line for rank, step in steps.items()}
    quotes = one.replica.quotes(
        {rank: step.grad for rank, step in steps.items()}, lines, "in the gradient that is used"
    )
    return Found(
        cause,
        headline,
        line,
        pattern,
        do,
        why,
        title=title,
        quotes=quotes,
        explains=_CONSEQUENCES,
        confidence=confidence,
    )


def _partly(
    apart: list[Reduction], together: list[Reduction], number: int, steps: dict[int, Step], calls: list[Record]
) -> Found:
    names = ", ".join(f"`{one.replica.parameter.name}`" for one in apart[:3]) + (
        f" and {len(apart) - 3} more" if len(apart) > 3 else ""
    )
    return _found(
        "gradients-partly-reduced",
        "Some gradients are not reduced",
        f"{len(apart)} of {len(apart) + len(together)} gradients are never reduced: each of {name_ranks(apart[0].replica.ranks)} steps with its own {names}.",
        str(calls[0]["line"]),
        "Reduce the gradient of every parameter that the optimizer holds, or wrap the model in DistributedDataParallel.",
        "The parameters that are left out drift apart, and the ranks no longer train one model.",
        apart[0],
        steps,
        confidence=Confidence.LIKELY,
    )  # fmt: skip


def _wrong_group(
    apart: list[Reduction],
    small: tuple[int, ...],
    evidence: Evidence,
    number: int,
    steps: dict[int, Step],
    calls: list[Record],
) -> Found:
    return _found(
        "gradients-reduced-over-wrong-group",
        "Gradients are reduced over a part of the ranks",
        f"Gradients are reduced over {name_ranks(small)} only, not over {all_of(len(apart[0].replica.ranks), 'ranks')} that train the model: `{apart[0].replica.parameter.name}` "
        f"differs at step {number + 1}.",
        str(calls[0]["line"]),
        "Reduce over the group of all ranks that hold this model: leave `group=` out, or give the data-parallel group.",
        "Each part of the ranks trains a model of its own.",
        apart[0],
        steps,
        confidence=Confidence.LIKELY,
    )  # fmt: skip


def _all_own(apart: list[Reduction], number: int, steps: dict[int, Step], calls: list[Record]) -> Found:
    name = apart[0].replica.parameter.name
    ranks = name_ranks(apart[0].replica.ranks)
    call = calls[0]
    if all(one["what"] == "grad-copy" for one in calls):
        return _found(
            "reduced-gradients-not-used", "Reduced gradients are not used",
            f"Gradients are reduced in a copy ({call['line']}) that never comes back: {ranks} step with their own, first `{name}` at step {number + 1}.",
            str(call["line"]), "Copy the result back before the step: `p.grad.copy_(reduced)`, or reduce `p.grad` itself.",
            "The optimizer uses `p.grad`, not the copy.", apart[0], steps,
        )  # fmt: skip
    if _comes_late(steps[apart[0].replica.ranks[0]], calls):
        return _found(
            "gradients-reduced-after-the-step", "Gradients are reduced after the step",
            f"Gradients are reduced ({call['line']}) after the optimizer has used them: {ranks} step with their own, first `{name}` at step {number + 1}.",
            str(call["line"]), "Reduce gradients between `loss.backward()` and `optimizer.step()`.",
            "What is reduced after the step is cleared before the next one.", apart[0], steps, pattern="fix-behavior-logic",
        )  # fmt: skip
    return _found(
        "gradients-not-synchronised", "Gradients differ between ranks",
        f"{ranks[:1].upper()}{ranks[1:]} step with their own gradients although gradients are reduced at {call['line']}: first `{name}` at step {number + 1}.",
        str(call["line"]), "Reduce `p.grad` of every parameter over all ranks between `loss.backward()` and `optimizer.step()`, and wait for it.",
        "Each rank trains a model of its own.", apart[0], steps,
    )  # fmt: skip


def _comes_late(step: Step, calls: list[Record]) -> bool:
    """No gradient is handed to a collective between the backward pass and the step."""
    kinds = [kind if kind != "call" else fields["what"] for kind, fields in step.events]
    last = max((place for place, kind in enumerate(kinds) if kind == "backward"), default=-1)
    return not any(kind.startswith("grad") for kind in kinds[last + 1 :])


def _to_one(apart: list[Reduction], number: int, steps: dict[int, Step], calls: list[Record]) -> Found | None:
    if not any(call["op"] == "reduce" for call in calls):
        return None
    call = next(call for call in calls if call["op"] == "reduce")
    return _found(
        "gradients-reduced-to-one-rank", "Only one rank gets the reduced gradients",
        f"`dist.reduce` gives the reduced gradients to one rank only ({call['line']}): the others step with what is left in theirs, first "
        f"`{apart[0].replica.parameter.name}` at step {number + 1}.",
        str(call["line"]), "Use `dist.all_reduce`, or broadcast the updated weights after the step.",
        "The ranks' weights drift apart.", apart[0], steps,
    )  # fmt: skip
