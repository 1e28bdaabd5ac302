"""Reads from the flight recorders' dumps in which collective each rank waits; the full analysis is the diagnosis'."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LARGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class Call:
    """A collective that a rank entered."""

    group: str
    seq: int
    op: str
    shape: str


@dataclass(frozen=True, slots=True)
class GroupState:
    """How far a rank came in one group: the last collective that it entered, and the first that is not done."""

    entered: Call
    waits_in: Call | None
    calls: Mapping[int, Call]


def read_dump(path: Path) -> dict[str, GroupState] | None:
    """The state of every group on one rank; None if there is no dump, or none that can be read."""
    try:
        if path.stat().st_size > _LARGEST:
            return None
        loaded = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(loaded, dict):
        return None
    return groups_of(loaded.get("entries") or [])


def groups_of(entries: list[dict[str, Any]]) -> dict[str, GroupState]:
    """From the recorder's entries. Point-to-point calls have a count of their own and are left out."""
    by_group: dict[str, list[tuple[Call, bool]]] = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("is_p2p"):
            continue
        pair = entry.get("process_group") or [entry.get("pg_id", "")]
        name = str(pair[0]) if isinstance(pair, list) and pair else str(pair)
        op = str(entry.get("profiling_name", "")).split(":", 1)[-1]
        shape = f"{entry.get('input_sizes')} {entry.get('input_dtypes')}"
        call = Call(name, int(entry.get("collective_seq_id") or 0), op, shape)
        by_group.setdefault(name, []).append((call, _is_done(entry)))
    found = {}
    for name, calls in by_group.items():
        waits = [call for call, done in calls if not done]
        found[name] = GroupState(
            max((call for call, _ in calls), key=lambda call: call.seq),
            min(waits, key=lambda call: call.seq) if waits else None,
            {call.seq: call for call, _ in calls},
        )
    return found


def _is_done(entry: Mapping[str, Any]) -> bool:
    """Gloo leaves the state at `scheduled` and only retires the entry; NCCL sets both."""
    return bool(entry.get("retired")) or entry.get("state") == "completed"
