"""An evaluation that is dealt out over the ranks and leaves samples out, because shares or last batches are cut to equal length."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model import Confidence
from phalanx.verification.evaluation import calls_after, evaluations
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.samples import Pass, data_parallel_ranks


def check(evidence: Evidence) -> Iterator[Found]:
    """Every share was gone through to its end, by index, and results are joined: what is missing is in no metric."""
    ranks = data_parallel_ranks(evidence)
    for passes in evaluations(evidence, ranks) if ranks else ():
        some = passes[ranks[0]]
        length, cut = some.loader.get("length"), _cut(some)
        if not length or not cut or any(one.replicas != len(ranks) or not one.is_whole for one in passes.values()):
            continue
        seen = {index for one in passes.values() for index in one.ids}
        missing = int(length) - len(seen)
        joined = any(calls_after(evidence.ranks[rank], one) for rank, one in passes.items())
        if None in seen or missing <= 0 or not joined:
            continue
        yield Found(
            cause="evaluation-samples-left-out",
            headline=f"{missing} of {length} evaluation samples are never evaluated, on no rank: {cut} of the loader at {some.made} drops what does not fill {'a batch' if cut == 'drop_last' else 'all shares'}.",
            line=some.made,
            pattern="fix-batch-size-or-data-partition",
            do="Leave `drop_last` out of the evaluation's loader and sampler, and deal its samples without padding: `Subset(dataset, range(rank, len(dataset), world_size))`.",
            why="The metric is told for the whole set and is of a part of it, another part with another number of ranks.",
            title="Evaluation samples are left out",
            confidence=Confidence.LIKELY,
        )  # fmt: skip
        return


def _cut(one: Pass) -> str:
    """What drops samples, as the script says it."""
    if one.loader.get("drop_last"):
        return "drop_last"
    return "the sampler's drop_last" if one.loader.get("told", {}).get("drop_last") is True else ""
