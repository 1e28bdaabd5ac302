"""Which ranks make up a process group, by what each rank says of its own place in it.

[rank9]: … [PG ID 5 PG GUID 13(TENSOR_MODEL_PARALLEL_GROUP) Rank 1]  failure detected by watchdog …      rank 9 is its second
WorkNCCL(SeqNum=812, OpType=_ALLGATHER_BASE, NumelIn=1024, NumelOut=4096, …                               it has four members

Tensor, data, pipeline and expert groups are made of ranks at equal distances, so that two places tell the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from phalanx.model import Event
from phalanx.sources.readers.watchdogs import GROUP


def members_of_groups(events: Iterable[Event]) -> dict[str, frozenset[int]]:
    """By group its ranks, up to the last place that is known of; without groups in which ranks are not at equal distances."""
    places: dict[str, dict[int, int]] = defaultdict(dict)
    sizes: dict[str, int] = defaultdict(int)
    for event in events:
        rank = event.data.get("rank") if event.source == GROUP else event.rank
        if (place := event.data.get("group_rank")) is not None and rank is not None:
            group = str(event.data["group"])
            places[group][place] = rank
            sizes[group] = max(sizes[group], place + 1, event.data.get("group_size", 0))
    return {group: found for group, told in places.items() if (found := _members(told, sizes[group]))}


def _members(told: dict[int, int], size: int) -> frozenset[int]:
    (low, first), (high, last) = min(told.items()), max(told.items())
    if low == high or (last - first) % (high - low):
        return frozenset()
    stride = (last - first) // (high - low)
    fits = all(rank == first + (place - low) * stride for place, rank in told.items())
    return frozenset(first + (place - low) * stride for place in range(size)) if fits and stride > 0 else frozenset()
