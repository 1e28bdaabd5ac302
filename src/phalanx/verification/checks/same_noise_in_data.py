"""Samples are changed at random, and loader workers or ranks draw the same random numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from phalanx.model import Confidence
from phalanx.model.ranks import all_of
from phalanx.verification.evidence import Evidence, RankEvidence, Record
from phalanx.verification.found import Found

_FEWEST = 3  # fetches in the rank itself


def check(evidence: Evidence) -> Iterator[Found]:
    """Within a rank first: that workers draw alike is never meant."""
    for rank, one in sorted(evidence.ranks.items()):
        found = _in_workers(one)
        if found is not None:
            yield _workers(evidence, rank, one, *found)
            return
    source = _on_ranks(evidence)
    if source:
        yield _ranks(evidence, source)


def _first_fetches(one: RankEvidence) -> list[Record]:
    return [fetch for fetch in one.all("fetch") if fetch["worker"] is not None and fetch["number"] == 0]


def _in_workers(one: RankEvidence) -> tuple[str, int] | None:
    """What several workers of one epoch began to draw from in the same state, and how many of them."""
    epochs: dict[int, list[Record]] = {}
    for fetch in _first_fetches(one):
        epochs.setdefault(int(fetch["begun"]), []).append(fetch)
    for fetches in epochs.values():
        for source in fetches[0]["drew"]:
            states = [fetch["drew"].get(source) for fetch in fetches]
            if len(states) > 1 and None not in states and len(set(states)) == 1:
                return source, len(states)
    return None


def _workers(evidence: Evidence, rank: int, one: RankEvidence, source: str, count: int) -> Found:
    begun = {fetch["begun"] for fetch in _first_fetches(one)}
    again = len(begun) > 1 and len({fetch["drew"].get(source) for fetch in _first_fetches(one)}) == 1
    alike = len(evidence.ranks) > 1 and _same_everywhere(evidence, source)
    where = f"{all_of(count, 'loader workers')}{' of every rank' if alike else f' of rank {rank}'}"
    loader = _loader(one)
    return Found(
        cause="same-augmentation-in-workers",
        headline=f"Random augmentation is the same in {where}{', in every epoch' if again else ''}: {_named(source)} starts from the same state in each of them (loader at {loader}).",
        line=loader,
        pattern="fix-dataset-api-usage",
        do=_remedy(source),
        why="Workers are copies: a state that is set before the fork, or to a constant in each, gives every worker the same numbers.",
        title="The same augmentation in all workers",
    )  # fmt: skip


def _same_everywhere(evidence: Evidence, source: str) -> bool:
    states = [{fetch["drew"].get(source) for fetch in _first_fetches(one)} for one in evidence.ranks.values()]
    return all(states) and bool(set.intersection(*states) - {None})


def _named(source: str) -> str:
    own = {"torch": "PyTorch's generator", "numpy": "NumPy's generator", "python": "Python's `random`"}
    return own.get(source, f"`{source}`")


def _remedy(source: str) -> str:
    if source.startswith("dataset."):
        return (
            "Make the generator in the worker, not in `__init__`: at the first sample, seeded with `torch.initial_seed()`,"
            " which differs between workers, epochs and (seeded by rank) ranks; or use `torch`'s own generator."
        )
    return (
        "Seed workers by what differs: `worker_init_fn=lambda _: np.random.seed(torch.initial_seed() % 2**32)`, and seed PyTorch"
        " by rank after the model is made; or leave `worker_init_fn` out, PyTorch seeds workers itself."
    )


def _on_ranks(evidence: Evidence) -> str:
    """What all ranks draw from in the same states, fetch by fetch, although their samples differ."""
    if len(evidence.ranks) < 2 or any(not _seeds(one) for one in evidence.ranks.values()):
        return ""
    rows = [
        tuple(tuple(batch.get("rows") or ()) for batch in one.all("batch")[:_FEWEST]) for one in evidence.ranks.values()
    ]
    ids = [
        tuple(tuple(batch.get("ids") or ()) for batch in one.all("batch")[:_FEWEST]) for one in evidence.ranks.values()
    ]
    if len(set(rows)) < len(rows) or len(set(ids)) < len(ids):
        return ""  # the same samples: that is the fault to tell
    each = [_drawn(one.all("fetch")) for one in evidence.ranks.values()]
    first = each[0]
    sources = [
        name
        for name, states in first.items()
        if len(states) >= _FEWEST and all(found.get(name) == states for found in each)
    ]
    return sources[0] if sources else ""


def _drawn(fetches: Sequence[Record]) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = {}
    for fetch in fetches:
        if fetch["worker"] is None:
            for name, state in fetch["drew"].items():
                found.setdefault(name, []).append(int(state))
    return found


def _seeds(one: RankEvidence) -> bool:
    """Whether the script seeds by itself; frameworks that seed all ranks alike do so by design."""
    return any(str(seed.get("by")) in ("__main__", "") for seed in one.all("seed")) or not one.all("seed")


def _loader(one: RankEvidence) -> str:
    return next((str(loader.get("made") or loader["line"]) for loader in one.all("loader")), "")


def _ranks(evidence: Evidence, source: str) -> Found:
    one = next(iter(evidence.ranks.values()))
    seeds = [seed for seed in one.all("seed") if seed["what"] == source]
    by = f": all are seeded with {seeds[-1]['value']} ({seeds[-1]['line']})" if seeds else ""
    return Found(
        cause="same-noise-on-all-ranks",
        headline=f"Random augmentation is the same on {all_of(len(evidence.ranks), 'ranks')}: {_named(source)} is in the same state at every fetch{by} (loader at {_loader(one)}).",
        line=str(seeds[-1]["line"]) if seeds else _loader(one),
        pattern="fix-behavior-logic",
        do="Seed what changes the samples by rank: `seed + rank`, after the model is made.",
        why="Noise that is the same on all ranks does not average out over the global batch.",
        title="The same augmentation on all ranks",
        confidence=Confidence.LIKELY,
    )  # fmt: skip
