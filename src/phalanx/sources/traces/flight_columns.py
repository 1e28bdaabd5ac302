"""Turns the entries of a flight-recorder dump into columns: a dictionary an entry in, lists of one length out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from phalanx.model.event import Frame
from phalanx.model.trace import CallState
from phalanx.sources.traces.protocol import Group

_OP = re.compile(r"(?:(?P<library>\w+):)?(?P<op>\w+)(?: (?P<one>\d+)(?P<arrow>->|<-)(?P<other>\d+))?")
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

    def positions(self, entries: Sequence[dict[str, Any]]) -> list[int]:
        """The group of each entry; each spelling is looked at once."""
        found = []
        for entry in entries:
            raw = entry.get("process_group")
            if type(raw) is list:
                raw = tuple(raw)
            if type(raw) is tuple and (len(raw) != 2 or type(raw[0]) is not str or type(raw[1]) is not str):
                raw = "?"
            elif type(raw) is not tuple and type(raw) is not str:
                raw = number if type(number := entry.get("pg_id")) is int else "?"
            position = self._named.get(raw)
            if position is None:
                position = self._named[raw] = self.position_named(raw)
                if type(number := entry.get("pg_id")) is int:
                    self.group_of_number[number] = position
            found.append(position)
        return found


def columns_of(entries: Sequence[dict[str, Any]], config: dict[str, Group]) -> Columns:
    """All columns of a dump's entries."""
    made = Columns(config)
    groups = made.positions(entries)
    calls = [_parsed(entry.get("profiling_name")) for entry in entries]
    p2p = [
        flag if type(flag := entry.get("is_p2p")) is bool else call[1] in ("send", "recv")
        for entry, call in zip(entries, calls, strict=True)
    ]
    made.lists = {
        "order": _orders(entries),
        "group": groups,
        "seq": [_seq(entry, one) for entry, one in zip(entries, p2p, strict=True)],
        "p2p": p2p,
        "op": [call[1] for call in calls],
        "peer": [_peer(made.groups[group], call[2]) for group, call in zip(groups, calls, strict=True)],
        "shape": _sizes(entries),
        "dtype": _dtypes(entries),
        "state": [_state(entry, call[0]) for entry, call in zip(entries, calls, strict=True)],
        "created_ns": [_time(entry.get("time_created_ns")) for entry in entries],
        "started_ns": [_time(entry.get("time_discovered_started_ns")) for entry in entries],
        "completed_ns": [_time(entry.get("time_discovered_completed_ns")) for entry in entries],
        "place": _places(entries),
    }
    made.dropped = _dropped(made.lists["order"])
    made.counts_operations = any(call[0] in _WITHOUT_EVENTS for call in calls)
    made.world_size = _gathered(made.lists, calls, made.groups)
    return made


_Call = tuple[str, str, int | None]
_CALLS: dict[str, _Call] = {}


def _parsed(name: object) -> _Call:
    """Library, operation and the other side's rank within the group: `nccl:send 0->3`."""
    if not isinstance(name, str):
        return "", "unknown", None
    if (known := _CALLS.get(name)) is not None:
        return known
    match = _OP.match(name[:120])
    if match is None:
        return "", name[:60], None
    other = int(match["other"]) if match["other"] else None
    made = (match["library"] or "", match["op"], other)
    if len(_CALLS) < 1 << 17:
        _CALLS[name] = made
    return made


def _peer(group: Group, local: int | None) -> int | None:
    if local is None:
        return None
    if group.members is None:
        return local if group.description == "default_pg" else None
    return group.members[local] if local < len(group.members) else None


def _orders(entries: Sequence[dict[str, Any]]) -> list[int]:
    found = [entry.get("record_id") for entry in entries]
    return found if all(type(one) is int for one in found) else list(range(len(found)))  # type: ignore[return-value]


def _seq(entry: dict[str, Any], p2p: bool) -> int | None:
    raw = entry.get("p2p_seq_id" if p2p else "collective_seq_id", entry.get("seq_id"))
    return raw if type(raw) is int else None


def _time(raw: object) -> int | None:
    return raw if type(raw) is int and 0 < raw < 1 << 62 else None


def _state(entry: dict[str, Any], library: str) -> int:
    if library in _WITHOUT_EVENTS and entry.get("retired") is True:
        return CallState.COMPLETED
    state = entry.get("state")
    return _STATES.get(state, CallState.SCHEDULED) if isinstance(state, str) else CallState.SCHEDULED


_WORDS: dict[object, str] = {}


def _sizes(entries: Sequence[dict[str, Any]]) -> list[str | None]:
    """Sizes in and out as one word. The sum refuses anything but lists of lists of numbers, which a hostile dump could nest."""
    found: list[str | None] = []
    for entry in entries:
        taken, given = entry.get("input_sizes"), entry.get("output_sizes")
        try:
            sum(map(sum, taken)), sum(map(sum, given))  # type: ignore[arg-type]
            key = (tuple(map(tuple, taken)), tuple(map(tuple, given)))  # type: ignore[arg-type]
        except TypeError:
            found.append(None)
            continue
        word = _WORDS.get(key)
        if word is None:
            word = f"{[list(one) for one in key[0]]}>{[list(one) for one in key[1]]}"[:2000]
            if len(_WORDS) < 1 << 17:
                _WORDS[key] = word
        found.append(word)
    return found


def _dtypes(entries: Sequence[dict[str, Any]]) -> list[str | None]:
    found: list[str | None] = []
    for entry in entries:
        taken, given = entry.get("input_dtypes"), entry.get("output_dtypes")
        try:
            found.append(f"{','.join(taken)}>{','.join(given)}"[:200])  # type: ignore[arg-type]
        except TypeError:
            found.append(None)
    return found


def _places(entries: Sequence[dict[str, Any]]) -> list[str | None]:
    """The user's innermost frame. PyTorch writes each frame once and refers to it, so a stack is known by its identities."""
    known: dict[tuple[int, ...], str | None] = {}
    found: list[str | None] = []
    for entry in entries:
        frames = entry.get("frames")
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


def _dropped(orders: list[int]) -> int:
    """Entries that the ring overwrote: the first number, if none is left out after it as in a dump of the active ones."""
    if not orders or orders[-1] - orders[0] != len(orders) - 1:
        return 0
    return max(orders[0], 0)


def _gathered(lists: dict[str, list[Any]], calls: list[_Call], known: Sequence[Group]) -> int | None:
    """The world's size from what a gather to all gave, for Gloo, which lists no members: `[4]` in, `[3, 4]` out."""
    for call, group, shape in zip(calls, lists["group"], lists["shape"], strict=True):
        is_of_world = call[0] == "gloo" and call[1] == "all_gather" and known[group].description == "default_pg"
        if is_of_world and shape and (match := _GATHERED.fullmatch(shape)):
            return int(match["ranks"])
    return None
