"""Ranks that wait for others: Gloo's time-outs, Horovod's stall inspector, monitoredBarrier; NCCL's watchdog is in `watchdogs`.

Stalled ops: DistributedAdam_Allreduce/x [missing ranks: 2]
[Rank 0]: Ranks 2, 3 failed to pass monitoredBarrier in 30000 ms
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phalanx.model import Event, EventKind
from phalanx.sources.window import Window

TRIGGERS = (
    "Timed out waiting ",
    "[missing ranks:",
    "Missing ranks:",
    "Stalled ranks:",
    "failed to pass monitoredBarrier",
    "waiting for remainder of ranks",
)

_GLOO = re.compile(r"Timed out waiting (?P<ms>\d+)ms for (?P<op>\w+) operation to complete")
_MISSING_INLINE = re.compile(r"\[missing ranks: ?(?P<ranks>[\d, ]+)")
_MISSING_LIST = re.compile(r"^\s*(?P<rank>\d+)!?: \[(?P<tensors>[^\]]*)")
_BARRIER = re.compile(r"Ranks? (?P<ranks>\d+(?:, ?\d+)*) failed to pass monitoredBarrier")


def read(window: Window) -> Iterator[Event]:
    """A time-out of this rank, or a stall report that names who is missing."""
    text = window.text
    if match := _GLOO.search(text):
        yield window.event(EventKind.TIMEOUT, "gloo", data={"op": match["op"], "waited_s": int(match["ms"]) / 1000})
    elif match := _BARRIER.search(text):
        yield window.event(EventKind.STALL, "monitored-barrier", data={"missing": _numbers(match["ranks"])})
    elif match := _MISSING_INLINE.search(text):
        yield window.event(EventKind.STALL, "horovod", data={"missing": _numbers(match["ranks"])})
    elif "Missing ranks:" in text or "Stalled ranks:" in text:
        # Horovod prints the missing ranks one a line; a cut list ends in an ellipsis.
        listed = [found for _, line in window.following(64) if (found := _MISSING_LIST.match(line))]
        by_tensor: dict[str, set[int]] = {}
        for found in listed:
            for tensor in found["tensors"].strip(" ]").split(", "):
                by_tensor.setdefault(tensor, set()).add(int(found["rank"]))
        sets = sorted({tuple(sorted(ranks)) for ranks in by_tensor.values()})
        if sets:
            missing = tuple(sorted({rank for ranks in sets for rank in ranks}))
            yield window.event(EventKind.STALL, "horovod", data={"missing": missing, "sets": tuple(sets)})


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))
