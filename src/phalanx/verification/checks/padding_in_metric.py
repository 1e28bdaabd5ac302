"""A sampler that fills up the last shares with samples that are already dealt, and a metric that sums over all ranks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from phalanx.model import Confidence
from phalanx.verification.evaluation import calls_after, combines, evaluations
from phalanx.verification.evidence import Evidence, Record
from phalanx.verification.found import Found
from phalanx.verification.samples import data_parallel_ranks

_AROUND = 12  # lines
_CUTS = re.compile(
    r"\[\s*:|gather_for_metrics|unique|mask|dict|set\(|seen|ind(ex|ices)|idx|\bids?\b|truncat|dedup|valid|remainder"
)


def check(evidence: Evidence) -> Iterator[Found]:
    """Where results are summed; or gathered, and no line near it cuts off what is too much."""
    ranks = data_parallel_ranks(evidence)
    for passes in evaluations(evidence, ranks) if ranks else ():
        some = passes[ranks[0]]
        if some.replicas != len(ranks) or not all(one.is_whole for one in passes.values()):
            continue
        seen = Counter(index for one in passes.values() for index in one.ids)
        length = some.loader.get("length")
        twice = sum(count - 1 for count in seen.values())
        most = (
            len(ranks) if not some.loader["told"].get("in_batches") else len(ranks) * (some.loader["batch_size"] or 1)
        )
        if None in seen or not length or not 0 < twice < most or sum(seen.values()) != length + twice:
            continue
        calls = {rank: calls_after(evidence.ranks[rank], one) for rank, one in passes.items()}
        if not combines(calls) and not _gathers_all(evidence, calls[ranks[0]]):
            continue
        again = ", ".join(f"#{index}" for index, count in sorted(seen.items()) if count > 1)
        yield Found(
            cause="padding-in-metric",
            headline=f"{twice} of {length} evaluation samples count twice in the metric ({again}): the sampler of the loader at {some.made} fills up the shares of {len(ranks)} ranks.",
            line=some.made,
            pattern="fix-batch-size-or-data-partition",
            do="Count each sample once: deal the evaluation set with a sampler that does not pad (`Subset(dataset, range(rank, len(dataset), world_size))`), or gather the predictions and cut them to `len(dataset)` (Accelerate: `gather_for_metrics`).",
            why="The same number of samples for every rank is made by giving some twice.",
            title="Padding counts in a metric",
            confidence=Confidence.LIKELY,
        )  # fmt: skip
        return


def _gathers_all(evidence: Evidence, calls: Sequence[Record]) -> bool:
    """Outputs are gathered by a line of the user's own, and none of the lines around it drops or marks what came twice."""
    given = [call for call in calls if call["op"] != "broadcast"]  # Accelerate hands out random states at each pass
    gathers = [call for call in given if str(call["op"]).lstrip("_").startswith("allgather")]
    places = {str(call["line"]) for call in gathers if "gather" in evidence.source(str(call["line"]))}
    if not places or len(gathers) < len(given):
        return False
    for place in places:
        name, _, number = place.rpartition(":")
        around = range(max(1, int(number) - _AROUND), int(number) + _AROUND)
        if any(_CUTS.search(evidence.source(f"{name}:{line}")) for line in around):
            return False
    return True
