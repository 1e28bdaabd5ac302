"""A sampler that shuffles and was never told that a new epoch began: every epoch has the same order."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.model.ranks import all_of
from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.samples import Pass, passes_of

_FEWEST = 4  # samples in each epoch


def check(evidence: Evidence) -> Iterator[Found]:
    """On any rank: they all run the same script."""
    for rank, one in sorted(evidence.ranks.items()):
        by_loader: dict[int, list[Pass]] = {}
        for each in passes_of(one):
            if each.trains and each.loader.get("told", {}).get("shuffle") is True and each.replicas is not None:
                by_loader.setdefault(each.number, []).append(each)
        for passes in by_loader.values():
            found = _same_order(passes)
            if found:
                yield _found(rank, passes, found)
                return


def _same_order(passes: list[Pass]) -> int:
    """How many epochs had the order of the first; 0 where any had another."""
    long = [one for one in passes if len(one.samples) >= _FEWEST and None not in one.ids]
    if len(long) < 2 or len({one.set_epoch for one in long}) > 1:
        return 0
    first = long[0].ids
    alike = all(one.ids[: len(first)] == first[: len(one.ids)] for one in long[1:])
    return len(long) if alike else 0


def _found(rank: int, passes: list[Pass], count: int) -> Found:
    first = passes[0]
    return Found(
        cause="sampler-not-reshuffled",
        headline=f"{all_of(count, 'epochs').capitalize()} have the same order of samples: `set_epoch` of the DistributedSampler is never called (loader at {first.made}).",
        line=first.made,
        pattern="fix-dataset-api-usage",
        do="Call `sampler.set_epoch(epoch)` before each epoch's loop.",
        why="The sampler shuffles by its seed and the number of the epoch that it is told.",
        title="The data are never reshuffled",
        quotes=tuple((rank, one.line, f"epoch {one.epoch + 1}: samples {', '.join(map(str, one.ids[:6]))} …") for one in passes[:3]),
    )  # fmt: skip
