"""Ranks whose watchdogs timed out in the same number of a group, but in another operation or with another size.

[rank0]: … WorkNCCL(SeqNum=812, OpType=ALLREDUCE, …   [rank1]: … WorkNCCL(SeqNum=812, OpType=ALLREDUCE, …   [rank5]: … WorkNCCL(SeqNum=812, OpType=BROADCAST, …

Only calls of one group and one number are compared, and sends and receives are left out: their two sides differ by nature.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from phalanx.blame.quorum import is_minority, odd_ones
from phalanx.diagnosis.detectors.protocol import Job
from phalanx.model import Event, EventKind
from phalanx.model.facts import make_fact
from phalanx.sources.facts import fact_event

_TWO_SIDED = frozenset(("SEND", "RECV", "RECVANYSOURCE", "COALESCED"))
_KEYS = {"operation": "op", "size": "sizes"}
_FEWEST = 3  # of two ranks nobody knows which is odd


def detect(job: Job) -> Iterator[Event]:
    """At most one fact for each group."""
    for calls in _calls(job).values():
        yield from _mismatch(calls, job)


def _calls(job: Job) -> dict[tuple[str, int], dict[int, Event]]:
    """By group and number, the time-out of each rank: its first, which holds up whatever timed out after it."""
    first: dict[tuple[str, int], Event] = {}
    for event in job.events:
        if event.kind is EventKind.TIMEOUT and event.source == "nccl-watchdog" and event.rank is not None:
            group = str(event.data.get("group", ""))
            if "seq" in event.data and event.data["op"] not in _TWO_SIDED:
                known = first.get((group, event.rank))
                if known is None or event.data["seq"] < known.data["seq"]:
                    first[group, event.rank] = event
    found: dict[tuple[str, int], dict[int, Event]] = defaultdict(dict)
    for (group, rank), event in first.items():
        found[group, int(event.data["seq"])][rank] = event
    return found


def _mismatch(calls: Mapping[int, Event], job: Job) -> Iterator[Event]:
    if len(calls) < _FEWEST:
        return
    for what, key in _KEYS.items():
        told = {rank: str(event.data[key]) for rank, event in calls.items() if event.data.get(key)}
        odd = odd_ones(told, calls)
        if not odd or not is_minority(odd, calls):
            continue
        others = tuple(sorted(rank for rank in told if rank not in odd))
        shown = calls[min(odd)]
        fields = {
            "what": what,
            "own": _spoken(what, told[min(odd)], shown),
            "common": _spoken(what, told[others[0]], calls[others[0]]),
            "waiting": others,
            "call": f"call #{shown.data['seq']}",
        }
        fact = make_fact("trace.mismatch", fields, ranks=tuple(sorted(odd)), source="log")
        # what the rank prints while it is taken down does not mean that it went on
        last = max(event.line for event in job.events if event.file == shown.file and event.rank == shown.rank)
        yield fact_event(fact, shown.file, last, min(odd) if len(odd) == 1 else None)
        return


def _spoken(what: str, value: str, event: Event) -> str:
    return value if what == "operation" else f"{event.data['op']} with {value}"
