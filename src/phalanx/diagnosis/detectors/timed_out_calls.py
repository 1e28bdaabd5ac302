"""Ranks whose watchdogs timed out in the same number of a group: in another operation or size, or all of the job in one call.

[rank0]: … WorkNCCL(SeqNum=812, OpType=ALLREDUCE, …   [rank1]: … WorkNCCL(SeqNum=812, OpType=ALLREDUCE, …   [rank5]: … WorkNCCL(SeqNum=812, OpType=BROADCAST, …

Only calls of one group and one number are compared, and sends and receives are left out: their two sides differ by nature,
as do the sizes of an exchange. Where no majority tells who is odd, both sides are told and nobody is accused. Where every rank of a job whose size is
told timed out in one and the same call, nobody is missing from it: a device or the network holds it up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from phalanx.blame import GroupCall
from phalanx.blame.quorum import is_minority, odd_ones
from phalanx.diagnosis.detectors.protocol import Job
from phalanx.model import Event, EventKind
from phalanx.model.facts import make_fact
from phalanx.model.ranks import name_ranks
from phalanx.sources.facts import fact_event

_KEYS = {"operation": "op", "size": "sizes"}
_FIRST_CALLS = 3  # of a group: what hangs there is told by other rules
_UNEVEN = ("ALLTOALL", "GATHER", "SCATTER")  # what ranks hand over may differ in size


def detect(job: Job) -> Iterator[Event]:
    """At most one fact for each group."""
    for (_, seq), calls in _calls(job).items():
        found = [*_mismatch(calls, job)]
        yield from found or (_entered_by_all(calls, job) if seq > _FIRST_CALLS else ())


def _entered_by_all(calls: Mapping[int, Event], job: Job) -> Iterator[Event]:
    """A fact where the whole job is in this call, and in no other at the same time."""
    told = {size for file in job.files for size in file.world_sizes}
    sizes = {(event.data["op"], event.data.get("sizes")) for event in calls.values()}
    if len(told) != 1 or calls.keys() != set(range(max(told))) or len(sizes) != 1 or len(calls) < 2:
        return
    shown = calls[0]
    fields = {"waiting": tuple(sorted(calls)), "call": f"{shown.data['op']} #{shown.data['seq']}"}
    last = max(event.line for event in job.events if event.file == shown.file and event.rank == shown.rank)
    yield fact_event(make_fact("trace.network-stalled", fields, source="log"), shown.file, last, None)


def _calls(job: Job) -> dict[tuple[str, int], dict[int, Event]]:
    """By group and number, the time-out of each rank: its first, which holds up whatever timed out after it."""
    first: dict[tuple[str, int], Event] = {}
    for event in job.events:
        if event.kind is EventKind.TIMEOUT and event.source == "nccl-watchdog" and event.rank is not None:
            group = str(event.data.get("group", ""))
            if "seq" in event.data and not GroupCall(op=event.data["op"]).is_point_to_point:
                known = first.get((group, event.rank))
                if known is None or event.data["seq"] < known.data["seq"]:
                    first[group, event.rank] = event
    found: dict[tuple[str, int], dict[int, Event]] = defaultdict(dict)
    for (group, rank), event in first.items():
        found[group, int(event.data["seq"])][rank] = event
    return found


def _mismatch(calls: Mapping[int, Event], job: Job) -> Iterator[Event]:
    for what, key in _KEYS.items():
        told = {rank: str(event.data[key]) for rank, event in calls.items() if event.data.get(key)}
        if len(set(told.values())) < 2 or (what == "size" and calls[min(told)].data["op"].startswith(_UNEVEN)):
            continue
        odd = odd_ones(told, calls) if is_minority(odd_ones(told, calls), calls) else frozenset()
        shown = calls[min(odd or told)]
        fields: dict[str, object] = {"what": what, "call": f"#{shown.data['seq']}"}
        if odd:
            others = tuple(sorted(rank for rank in told if rank not in odd))
            fields |= {"own": _spoken(what, shown), "common": _spoken(what, calls[others[0]]), "waiting": others}
        else:
            fields |= {"sides": _sides(what, told, calls), "waiting": tuple(sorted(told))}
        fact = make_fact("trace.mismatch", fields, ranks=tuple(sorted(odd)), source="log")
        # what the rank prints while it is taken down does not mean that it went on
        last = max(event.line for event in job.events if event.file == shown.file and event.rank == shown.rank)
        yield fact_event(fact, shown.file, last, min(odd) if len(odd) == 1 else None)
        return


def _sides(what: str, told: Mapping[int, str], calls: Mapping[int, Event]) -> list[str]:
    """`ranks 0, 1 called ALLREDUCE`, of the first few."""
    by_value: dict[str, list[int]] = defaultdict(list)
    for rank, value in sorted(told.items()):
        by_value[value].append(rank)
    return [f"{name_ranks(ranks)} called {_spoken(what, calls[ranks[0]])}" for ranks in list(by_value.values())[:4]]


def _spoken(what: str, event: Event) -> str:
    """`ALLREDUCE`, or `ALLREDUCE of 4096 elements` where the sizes are what differs."""
    operation = str(event.data["op"])
    if what == "operation":
        return operation
    given, _, got = str(event.data["sizes"]).partition(" in, ")
    return f"{operation} of {given} elements" if f"{given} out" == got else f"{operation} with {event.data['sizes']}"
