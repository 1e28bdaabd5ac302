"""An evaluation that is dealt out over the ranks, whose results are never brought together."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model import Confidence
from phalanx.verification.evaluation import calls_after, evaluations
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.samples import data_parallel_ranks, shared


def check(evidence: Evidence) -> Iterator[Found]:
    """The first such evaluation."""
    ranks = data_parallel_ranks(evidence)
    if not ranks or _keep_results_apart(evidence, ranks):
        return
    for passes in evaluations(evidence, ranks):
        some = passes[ranks[0]]
        if some.replicas != len(ranks) or not all(one.is_whole for one in passes.values()):
            continue
        overlap = shared(passes)
        if any(2 * overlap[rank] > len(one.samples) for rank, one in passes.items()):
            continue  # every rank evaluates all of it
        if any(calls_after(evidence.ranks[rank], one) for rank, one in passes.items()):
            continue
        own = len(some.samples)
        total = sum(len(one.samples) for one in passes.values())
        yield Found(
            cause="metric-of-one-share",
            headline=f"Each rank evaluates its own share (rank {ranks[0]}: {own} of {total} samples, loader at {some.made}), and no collective brings the results together: what is reported is the metric of one share.",
            line=some.made,
            pattern="fix-distributed-api-usage",
            do="Sum what the metric is made of over the ranks before dividing: `dist.all_reduce(torch.tensor([correct, count]))`, or evaluate the whole set on rank 0 with the inner model.",
            why=f"Rank {ranks[0]}'s number says nothing about the samples of the others.",
            title="A metric covers one rank's samples only",
            confidence=Confidence.LIKELY,
            quotes=tuple((rank, one.line, f"{len(one.samples)} samples evaluated, no collective afterwards") for rank, one in list(passes.items())[:4]),
        )  # fmt: skip
        return


def _keep_results_apart(evidence: Evidence, ranks: tuple[int, ...]) -> bool:
    """Every rank saves files under names of its own: somebody joins them later."""
    paths = [{str(one["path"]) for one in evidence.ranks[rank].all("save")} for rank in ranks]
    return all(paths) and not set.intersection(*paths)
