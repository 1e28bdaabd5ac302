"""Means over shares of different sizes that are averaged as if the shares were equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from phalanx.verification.evaluation import calls_after, evaluations, events_after
from phalanx.verification.evidence import Evidence, Record
from phalanx.verification.found import Found
from phalanx.verification.samples import Pass, data_parallel_ranks
from phalanx.verification.sources import divides_by_ranks

_UNEVEN = 0.1  # of the larger share
_BELOW = 4  # lines after the reduction in which a number may be divided


def check(evidence: Evidence) -> Iterator[Found]:
    """The shares differ, single numbers are summed over the ranks, and the sum is divided by their number."""
    ranks = data_parallel_ranks(evidence)
    for passes in evaluations(evidence, ranks) if ranks else ():
        counts = {rank: len(one.samples) for rank, one in passes.items()}
        if max(counts.values()) - min(counts.values()) <= max(1, _UNEVEN * max(counts.values())):
            continue
        where = _averaged(evidence, passes)
        if where is None:
            continue
        shares = ", ".join(f"{count} on rank {rank}" for rank, count in sorted(counts.items())[:4])
        yield Found(
            cause="metric-averaged-unweighted",
            headline=f"The ranks' means are averaged with equal weight ({where}), although the ranks evaluate different numbers of samples ({shares}).",
            line=where,
            pattern="fix-behavior-logic",
            do="Sum the totals and the counts over the ranks, then divide: `dist.all_reduce(torch.tensor([total, count]))`, `total / count`.",
            why="A sample of a small share weighs more than one of a large share.",
            title="A mean of unequal shares",
            explains=("metric-of-one-share",),
        )  # fmt: skip
        return


def _averaged(evidence: Evidence, passes: Mapping[int, Pass]) -> str | None:
    """The line that divides by the number of ranks, behind reductions of single numbers only."""
    rank, one = next(iter(passes.items()))
    calls = calls_after(evidence.ranks[rank], one)
    gathers = bool(calls) and all(str(call["op"]).lstrip("_").startswith(("allgather", "gather")) for call in calls)
    if not calls or (not gathers and any(call["op"] != "allreduce" or call["n"] != 1 for call in calls)):
        return None
    events = events_after(evidence.ranks[rank], one)
    seen = [str(fields["line"]) for kind, fields in events if kind == "divided" and not fields["loss"]]
    return next((place for place in (*seen, *_below(calls)) if divides_by_ranks(evidence, place)), None)


def _below(calls: Sequence[Record]) -> Iterator[str]:
    for call in calls:
        name, _, number = str(call["line"]).rpartition(":")
        if number.isdigit():
            yield from (f"{name}:{int(number) + offset}" for offset in range(_BELOW + 1))
