"""Horovod's timeline (`HOROVOD_TIMELINE`, `horovodrun --timeline-filename`): when each rank was ready for each tensor.

[
{"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros":1794799293893122}},
{"name": "process_name", "ph": "M", "pid": 2, "args": {"name": "allreduce.grad.bias"}},
{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 200569, "pid": 2},{"ph": "X", "name": "0", "ts": 200570, "pid": 2, "dur": 0},
{"ph": "X", "name": "1", "ts": 231176, "pid": 2, "dur": 0},{"ph": "E", "ts": 231180, "pid": 2},
{"ph": "B", "name": "ALLREDUCE", "ts": 243540, "pid": 2},{"ph": "B", "name": "GLOO_ALLREDUCE", "ts": 243547, "pid": 2},
{"ph": "E", "ts": 283534, "pid": 2},{"ph": "E", "ts": 283559, "pid": 2, "args": {"dtype": "float32", "shape": "[4]"}}

The coordinator alone writes it, for all ranks; a killed job leaves it without its closing bracket. A negotiation that begins
and does not end waits for the ranks that have no mark in it. Tensors that Horovod knows from before (its response cache)
are negotiated without marks: then all ranks came, and one that does not come leaves nothing in the file. Horovod writes
its buffer out when a later event comes, so the very last negotiation of a file may lack marks that were made: it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from phalanx.model.ranks import LARGEST_WORLD
from phalanx.model.trace import CallState
from phalanx.sources.traces.cut_json import load_cut_json
from phalanx.sources.traces.protocol import Group, RankTrace, UnreadableError

NAME = "horovod timeline"
_NEGOTIATE = "NEGOTIATE_"


@dataclass(slots=True)
class _Round:
    """One negotiation of one tensor, and the operation that followed it."""

    number: int
    op: str
    tensor: str
    began: int
    ready: dict[int, int] = field(default_factory=dict)  # rank → when
    agreed: int | None = None
    started: int | None = None
    ended: int | None = None
    depth: int = 0  # of activities inside the operation
    shape: str | None = None
    dtype: str | None = None


def recognises(name: str, head: bytes) -> bool:
    """Trace events with negotiations, or with the mark that Horovod alone begins with."""
    return head.lstrip()[:1] == b"[" and (b"start_time_since_epoch_in_micros" in head or b'"NEGOTIATE_' in head)


def read(name: str, data: bytes) -> Iterator[RankTrace]:
    """What the coordinator saw of every rank."""
    events, truncated = _events(data)
    start = 0
    tensors: dict[Any, str] = {}
    rounds: list[_Round] = []
    now: dict[Any, _Round] = {}
    for event in events:
        if event.get("ph") == "M":
            known = event.get("args") if isinstance(event.get("args"), dict) else {}
            assert isinstance(known, dict)
            start = int(known.get("start_time_since_epoch_in_micros", start))
            if "name" in known:
                tensors[event.get("pid")] = str(known["name"])
            continue
        _take(event, tensors, rounds, now)
    notes = []
    if rounds and rounds[-1].agreed is None and events[-1].get("pid") in now and now[events[-1]["pid"]] is rounds[-1]:
        text = f"{name}: who came to the last negotiation ({rounds[-1].op} of {rounds[-1].tensor}): it may not be written out"
        notes.append((text, "Horovod's stall report in the job's log"))
        rounds.pop()
    ranks = sorted({rank for one in rounds for rank in one.ready})
    if not ranks:
        raise UnreadableError("it names no rank", "a timeline of a job in which a tensor was negotiated")
    if ranks[-1] >= LARGEST_WORLD:
        raise UnreadableError(f"it names a rank {ranks[-1]}")
    world = ranks[-1] + 1
    group = Group("0", "horovod", tuple(range(world)))
    unmarked = sum(not one.ready for one in rounds)
    if unmarked and all(one.agreed is not None for one in rounds):
        text = f"{name}: {unmarked} negotiations of tensors that Horovod knew name no ranks, and one that waits would not show"
        notes.append((text, "HOROVOD_CACHE_CAPACITY=0 next time"))
    for position, rank in enumerate(ranks):
        columns = _columns([one for one in rounds if rank in one.ready or not one.ready], rank, start)
        yield RankTrace(
            form=NAME, rank=rank, groups=(group,), columns=columns, truncated=truncated, world_size=world,
            notes=notes if position == 0 else (),
        )  # fmt: skip


def _events(data: bytes) -> tuple[list[dict[str, Any]], bool]:
    """The events, and whether the file breaks off, as that of a killed job does."""
    try:
        value, is_cut = load_cut_json(data.decode("utf-8", "replace").strip(), "]")
    except ValueError:
        raise UnreadableError("it is not a list of trace events") from None
    return _only_events(value), is_cut


def _only_events(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _take(event: dict[str, Any], tensors: dict[Any, str], rounds: list[_Round], now: dict[Any, _Round]) -> None:
    """One event: a negotiation begins or ends, a rank is ready, the operation begins or ends."""
    pid, what, name, ts = event.get("pid"), event.get("ph"), str(event.get("name", "")), int(event.get("ts", 0))
    if what == "B" and name.startswith(_NEGOTIATE):
        op = name.removeprefix(_NEGOTIATE).lower()
        tensor = tensors.get(pid, "?")
        now[pid] = _Round(len(rounds), op, tensor.removeprefix(op + "."), ts)
        rounds.append(now[pid])
        return
    current = now.get(pid)
    if current is None:
        return
    if what == "X" and current.agreed is None and name.isdigit():
        current.ready[int(name)] = ts
    elif what == "B":
        current.depth += 1
        current.started = current.started if current.started is not None else ts
    elif what == "E" and current.agreed is None:
        current.agreed = ts
    elif what == "E" and current.depth > 0:
        current.depth -= 1
        if current.depth == 0:
            current.ended = ts
            known = event.get("args")
            if isinstance(known, dict):
                current.shape, current.dtype = str(known.get("shape", "")) or None, str(known.get("dtype", "")) or None


def _columns(rounds: list[_Round], rank: int, start: int) -> dict[str, list[Any]]:
    """The rounds that a rank came to, in the order in which it did."""
    own = sorted(rounds, key=lambda one: (one.ready.get(rank, one.began), one.number))

    def moment(value: int | None) -> int | None:
        return None if value is None else (start + value) * 1000

    return {
        "group": [0] * len(own),
        "seq": [one.number for one in own],
        "p2p": [False] * len(own),
        "op": [f"{one.op} of {one.tensor}" for one in own],
        "shape": [one.shape for one in own],
        "dtype": [one.dtype for one in own],
        "state": [int(_state(one)) for one in own],
        "created_ns": [moment(one.ready.get(rank, one.began)) for one in own],
        "started_ns": [moment(one.started) for one in own],
        "completed_ns": [moment(one.ended) for one in own],
    }


def _state(one: _Round) -> CallState:
    if one.ended is not None:
        return CallState.COMPLETED
    return CallState.STARTED if one.started is not None else CallState.SCHEDULED
