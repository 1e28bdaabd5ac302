"""A sampler that fills up the last shares with samples that are already dealt, and a metric that sums over all ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from phalanx.model import Confidence
from phalanx.verification.evaluation import calls_after, combines, evaluations
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.samples import data_parallel_ranks


def check(evidence: Evidence) -> Iterator[Found]:
    """Only where results are summed: who gathers them may cut off what is too much."""
    ranks = data_parallel_ranks(evidence)
    for passes in evaluations(evidence, ranks) if ranks else ():
        some = passes[ranks[0]]
        if some.replicas != len(ranks) or not all(one.is_whole for one in passes.values()):
            continue
        seen = Counter(index for one in passes.values() for index in one.ids)
        length = some.loader.get("length")
        twice = sum(count - 1 for count in seen.values())
        if None in seen or not length or not 0 < twice < len(ranks) or sum(seen.values()) != length + twice:
            continue
        if not combines({rank: calls_after(evidence.ranks[rank], one) for rank, one in passes.items()}):
            continue
        again = ", ".join(f"#{index}" for index, count in sorted(seen.items()) if count > 1)
        yield Found(
            cause="padding-in-metric",
            headline=f"{twice} of {length} evaluation samples count twice in the metric ({again}): the DistributedSampler of the loader at {some.made} fills up the shares of {len(ranks)} ranks.",
            line=some.made,
            pattern="fix-batch-size-or-data-partition",
            do="Count each sample once: deal the evaluation set with a sampler that does not pad (`Subset(dataset, range(rank, len(dataset), world_size))`), or gather the predictions and cut them to `len(dataset)` (Accelerate: `gather_for_metrics`).",
            why="The same number of samples for every rank is made by giving some twice.",
            title="Padding counts in a metric",
            confidence=Confidence.LIKELY,
        )  # fmt: skip
        return
