"""Ranks that divide the data into training and evaluation differently: one trains on what another evaluates."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.samples import data_parallel_ranks, passes_of

_PART = 0.2
_FEWEST = 4


def check(evidence: Evidence) -> Iterator[Found]:
    """Where each rank keeps its own two parts apart, so that the mixture comes from the ranks."""
    ranks = data_parallel_ranks(evidence)
    trained: dict[int, set[int]] = {}
    held: dict[int, set[int]] = {}
    lines: dict[int, str] = {}
    for rank in ranks:
        for one in passes_of(evidence.ranks[rank]):
            rows = {row for _, row in one.samples}
            if one.trains:
                trained.setdefault(rank, set()).update(rows)
            elif one.evals:
                held.setdefault(rank, set()).update(rows)
                lines.setdefault(rank, one.made)
    if len(trained) < len(ranks) or len(held) < len(ranks) or any(trained[rank] & held[rank] for rank in ranks):
        return
    for rank in ranks:
        others = set().union(*(trained[other] for other in ranks if other != rank)) & held[rank]
        if len(held[rank]) >= _FEWEST and len(others) >= max(_FEWEST, _PART * len(held[rank])):
            yield Found(
                cause="evaluation-data-trained-on",
                headline=f"{len(others)} of the {len(held[rank])} samples that rank {rank} evaluates (loader at {lines[rank]}) are trained on by another rank: the ranks divide the data differently.",
                line=lines[rank],
                pattern="fix-consistency-between-devices",
                do="Divide alike on all ranks: `random_split(dataset, lengths, generator=torch.Generator().manual_seed(0))`, before the sampler deals out the parts.",
                why="Through the reduced gradients the model has seen the samples that it is evaluated on.",
                title="Evaluation samples are trained on",
                explains=("data-not-sharded",),
            )
            return
