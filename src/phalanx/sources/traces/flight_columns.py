"""Turns the entries of a flight-recorder dump into columns: a dictionary an entry in, lists of one length out."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from marshal import dumps
from typing import Any

from phalanx.model.event import Frame
from phalanx.model.trace import CallState
from phalanx.sources.traces.protocol import Group
from phalanx.sources.traces.repeats import Repeated

_OP = re.compile(r"(?:(?P<library>\w+):)?(?P<op>\w+)(?: (?P<one>\d+)(?P<arrow>->|<-)(?P<other>\d+))?")
_PAIRS = frozenset({"send", "recv"})
_STATES = {"completed": CallState.COMPLETED, "started": CallState.STARTED, "scheduled": CallState.SCHEDULED}
# Libraries whose calls carry no events: their entries never leave `scheduled`, but are retired when they are over.
_WITHOUT_EVENTS = frozenset({"gloo", "mpi", "ucc"})
_GATHERED = re.compile(r"\[\[(?P<each>[\d, ]+)\]\]>\[\[(?P<ranks>\d{1,6}), (?P=each)\]\]")


class Columns:
    """The columns of one dump, and what was learned in filling them."""

    def __init__(self, config: dict[str, Group]) -> None:
        self.configured = tuple(config.values())
        self.groups: list[Group] = []
        self.lists: dict[str, list[Any]] = {}
        self.group_of_number: dict[int, int] = {}  # the rank's own number of a group -> position in groups
        self.dropped = 0
        self.world_size: int | None = None
        self.counts_operations = False  # Gloo's `pg_status` counts every operation, so it cannot be compared
        self._config = config
        self._positions: dict[Group, int] = {}
        self._named: dict[object, int] = {}

    def position_of(self, group: Group) -> int:
        """The group's place in `groups`, where it is put if it is new."""
        if group not in self._positions:
            self._positions[group] = len(self.groups)
            self.groups.append(group)
        return self._positions[group]

    def position_named(self, raw: object) -> int:
        """The place of the group of an entry: `(name, description)`, or a name in old dumps."""
        pair = raw if isinstance(raw, tuple) else (str(raw), "")
        name, description = pair[0][:200], pair[1][:200]
        known = self._config.get(name)
        return self.position_of(known if known is not None else Group(name, description))

    def positions(self, raws: Sequence[object], numbers: Sequence[object]) -> list[int]:
        """The group of each entry; each spelling is looked at once."""
        found = []
        for raw, number in zip(raws, numbers, strict=True):
            if type(raw) is list:
                raw = tuple(raw)
            if type(raw) is tuple and (len(raw) != 2 or type(raw[0]) is not str or type(raw[1]) is not str):
                raw = "?"  # a hostile one, nested so that looking it up would not end
            elif type(raw) is not tuple and type(raw) is not str:
                raw = number if type(number) is int else "?"
            position = self._named.get(raw)
            if position is None:
                position = self._named[raw] = self.position_named(raw)
                if type(number) is int:
                    self.group_of_number[number] = position
            found.append(position)
        return found


def columns_of(entries: Sequence[dict[str, Any]], config: dict[str, Group]) -> Columns:
    """All columns of a dump's entries. Column by column: a list's loop costs less than a call for every entry."""
    made = Columns(config)

    def each(key: str) -> list[Any]:
        return [entry.get(key) for entry in entries]

    groups = made.positions(each("process_group"), each("pg_id"))
    calls = [_CALLS.get(name) or _parsed(name) for name in map(_text, each("profiling_name"))]
    ops = [call[1] for call in calls]
    p2p = [op in _PAIRS if flag is None else flag is True for flag, op in zip(each("is_p2p"), ops, strict=True)]
    shapes, dtypes = _signatures(each("input_sizes"), each("output_sizes"), each("input_dtypes"), each("output_dtypes"))
    made.counts_operations = any(call[0] in _WITHOUT_EVENTS for call in calls)
    made.lists = {
        "order": _orders(each("record_id")),
        "group": groups,
        "seq": _numbers(each("collective_seq_id"), each("p2p_seq_id"), each("seq_id"), p2p),
        "p2p": p2p,
        "op": ops,
        "peer": [
            None if call[2] is None else _peer(made.groups[group], call[2])
            for group, call in zip(groups, calls, strict=True)
        ],
        "shape": shapes,
        "dtype": dtypes,
        "state": _states(each("state"), each("retired"), calls, made.counts_operations),
        "created_ns": _times(each("time_created_ns")),
        "started_ns": _times(each("time_discovered_started_ns")),
        "completed_ns": _times(each("time_discovered_completed_ns")),
        "place": _places(each("frames")),
    }
    orders = made.lists["order"]
    made.dropped = _dropped(orders[0], orders[-1], len(orders)) if orders else 0
    made.world_size = _gathered(made.lists, calls, made.groups) if made.counts_operations else None
    return made


def repeated(made: Columns, found: Repeated) -> dict[str, array[int]]:
    """The rows of a dump whose columns are of kinds: what stands in the rows is taken out of the columns."""
    for kind, varies in enumerate(found.varies):
        for name in varies - {"collective", "pairwise"}:
            made.lists[name][kind] = None
        if ("pairwise" if made.lists["p2p"][kind] else "collective") in varies:
            made.lists["seq"][kind] = None
    orders = made.lists["order"]
    # The first entry and the last are of kinds of their own, which have their numbers.
    made.dropped = _dropped(orders[0], orders[-1], len(found.rows["kind"]))
    return found.rows


