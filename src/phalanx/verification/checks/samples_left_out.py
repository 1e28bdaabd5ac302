"""A sampler that deals the data out to more replicas than there are: the shares of the others are never seen."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.samples import data_parallel_ranks, passes_of


def check(evidence: Evidence) -> Iterator[Found]:
    """In training and in evaluation, each loader once."""
    ranks = data_parallel_ranks(evidence)
    told: set[str] = set()
    for rank in ranks:
        for one in passes_of(evidence.ranks[rank]):
            shares = {
                other.loader.get("told", {}).get("rank")
                for peer in ranks
                for other in passes_of(evidence.ranks[peer])
                if other.number == one.number
            }
            if one.replicas is None or one.replicas <= len(ranks) or one.made in told or len(shares) != len(ranks):
                continue
            told.add(one.made)
            length = one.loader.get("length")
            part = f"{len(ranks)} of {one.replicas} shares"
            what = f"{length} samples" if length else "its samples"
            yield Found(
                cause="samples-left-out",
                headline=f"The sampler of the loader at {one.made} deals {what} to {one.replicas} replicas, and {len(ranks)} ranks run: only {part} are ever {'trained on' if one.trains else 'evaluated'}.",
                line=one.made,
                pattern="fix-batch-size-or-data-partition",
                do="Take the number of replicas from the job: `DistributedSampler(dataset, num_replicas=dist.get_world_size(), rank=dist.get_rank())`.",
                why="The shares of ranks that do not exist are never seen.",
                title="A part of the data is never seen",
            )
