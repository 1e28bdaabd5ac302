"""Which ranks should hold the same numbers, and whether they do: what all comparisons across ranks share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from phalanx.blame.quorum import odd_ones
from phalanx.verification.evidence import Evidence, Parameter, Record, Sketch, Step

SAME = 1e-6  # relative distance below which two sketches are of the same numbers, rounding aside
FAR = 1e-3  # relative distance above which they are of different ones, whatever the rounding
_TINY = 1e-30
Values = Mapping[int, Sequence[Sketch | None]]  # by rank, of all parameters
POINT_TO_POINT = ("send", "recv", "recv_any_source", "alltoall", "alltoall_base")


def distance(one: Sketch | None, two: Sketch | None) -> float:
    """How far two tensors are apart, relative to the larger; estimated from two projections. NaN is equal to NaN."""
    if one is None or two is None:
        return 0.0 if one is two else math.inf
    if not all(map(math.isfinite, (*one, *two))):
        return 0.0 if str(one) == str(two) else math.inf
    apart = math.hypot(one[0] - two[0], one[1] - two[1]) / math.sqrt(2)
    size = max(one[2], two[2]) if len(one) > 2 and len(two) > 2 else max(math.hypot(*one[:2]), math.hypot(*two[:2]))
    return apart / size if size > _TINY else 0.0 if apart <= _TINY else math.inf


def spread(values: Iterable[Sketch | None]) -> float:
    """The largest distance from the first."""
    first, *rest = list(values)
    return max((distance(first, one) for one in rest), default=0.0)


@dataclass(frozen=True)
class Replica:
    """One parameter, and the ranks that should hold the same of it."""

    index: int
    parameter: Parameter
    ranks: tuple[int, ...]
    wrapper: int | None = None  # the DDP model that should keep it the same

    def of(self, values: Values) -> list[Sketch | None]:
        """Its sketches on its ranks."""
        return [values[rank][self.index] for rank in self.ranks]

    def odd(self, values: Values) -> tuple[int, ...]:
        """The ranks that differ from more than half of them; nobody where there is no such majority."""
        return tuple(sorted(odd_ones({rank: str(values[rank][self.index]) for rank in self.ranks}, self.ranks)))

    def quotes(self, values: Values, lines: Mapping[int, str], when: str) -> tuple[tuple[int | None, str, str], ...]:
        """What some ranks hold, for the evidence of a finding."""
        shown = ((rank, values[rank][self.index]) for rank in self.ranks[:4])
        return tuple(
            (rank, lines[rank], f"`{self.parameter.name}`: norm {value[2]:.9g}, projection {value[0]:.9g} {when}")
            for rank, value in shown
            if value is not None
        )


@lru_cache(maxsize=64)
def replicas_of(evidence: Evidence, optimizer: int) -> tuple[Replica, ...]:
    """The parameters of an optimizer that at least two ranks should hold alike."""
    holders = evidence.holders(optimizer)
    found: list[Replica] = []
    if len(holders) < 2:
        return ()
    flat = {int(one["m"]) for rank in evidence.ranks.values() for one in rank.all("model") if one["kind"] == "fsdp1"}
    for index, first in enumerate(next(iter(holders.values())).parameters):
        by_place: dict[object, list[int]] = {}
        wrapper = None
        for rank, held in sorted(holders.items()):
            parameter = held.parameters[index]
            if parameter.shard == "flat" or parameter.model in flat:
                continue
            wrapped = evidence.ranks[rank].wrapped.get(parameter.model if parameter.model is not None else -1)
            wrapper = int(wrapped["m"]) if wrapped is not None else wrapper
            members = tuple(wrapped["members"]) if wrapped is not None else ()
            by_place.setdefault((parameter.shard, members), []).append(rank)
        found += [Replica(index, first, tuple(ranks), wrapper) for ranks in by_place.values() if len(ranks) > 1]
    return tuple(found)


def calls_of(events: Iterable[tuple[str, Record]]) -> list[Record]:
    """The collectives among events."""
    return [fields for kind, fields in events if kind == "call"]


def averages_parameters(evidence: Evidence) -> bool:
    """Whether ranks exchange parameters after their first step, as local SGD, gossip and model averaging do."""
    for one in evidence.ranks.values():
        later = [event for step in one.steps if step.number > 0 for event in step.events]
        later += [event for end in one.all("end") for event in end.get("events", ())]
        if any(call["what"] in ("param", "param-copy") for call in calls_of(later)):
            return True
    return False


def is_model_parallel(evidence: Evidence) -> bool:
    """Whether ranks exchange activations: each of them may then hold another part of one model."""
    for one in evidence.ranks.values():
        for call in calls_of(one.events):
            if call["op"] in POINT_TO_POINT or (call.get("forward") and call["n"] > 1 and call["op"] != "broadcast"):
                return True
    return False


def keeps_models_apart(evidence: Evidence, ranks: tuple[int, ...]) -> bool:
    """Every rank saves its model under a name of its own."""
    paths = {rank: {str(one["path"]) for one in evidence.ranks[rank].all("save")} for rank in ranks}
    return all(paths.values()) and not set.intersection(*paths.values())


def comparable(steps: Mapping[int, Step]) -> bool:
    """Whether the gradients of these steps of one number can be compared: no closure, nobody skipped it."""
    return not any(step.closure or step.skipped for step in steps.values())
