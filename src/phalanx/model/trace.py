"""Collective traces in columns: what every rank called, in which group, in what order, and how far each call came.

Readers of flight-recorder dumps, timelines and profiler traces fill these tables; the diagnosis, the picture and the
export read them. The frames are Polars', because a job of 10,000 ranks has twenty million rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from phalanx.model.world import Unchecked

if TYPE_CHECKING:
    import polars

# One row is one call of one rank. Names of Polars' types, so that this module does not need the library.
CALL_COLUMNS = {
    "rank": "Int32",
    "order": "Int64",  # position in the rank's own order of issue; the only order that a rank's rows have
    "group": "UInt32",  # row of `groups`
    "seq": "Int64",  # number of the call within its group, counted apart for collectives and point-to-point
    "p2p": "Boolean",
    "op": "Categorical",  # all_reduce, all_gather, broadcast, send, recv, barrier, …
    "peer": "Int32",  # global rank of the other side of a send or recv; null else
    "root": "Int32",  # global rank of the root, where the trace tells it; null else
    "shape": "Categorical",  # sizes in and out as one word, `[[4, 4]]>[[16, 4]]`
    "dtype": "Categorical",  # `Float>Float`
    "state": "Int8",  # a CallState
    "created_ns": "Int64",  # the rank's own clock: never compared between ranks without `clock` being aligned
    "started_ns": "Int64",
    "completed_ns": "Int64",
    "place": "Categorical",  # the user's innermost frame, `/home/me/train.py:88 in train`; null where stacks were not recorded
}
# One row is one process group as one set of members. Groups of the same name and other members are other groups.
GROUP_COLUMNS = {"group": "UInt32", "name": "String", "description": "String", "members": "List(Int32)"}
# One row is what a rank said of a group as a whole (`pg_status`); null where it said nothing.
STATUS_COLUMNS = {
    "rank": "Int32",
    "group": "UInt32",
    "last_enqueued": "Int64",
    "last_started": "Int64",
    "last_completed": "Int64",
}


class CallState(IntEnum):
    """How far a call came."""

    SCHEDULED = 0
    STARTED = 1
    COMPLETED = 2


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One file that was read: whose it is, in what form, and what it lacks."""

    name: str
    rank: int
    form: str  # `flight recorder 2.10`, `horovod timeline`, …
    calls: int
    dropped: int = 0  # calls that a ring buffer overwrote before the file was made
    truncated: bool = False
    host: str | None = None
    written_ns: int | None = None  # when, by its time stamp, which copying may have made later
    gone: tuple[tuple[int, str], ...] = ()  # ranks that it calls dead or unreachable, and where each was


@dataclass(frozen=True, slots=True)
class Traces:
    """The traces of one job."""

    calls: polars.DataFrame
    groups: polars.DataFrame
    status: polars.DataFrame
    files: tuple[TraceFile, ...]
    world_size: int | None = None
    unchecked: tuple[Unchecked, ...] = field(default=())

    @property
    def ranks(self) -> frozenset[int]:
        """The ranks that left a trace."""
        return frozenset(file.rank for file in self.files)
