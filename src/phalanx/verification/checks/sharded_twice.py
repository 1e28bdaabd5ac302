"""Data that are already cut to the rank's own part, and dealt out by a sampler once more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.samples import Pass, data_parallel_ranks, passes_of, side_by_side

_FEWEST = 8  # samples of the same index that two ranks must have seen


def check(evidence: Evidence) -> Iterator[Found]:
    """Samplers that deal one dataset among the ranks, over datasets that have no sample in common."""
    ranks = data_parallel_ranks(evidence)
    for passes in side_by_side(evidence, ranks, training=True) if ranks else ():
        shares = {one.loader.get("told", {}).get("rank") for one in passes.values()}
        if any(one.replicas != len(ranks) for one in passes.values()) or len(shares) != len(ranks):
            continue
        if not (_hold_others(passes) or _mean_others(evidence, passes)):
            continue
        some = passes[ranks[0]]
        own, length = len(set(some.ids)), some.loader.get("length")
        seen = f" (rank {ranks[0]}: {own} of the {length} that it holds)" if length else ""
        yield Found(
            cause="data-sharded-twice",
            headline=f"The data are dealt out twice: the ranks' datasets have no sample in common, and the sampler of the loader at {some.made} deals each of them to {len(ranks)} ranks again: 1/{len(ranks)} of the data is trained on in an epoch{seen}.",
            line=some.made,
            pattern="fix-batch-size-or-data-partition",
            do="Keep one of the two: give every rank the whole dataset and let the DistributedSampler deal it out, or keep the rank's part and use a plain loader (`shuffle=True`).",
            why="Each rank's sampler leaves out what it takes for the other ranks' share of the same data.",
            title="Data dealt out twice",
        )  # fmt: skip
        return


def _hold_others(passes: Mapping[int, Pass]) -> bool:
    """By what the datasets hold."""
    held = [one.loader.get("content") for one in passes.values()]
    if any(not one or len(one) < _FEWEST for one in held):
        return False
    sets = [set(one or ()) for one in held]
    return all(not a & b for place, a in enumerate(sets) for b in sets[place + 1 :])


def _mean_others(evidence: Evidence, passes: Mapping[int, Pass]) -> bool:
    """By the samples of all epochs: an index gives the same sample on a rank each time, and another one on each rank."""
    looks: list[dict[int, int]] = []
    for rank, one in passes.items():
        rows: dict[int, set[int]] = {}
        for each in passes_of(evidence.ranks[rank]):
            if each.number == one.number:
                for index, row in each.samples:
                    if index is None:
                        return False
                    rows.setdefault(index, set()).add(row)
        if any(len(found) > 1 for found in rows.values()):
            return False  # augmented: looks say nothing
        looks.append({index: next(iter(found)) for index, found in rows.items()})
    first, *rest = looks
    for other in rest:
        common = set(first) & set(other)
        if len(common) < _FEWEST or any(first[index] == other[index] for index in common):
            return False
        if set(first.values()) & set(other.values()):
            return False  # the same samples in another order
    return True
