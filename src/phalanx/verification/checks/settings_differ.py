"""Replicas whose optimizers step with other learning rates or options, or from another state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.blame.quorum import odd_ones
from phalanx.model.ranks import name_ranks
from phalanx.verification.evidence import Evidence, Step
from phalanx.verification.found import Found
from phalanx.verification.reduction import reductions
from phalanx.verification.replicas import averages_parameters, comparable, replicas_of

_CONSEQUENCES = ("weights-diverge",)


def check(evidence: Evidence) -> Iterator[Found]:
    """Only of ranks that use the same gradients: they train one model."""
    if averages_parameters(evidence):
        return
    for optimizer in evidence.optimizers:
        held = evidence.holders(optimizer)
        for number, steps in evidence.common_steps(optimizer):
            if not comparable(steps) or not _is_one_model(evidence, optimizer, steps):
                continue
            rates = {rank: step.lr for rank, step in steps.items()}
            if len(set(rates.values())) > 1:
                yield _rates(evidence, optimizer, rates, number, steps)
                break
            options = {rank: str(held[rank].hyper) for rank in steps}
            if len(set(options.values())) > 1:
                yield _options(rates, {rank: held[rank].hyper for rank in steps}, held[min(steps)].line)
                break
            if (found := _states(steps)) is not None:
                yield found
                break


def _is_one_model(evidence: Evidence, optimizer: int, steps: dict[int, Step]) -> bool:
    """All gradients are equal, and not only because all ranks have the same data."""
    found = reductions(replicas_of(evidence, optimizer), steps)
    is_whole = all(len(one.replica.ranks) == len(steps) and one.is_reduced for one in found)
    return is_whole and any(one.is_telling or one.replica.wrapper is not None for one in found)


def _rates(evidence: Evidence, optimizer: int, rates: dict[int, Any], number: int, steps: dict[int, Step]) -> Found:
    odd = tuple(sorted(odd_ones(rates, rates)))
    shown = ", ".join(f"{_rate(rate)} on rank {rank}" for rank, rate in sorted(rates.items())[:4])
    line = next(iter(steps.values())).line
    paced = _schedules(evidence, number, optimizer, tuple(steps))
    made = evidence.ranks[min(steps)].optimizers[optimizer].line
    return Found(
        cause="learning-rates-differ",
        headline=f"The learning rate of step {number + 1} is not the same on all ranks: {shown}{paced[1]}.",
        line=paced[0] or (made if number == 0 else line),
        pattern="fix-learning-rate",
        do="Compute the rate from what is equal on all ranks, and step the scheduler on every rank alike"
        " (with a metric: from the value reduced over all ranks).",
        why="Equal gradients with unequal rates drive the ranks' weights apart.",
        title="Learning rates differ between ranks",
        culprits=odd,
        explains=_CONSEQUENCES,
        quotes=tuple((rank, steps[rank].line, f"learning rate {_rate(rate)}") for rank, rate in sorted(rates.items())[:4]),
    )  # fmt: skip


def _schedules(evidence: Evidence, number: int, optimizer: int, ranks: tuple[int, ...]) -> tuple[str, str]:
    """The line that steps a scheduler, and how often it did on each rank, where that differs."""
    done = {
        rank: [
            str(at["line"])
            for step in evidence.ranks[rank].steps_of(optimizer).values()
            if step.number <= number
            for at in step.all("schedule")
        ]
        for rank in ranks
    }
    if len({len(lines) for lines in done.values()}) < 2:
        return "", ""
    line = next(lines[0] for lines in done.values() if lines)
    counts = ", ".join(f"{len(lines)} × on rank {rank}" for rank, lines in sorted(done.items())[:4])
    return line, f"; the scheduler was stepped {counts} ({line})"


def _rate(rates: tuple[float | None, ...]) -> str:
    return "/".join(f"{rate:g}" if rate is not None else "none" for rate in dict.fromkeys(rates))


def _options(rates: dict[int, Any], options: Mapping[int, Any], line: str) -> Found:
    ranks = sorted(rates)
    return Found(
        cause="optimizer-options-differ",
        headline=f"The optimizers of {name_ranks(ranks)} have different options: {options[ranks[0]]} on rank {ranks[0]}, "
        f"{next(options[rank] for rank in ranks if options[rank] != options[ranks[0]])} on another.",
        line=line,
        pattern="fix-optimizer",
        do="Make the optimizer with the same options on every rank.",
        why="Equal gradients with unequal options drive the ranks' weights apart.",
        title="Optimizer options differ between ranks",
        explains=_CONSEQUENCES,
    )


def _states(steps: dict[int, Step]) -> Found | None:
    """Moments that only some ranks have before their first step: a checkpoint that was loaded on some of them."""
    before = {rank: step.state_before for rank, step in steps.items()}
    if any(state is None for state in before.values()) or len({str(state) for state in before.values()}) == 1:
        return None
    filled = [rank for rank, state in before.items() if any(state or ())]
    who = (
        f"only {name_ranks(filled)} {'has' if len(filled) == 1 else 'have'} one"
        if 0 < len(filled) < len(before)
        else "they differ"
    )
    return Found(
        cause="optimizer-states-differ",
        headline=f"The optimizers do not start from the same state before step 1: {who}.",
        line=next(iter(steps.values())).line,
        pattern="fix-consistency-between-devices",
        do="Load the optimizer's state on every rank, with `map_location`, from the same checkpoint.",
        why="The same gradient with other moments is another update.",
        title="Optimizer states differ between ranks",
        explains=_CONSEQUENCES,
    )
