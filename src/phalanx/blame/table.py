"""The table of where every rank stood when a job failed: one row a rank, one cell for each process group it is in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

CONNECTING = "connecting"  # in place of a group's name: the rank waits for its peers to connect
UNNAMED = "?"  # the group of calls that do not say in which group they were made
# NCCL's watchdog writes them in capitals, and calls what was batched COALESCED, whatever it was.
_POINT_TO_POINT = frozenset(
    [
        "send",
        "recv",
        "isend",
        "irecv",
        "recvanysource",
        "coalesced",
        "batch_isend_irecv",
        "send_object_list",
        "recv_object_list",
    ]
)


class Line(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    function: str = ""

    @property
    def place(self) -> str:
        """`train.py:88`."""
        return f"{self.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{self.line}"


class Doing(StrEnum):
    """What a rank was doing, as far as the evidence shows."""

    UNSEEN = "unseen"  # no evidence of it at all
    SEEN = "seen"  # it left lines, which do not tell what it was doing at the end
    WAITING = "waiting"  # in a collective, or for peers to connect
    RUNNING = "running"  # in its own code, outside of any collective
    DATA = "data"  # waits for its data loader
    STOPPED = "stopped"  # by SIGSTOP or a debugger
    LEFT = "left"  # ended well
    GONE = "gone"  # ended otherwise


class Words(StrEnum):
    """What a rank printed about the end."""

    NONE = "none"
    VICTIM = "victim"  # only that a peer was lost, or that it waited in vain
    OWN = "own"  # an exception of its own
    CUT = "cut"  # an exception that breaks off before it is named


class About(StrEnum):
    """What sort of failure is judged: where a culprit can be at all."""

    OWN = "own"  # the ranks that show it have the fault themselves
    PEERS = "peers"  # the ranks that show it wait for a peer, or lost one
    CALLS = "calls"  # ranks failed to meet in a call: their calls may differ
    STALL = "stall"  # a job that hangs: where all ranks stand was seen at one moment
    NAMED = "named"  # the evidence itself says whom it is about, and nothing else does
    NOBODY = "nobody"  # a fault of the network, or of something that is no rank's


@dataclass(frozen=True, slots=True)
class GroupCall:
    """The last known call of one rank in one process group. Numbers are only compared within a group."""

    group: str = ""
    seq: int | None = None
    op: str = ""
    sizes: str = ""
    is_completed: bool = False
    last_enqueued: int | None = None
    last_completed: int | None = None
    waited_s: float | None = None
    peer: int | None = None  # the other side of a send or a receive
    facts: Mapping[str, str] = field(default_factory=dict)  # dtype, name, root … of the call, as far as told

    @property
    def is_point_to_point(self) -> bool:
        """A send or a receive: its two sides differ by nature."""
        return self.peer is not None or self.op.lower() in _POINT_TO_POINT

    @property
    def number(self) -> int | None:
        """How far the rank is in this group: the call it waits in, else the last one that it is known to have entered."""
        known = (self.seq, self.last_enqueued, self.last_completed)
        return next((number for number in known if number is not None), None)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended. `is_own`: it brought that on itself (see `teardown`)."""

    code: int
    is_own: bool
    at: float | None = None  # seconds of a clock that all endings of the job share


@dataclass(frozen=True, slots=True)
class RankState:
    """One row: what is known of one rank."""

    rank: int
    doing: Doing = Doing.SEEN
    calls: tuple[GroupCall, ...] = ()
    stack: tuple[Line, ...] = ()  # of the user's code, outermost first
    condition: str = ""  # `if rank == 0`: the condition on the rank that it stands under in the source
    skipped_half: bool = (
        False  # the other half of its send or receive stands under a condition that it may have passed by
    )
    states_otherwise: str = (
        ""  # what it states of itself (world size, model, data) where all others agree on something else
    )
    ending: Ending | None = None
    words: Words = Words.NONE
    last_step: float | None = None
    host: str | None = None

    @property
    def ended_well(self) -> bool:
        """Its process left with status 0, or said that it was done."""
        return self.doing is Doing.LEFT

    @property
    def is_exchanging(self) -> bool:
        """It is in a send or a receive."""
        return any(call.is_point_to_point for call in self.calls)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The ranks of which the evidence would show a sign if they had left one, and what makes that certain.

    A file for each rank, a launcher that prefixes all lines, or a supervisor cover; an excerpt or a cut log covers nobody.
    """

    ranks: frozenset[int] = frozenset()
    by: str = ""


@dataclass(frozen=True, slots=True)
class RankTable:
    """Where every rank stood, and which failure is judged."""

    states: Mapping[int, RankState]
    about: About
    shown_by: frozenset[int]  # the ranks in whose evidence the failure shows
    everyone: frozenset[int]  # the ranks that are known to exist
    coverage: Coverage = Coverage()
    named: tuple[frozenset[int], ...] = ()  # ranks that reports name, one set for each thing that is waited for
    members: Mapping[str, frozenset[int]] = field(default_factory=dict)  # of groups, as far as known
    calls_differ: bool = False  # it is certain that calls did not fit one another
    one_moment: bool = False  # where the ranks stood was seen at one moment, so that another line is another path
    is_ending: bool = False  # the failure is how processes ended, told by a supervisor that knows whom it ended itself
    is_shared: bool = False  # a fault that every rank meets at the same line, so that the first one is not the cause
    is_unattributed: bool = False  # part of the evidence belongs to nobody known

    def state(self, rank: int) -> RankState:
        """A rank's row; an unseen one where there is none."""
        return self.states.get(rank) or RankState(rank, Doing.UNSEEN)

    @property
    def others(self) -> frozenset[int]:
        """The ranks that do not show the failure."""
        return self.everyone - self.shown_by

    @property
    def exchanges(self) -> Mapping[int, GroupCall]:
        """By rank, the send or receive that it is in, where the other side is known."""
        found = ((rank, call) for rank, state in self.states.items() for call in state.calls)
        return {rank: call for rank, call in found if call.peer is not None}

    def ranks_that(self, *doing: Doing) -> frozenset[int]:
        """The ranks that do one of these."""
        return frozenset(rank for rank in self.everyone if self.state(rank).doing in doing)

    @property
    def groups(self) -> Mapping[str, Mapping[int, GroupCall]]:
        """By group, the last call of each rank in it."""
        found: dict[str, dict[int, GroupCall]] = {}
        for rank, state in self.states.items():
            for call in state.calls:
                found.setdefault(call.group, {})[rank] = call
        return found


@dataclass(frozen=True, slots=True)
class Accusation:
    """Who is to blame, which strategy found it, and on what."""

    ranks: frozenset[int] = frozenset()
    strategy: str = ""
    because: str = ""


NOBODY = Accusation()