def _text(raw: object) -> str:
    return raw if type(raw) is str else ""


_Call = tuple[str, str, int | None]
_CALLS: dict[str, _Call] = {}


def _parsed(name: str) -> _Call:
    """Library, operation and the other side's rank within the group: `nccl:send 0->3`."""
    match = _OP.match(name[:120])
    if match is None:
        return "", name[:60] or "unknown", None
    made = (match["library"] or "", match["op"], int(match["other"]) if match["other"] else None)
    if len(_CALLS) < 1 << 17:
        _CALLS[name] = made
    return made


def _peer(group: Group, local: int) -> int | None:
    if group.members is None:
        return local if group.description == "default_pg" else None
    return group.members[local] if local < len(group.members) else None


def _orders(found: list[Any]) -> list[int]:
    return found if set(map(type, found)) <= {int} else list(range(len(found)))


def _numbers(collective: list[Any], pairwise: list[Any], old: list[Any], p2p: list[bool]) -> list[int | None]:
    """Collectives and point-to-point calls are counted apart; old dumps had one count for both."""
    if old and old[0] is not None and collective[0] is None:
        collective = pairwise = old
    found = [second if flag else first for first, second, flag in zip(collective, pairwise, p2p, strict=True)]
    return found if set(map(type, found)) <= {int} else [_number(one) for one in found]


def _number(raw: object) -> int | None:
    if type(raw) is str and raw.isdigit() and len(raw) < 19:
        return int(raw)
    return raw if type(raw) is int else None


def _times(found: list[Any]) -> list[int | None]:
    """JSON has 0 for never."""
    kinds = set(map(type, found))
    if kinds <= {type(None)}:
        return found
    return [one if type(one) is int and 0 < one < 1 << 62 else None for one in found]


def _states(states: list[Any], retired: list[Any], calls: list[_Call], without_events: bool) -> list[int]:
    names = [_STATES.get(state, CallState.SCHEDULED) for state in map(_text, states)]
    if not without_events:
        return [int(name) for name in names]
    return [
        int(CallState.COMPLETED if over is True and call[0] in _WITHOUT_EVENTS else name)
        for name, over, call in zip(names, retired, calls, strict=True)
    ]


_WORDS: dict[bytes, tuple[str | None, str | None]] = {}


def _signatures(*columns: list[Any]) -> tuple[list[str | None], list[str | None]]:
    """Sizes and types, in and out, as one word each. Few differ in a job, so each spelling is made a word once.

    `marshal` writes an object that is there twice once: a hostile dump cannot make it long by nesting.
    """
    shapes: list[str | None] = []
    dtypes: list[str | None] = []
    for raw in zip(*columns, strict=True):
        key = dumps(raw)
        words = _WORDS.get(key)
        if words is None:
            words = _words(*raw)
            if len(_WORDS) < 1 << 17:
                _WORDS[key] = words
        shapes.append(words[0])
        dtypes.append(words[1])
    return shapes, dtypes


def _words(taken: Any, given: Any, taken_types: Any, given_types: Any) -> tuple[str | None, str | None]:
    try:
        sum(map(sum, taken)), sum(map(sum, given))  # refuses all but lists of lists of numbers
        shape = f"{[list(one) for one in taken]}>{[list(one) for one in given]}"[:2000]
    except TypeError:
        shape = None
    try:
        dtype = f"{','.join(taken_types)}>{','.join(given_types)}"[:200]
    except TypeError:
        dtype = None
    return shape, dtype


def _places(stacks: list[Any]) -> list[str | None]:
    """The user's innermost frame. PyTorch writes each frame once and refers to it, so a stack is known by its identities."""
    known: dict[tuple[int, ...], str | None] = {}
    found: list[str | None] = []
    for frames in stacks:
        if type(frames) is not list:
            found.append(None)
            continue
        key = tuple(map(id, frames))
        if key not in known:
            known[key] = _place(frames)
        found.append(known[key])
    return found


def _place(frames: list[Any]) -> str | None:
    for raw in frames[:500]:
        if isinstance(raw, dict) and isinstance(raw.get("filename"), str) and type(raw.get("line")) is int:
            frame = Frame(raw["filename"][:500], raw["line"], str(raw.get("name", ""))[:200])
            if frame.is_user_code:
                return f"{frame.file}:{frame.line} in {frame.function}"
    return None


def _dropped(first: int, last: int, length: int) -> int:
    """Entries that the ring overwrote: the first number, if none is left out after it as in a dump of the active ones."""
    return max(first, 0) if last - first == length - 1 else 0


def _gathered(lists: dict[str, list[Any]], calls: list[_Call], known: Sequence[Group]) -> int | None:
    """The world's size from what a gather to all gave, for Gloo, which lists no members: `[4]` in, `[3, 4]` out."""
    for call, group, shape in zip(calls, lists["group"], lists["shape"], strict=True):
        is_of_world = call[0] == "gloo" and call[1] == "all_gather" and known[group].description == "default_pg"
        if is_of_world and shape and (match := _GATHERED.fullmatch(shape)):
            return int(match["ranks"])
    return None
