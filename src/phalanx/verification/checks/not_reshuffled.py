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
            if each.trains and (_shuffles(each) or _counts_epochs(each)):
                by_loader.setdefault(each.number, []).append(each)
        for passes in by_loader.values():
            found = _same_order(passes)
            if found:
                yield _found(rank, passes, found)
                return


def _shuffles(one: Pass) -> bool:
    return one.loader.get("told", {}).get("shuffle") is True and one.replicas is not None


def _counts_epochs(one: Pass) -> bool:
    """A sampler of the user's own that keeps the number of the epoch and whose order is a shuffled one: the number is what reshuffles it."""
    known = [index for index in one.ids if index is not None]
    is_own = one.set_epoch is not None and one.loader.get("told", {}).get("shuffle") is not False
    return is_own and one.loader["sampler"] != "DistributedSampler" and known != sorted(known)


def _same_order(passes: list[Pass]) -> int:
    """How many epochs had the order of the first; 0 where any had another."""
    long = [one for one in passes if len(one.samples) >= _FEWEST and None not in one.ids]
    if len(long) < 2 or len({one.set_epoch for one in long}) > 1:
        return 0
    first = long[0].ids
    alike = all(one.ids[: len(first)] == first[: len(one.ids)] for one in long[1:])
    return len(long) if alike else 0


def _found(rank: int, passes: list[Pass], count: int) -> Found:
    first, own = passes[0], str(passes[0].loader["sampler"])
    never = (
        "`set_epoch` of the DistributedSampler is never called"
        if _shuffles(first)
        else f"`epoch` of the sampler `{own}` stays {first.set_epoch}"
    )
    return Found(
        cause="sampler-not-reshuffled",
        headline=f"{all_of(count, 'epochs').capitalize()} have the same order of samples: {never} (loader at {first.made}, begun at {first.line}).",
        line=first.made,
        pattern="fix-dataset-api-usage",
        do="Call `sampler.set_epoch(epoch)` before each epoch's loop."
        if _shuffles(first)
        else "Set the sampler's epoch before each epoch's loop: `sampler.set_epoch(epoch)`, or `sampler.epoch = epoch`.",
        why="The sampler shuffles by its seed and the number of the epoch that it is told.",
        title="The data are never reshuffled",
        quotes=tuple((rank, one.line, f"epoch {one.epoch + 1}: samples {', '.join(map(str, one.ids[:6]))} …") for one in passes[:3]),
    )  # fmt: skip
