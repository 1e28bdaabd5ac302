"""What a comparison of the ranks' collective traces shows: who is missing, stalled, in another call, late; and who waits for it."""

from phalanx.model.event import EventKind
from phalanx.model.fact import FactType

_WAIT = {"waiting": "ranks", "call": "str"}


def _stall(name: str, text: str, fields: dict[str, str]) -> FactType:
    return FactType(f"trace.{name}", text, fields, EventKind.STALL)


FACTS = (
    _stall("missing", "{ranks} left no trace; {waiting} wait in {call}", _WAIT),
    _stall("cut", "{waiting} wait in {call}; the trace of {cut} breaks off before it", {**_WAIT, "cut": "ranks"}),
    _stall(
        "host-stalled",
        "{ranks} with nothing outstanding while {waiting} wait; never entered: {calls}",
        {**_WAIT, "calls": "names"},
    ),
    _stall(
        "device-stalled",
        "{calls?{ranks} queued calls that peers completed: {calls}}{first?{ranks} queued and did not start {first}, which {waiting} started}",
        {**_WAIT, "calls": "names", "first": "str"},
    ),
    _stall(
        "network-stalled",
        "{waiting} all entered {call}, and it does not end{groups?; {groups} more groups stall likewise}",
        {**_WAIT, "groups": "int"},
    ),
    _stall(
        "never-connected",
        "{waiting} entered {call}, the first call of its group, and it never ended{groups?; {groups} more groups stall likewise}",
        {**_WAIT, "groups": "int"},
    ),
    _stall(
        "other-call",
        "{call?{ranks} is in {own}, while {waiting} wait for it in {call}}{idle?{ranks} came alone to {own}; {idle} have nothing outstanding}",
        {**_WAIT, "own": "str", "idle": "ranks"},
    ),
    _stall(
        "no-partner",
        "{ranks} waits without a partner in {own}, while {waiting} wait for it in {call}",
        {**_WAIT, "own": "str"},
    ),
    _stall(
        "cycle",
        "{calls?{waiting} wait for one another in a circle: {calls}}{idle?A tie: {waiting} wait for {idle}, which have nothing outstanding}",
        {"waiting": "ranks", "calls": "names", "idle": "ranks"},
    ),
    _stall(
        "mismatch",
        "Another {what} at {call}{own?: {ranks} called {own}, while {waiting} called {common}}{sides?: {sides}; a tie}{backed?, as groups of the same kind did}",
        {**_WAIT, "what": "str", "own": "str", "common": "str", "sides": "names", "backed": "bool"},
    ),
    _stall("gone", "NCCL's RAS cannot reach {ranks}: {processes}", {"waiting": "ranks", "processes": "names"}),
    FactType(
        "trace.straggler",
        "{ranks} is late by about {late} at {times} of {count} calls of its groups",
        {"waiting": "ranks", "late": "str", "times": "int", "count": "int"},
        EventKind.TRACE,
    ),
)
