"""A stream of data that every loader worker reads whole: each sample comes once for each worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from phalanx.verification.evidence import Evidence
from phalanx.verification.found import Found
from phalanx.verification.samples import Pass, passes_of

_FEWEST = 4  # different samples


def check(evidence: Evidence) -> Iterator[Found]:
    """On any rank, in a pass that went to its end."""
    for rank, one in sorted(evidence.ranks.items()):
        for each in passes_of(one):
            workers = int(each.loader.get("workers") or 0)
            if not each.loader.get("iterable") or workers < 2 or not each.is_whole or not _each_comes(each, workers):
                continue
            yield Found(
                cause="samples-repeated-by-workers",
                headline=f"Every sample comes {workers} times in an epoch of the loader at {each.made} (rank {rank}: {len(each.samples)} samples, {len(set(each.samples))} different): each of the {workers} workers reads the whole stream.",
                line=each.made,
                pattern="fix-dataset-api-usage",
                do="Split the stream in `__iter__` by `torch.utils.data.get_worker_info()`: `itertools.islice(samples, info.id, None, info.num_workers)`, beside the split by rank.",
                why="An IterableDataset is copied into every worker; nothing divides it but its own `__iter__`.",
                title="Workers repeat the data",
                explains=("data-not-sharded",) if not each.trains else (),
            )
            return


def _each_comes(one: Pass, times: int) -> bool:
    counts = Counter(one.samples)
    return len(counts) >= _FEWEST and sum(1 for count in counts.values() if count == times) >= 0.9 * len(counts)
