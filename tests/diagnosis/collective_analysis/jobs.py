"""Makes flight-recorder dumps of jobs that run in the mind: ranks issue calls, a call ends when all its members are there."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phalanx.diagnosis.collective_analysis import Observation, observe
from phalanx.model.trace import Traces
from phalanx.sources import from_text
from phalanx.sources.traces import find_traces, read_traces

Fault = tuple[str, int, int]  # kind, rank, position of the call in the schedule


@dataclass(frozen=True)
class Call:
    """One collective that all members of a group make."""

    group: int
    op: str = "all_reduce"
    size: tuple[int, ...] = (4,)
    dtype: str = "Float"


@dataclass
class Job:
    """A schedule of collectives over groups; group 0 is the whole world."""

    world: int
    groups: Sequence[tuple[int, ...]]
    schedule: Sequence[Call]
    fault: Fault | None = None
    ahead: int = 2  # calls that a host queues behind an unfinished one
    issued: dict[int, list[int]] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)

    def run(self) -> Job:
        """Let everybody go on until nothing moves."""
        self.issued = {rank: [] for rank in range(self.world)}
        todo = {
            rank: [number for number, call in enumerate(self.schedule) if rank in self.groups[call.group]]
            for rank in range(self.world)
        }
        moved = True
        while moved:
            issued = [self._issue(rank, todo[rank]) for rank in todo]
            finished = [self._finish(number) for number in range(len(self.schedule))]
            moved = any(issued) or any(finished)
        return self

    def _issue(self, rank: int, todo: list[int]) -> bool:
        own = self.issued[rank]
        if len(own) == len(todo) or sum(number not in self.done for number in own) > self.ahead:
            return False
        number = todo[len(own)]
        if self.fault is not None:
            kind, broken, at = self.fault
            if rank == broken and number >= at and kind in ("host", "dead"):
                return False
        own.append(number)
        return True

    def _finish(self, number: int) -> bool:
        members = self.groups[self.schedule[number].group]
        if number in self.done or not all(number in self.issued[rank] for rank in members):
            return False
        if self.fault is not None:
            kind, broken, at = self.fault
            if (kind in ("op", "size", "dtype") and number == at) or (
                kind == "device" and broken in members and number > at
            ):
                return False
        before = (one for rank in members for one in self.issued[rank] if one < number)
        if any(one not in self.done for one in before):
            return False
        self.done.add(number)
        return True

    def dumps(
        self, kept: Mapping[int, int] | None = None, only_active: bool = False, shift: Mapping[int, int] | None = None
    ) -> dict[str, bytes]:
        """Each rank's dump by file name; `kept`: calls that the rank's ring holds; `shift`: what is added to its clock."""
        absent = self.fault[1] if self.fault is not None and self.fault[0] == "dead" else None
        return {
            f"nccl_trace_rank_{rank}": pickle.dumps(
                self._dump(rank, (kept or {}).get(rank), only_active, (shift or {}).get(rank, 0)), 2
            )
            for rank in range(self.world)
            if rank != absent
        }

    def _dump(self, rank: int, kept: int | None, only_active: bool, shift: int) -> dict[str, Any]:
        counts: dict[int, int] = {}
        ended: dict[int, int] = {}
        entries = []
        for order, number in enumerate(self.issued[rank]):
            call = self._as_called(rank, number)
            counts[call.group] = counts.get(call.group, 0) + 1
            over = number in self.done and not (
                self.fault is not None
                and self.fault[0] == "device"
                and rank == self.fault[1]
                and number >= self.fault[2]
            )
            if over:
                ended[call.group] = counts[call.group]
            entries.append(
                entry(order, call.group, counts[call.group], call, over, 1_000_000_000 + shift + order * 1_000_000)
            )
        mine = [number for number, members in enumerate(self.groups) if rank in members]
        if only_active:
            entries = [one for one in entries if one["state"] != "completed"]
        return {
            "version": "2.10",
            "pg_config": {
                str(n): {
                    "name": str(n),
                    "desc": "default_pg" if n == 0 else f"group {n}",
                    "ranks": str(list(self.groups[n])),
                }
                for n in mine
            },
            "pg_status": {
                str(n): {
                    "last_enqueued_collective": counts.get(n, -1),
                    "last_started_collective": -1,
                    "last_completed_collective": ended.get(n, -1),
                }
                for n in mine
            },
            "entries": entries[-kept:] if kept is not None else entries,
        }

    def _as_called(self, rank: int, number: int) -> Call:
        call = self.schedule[number]
        if self.fault is None or (rank, number) != self.fault[1:]:
            return call
        match self.fault[0]:
            case "op":
                return Call(call.group, "broadcast" if call.op != "broadcast" else "all_reduce", call.size, call.dtype)
            case "size":
                return Call(call.group, call.op, (*call.size, 7), call.dtype)
            case "dtype":
                return Call(call.group, call.op, call.size, "Double")
        return call


def entry(order: int, group: int, seq: int, call: Call, over: bool, time: int, **more: Any) -> dict[str, Any]:
    """An entry as PyTorch 2.13 writes it."""
    return {
        "record_id": order,
        "pg_id": group,
        "process_group": (str(group), "default_pg" if group == 0 else f"group {group}"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": f"nccl:{call.op}",
        "time_created_ns": time,
        "input_sizes": [list(call.size)],
        "input_dtypes": [call.dtype],
        "output_sizes": [list(call.size)],
        "output_dtypes": [call.dtype],
        "state": "completed" if over else "scheduled",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": time + 500_000 if over else None,
        "retired": over,
        "timeout_ms": 600000,
        "is_p2p": False,
        "frames": [],
        **more,
    }


def traces_of(files: Mapping[str, bytes]) -> list[Traces]:
    """The jobs in files."""
    found, _ = find_traces([from_text(name, data) for name, data in files.items()])
    return read_traces(found)


def observed(files: Mapping[str, bytes]) -> list[Observation]:
    """What is wrong with the one job in files."""
    (job,) = traces_of(files)
    return observe(job)
