"""A job in the mind: ranks with programs of collectives and point-to-point calls, run until nothing moves, and dumped as PyTorch does.

Independent of what judges the dumps. A host issues calls in its program's order and runs a few ahead; a collective ends when it
is the first outstanding one of its group in every member; the k-th send of a pair meets its k-th receive.
"""

from __future__ import annotations

import json
import pickle
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

_EPOCH = 1_758_610_000_000_000_000
_VERSIONS = ("2.4", "2.7", "2.9", "2.10")


@dataclass(frozen=True)
class Call:
    """One call of one rank. `peer`: the other side of a send or a receive; `waits`: the host goes no further before it ends."""

    group: int
    op: str
    size: tuple[int, ...] = (64,)
    dtype: str = "Float"
    peer: int | None = None
    waits: bool = False
    line: int = 10

    @property
    def pair(self) -> tuple[int, int] | None:
        return None if self.peer is None else (self.group, self.peer)


@dataclass
class Issued:
    call: Call
    number: int  # of a collective in its group, of a point-to-point call in its group
    done: bool = False
    started: bool = False


@dataclass
class Layout:
    """Ranks on a grid of tensor, data and pipeline parallelism, placed at random: groups are not ranges."""

    tensor: int
    data: int
    pipeline: int
    place: list[int]  # position on the grid -> rank

    @property
    def world(self) -> int:
        return self.tensor * self.data * self.pipeline

    def groups(self) -> list[tuple[int, ...]]:
        """The world, then tensor, data and pipeline groups."""
        t, d, p = self.tensor, self.data, self.pipeline
        at = self.place
        found = [tuple(range(self.world))]
        found += [tuple(sorted(at[(s * d + r) * t + k] for k in range(t))) for s in range(p) for r in range(d)]
        found += [tuple(sorted(at[(s * d + r) * t + k] for r in range(d))) for s in range(p) for k in range(t)]
        return found + [tuple(sorted(at[(s * d + r) * t + k] for s in range(p))) for r in range(d) for k in range(t)]

    def of(self, rank: int) -> tuple[int, int, int, int]:
        """The stage of a rank, and its tensor, data and pipeline groups' numbers."""
        position = self.place.index(rank)
        k, rest = position % self.tensor, position // self.tensor
        r, s = rest % self.data, rest // self.data
        first_data = 1 + self.pipeline * self.data
        first_pipeline = first_data + self.pipeline * self.tensor
        return s, 1 + s * self.data + r, first_data + s * self.tensor + k, first_pipeline + r * self.tensor + k

    def stage_mate(self, rank: int, step: int) -> int:
        return self.place[self.place.index(rank) + step * self.tensor * self.data]


def layout(choose: random.Random, tensor: int, data: int, pipeline: int = 1) -> Layout:
    place = list(range(tensor * data * pipeline))
    choose.shuffle(place)
    return Layout(tensor, data, pipeline, place)


def training(grid: Layout, steps: int, layers: int = 2) -> dict[int, list[Call]]:
    """What every rank calls: forward and backward through the stages, then its gradients, then a sum over all."""
    programs: dict[int, list[Call]] = {}
    for rank in range(grid.world):
        stage, tensor, data, pipe = grid.of(rank)
        step: list[Call] = []
        if stage > 0:
            step.append(Call(pipe, "recv", peer=grid.stage_mate(rank, -1), waits=True, line=20))
        step += [Call(tensor, "_all_gather_base", line=21), Call(tensor, "all_reduce", line=22)] * layers
        if stage < grid.pipeline - 1:
            step.append(Call(pipe, "send", peer=grid.stage_mate(rank, 1), line=23))
            step.append(Call(pipe, "recv", peer=grid.stage_mate(rank, 1), waits=True, line=24))
        step += [Call(tensor, "_reduce_scatter_base", line=25)] * layers
        if stage > 0:
            step.append(Call(pipe, "send", peer=grid.stage_mate(rank, -1), line=26))
        step += [Call(data, "all_reduce", (1024,), line=27), Call(0, "all_reduce", (1,), waits=True, line=28)]
        programs[rank] = step * steps
    return programs


@dataclass
class Simulation:
    """`stands`: rank -> place in its program that its host does not reach; `frozen`: the same for its device; `dead`: no dump."""

    groups: list[tuple[int, ...]]
    programs: dict[int, list[Call]]
    stands: dict[int, int] = field(default_factory=dict)
    frozen: dict[int, int] = field(default_factory=dict)
    cut: set[int] = field(default_factory=set)  # groups through which no data goes any more, from `cut_after` on
    cut_after: int = 0
    ahead: int = 3
    issued: dict[int, list[Issued]] = field(default_factory=dict)

    def run(self) -> Simulation:
        """Let everybody go on until nothing moves."""
        self.issued = {rank: [] for rank in self.programs}
        moved = True
        while moved:
            issued = [self._issue(rank) for rank in self.programs]
            moved = self._finish() or any(issued)
        self._start()
        return self

    def _issue(self, rank: int) -> bool:
        own, program = self.issued[rank], self.programs[rank]
        at = len(own)
        outstanding = [one for one in own[-64:] if not one.done]
        if at >= min(len(program), self.stands.get(rank, len(program))) or len(outstanding) > self.ahead:
            return False
        if any(one.call.waits for one in outstanding):
            return False
        call = program[at]
        same = sum(one.call.group == call.group and (one.call.peer is None) == (call.peer is None) for one in own)
        own.append(Issued(call, same + 1))
        return True

    def _firsts(self, rank: int) -> dict[object, tuple[int, Issued]]:
        """The first outstanding call of each group's stream, or of each direction to each peer."""
        found: dict[object, tuple[int, Issued]] = {}
        for place, one in enumerate(self.issued[rank]):
            key = one.call.group if one.call.peer is None else (one.call.group, one.call.op, one.call.peer)
            if not one.done:
                found.setdefault(key, (place, one))
        return found

    def _can(self, rank: int, place: int, one: Issued) -> bool:
        return place < self.frozen.get(rank, 1 << 60) and not (
            one.call.group in self.cut and one.number > self.cut_after
        )

    def _finish(self) -> bool:
        firsts = {rank: self._firsts(rank) for rank in self.programs}
        moved = False
        for group, members in enumerate(self.groups):
            here = [(rank, *firsts[rank][group]) for rank in members if group in firsts.get(rank, {})]
            same = {(one.call.op, one.call.size, one.call.dtype) for _, _, one in here}
            if len(here) == len(members) and len(same) == 1 and len({one.number for _, _, one in here}) == 1:
                moved |= self._end(here)
        for rank, calls in firsts.items():
            for key, (place, one) in calls.items():
                if isinstance(key, tuple) and key[1] == "send" and not one.done:
                    met = firsts[key[2]].get((key[0], "recv", rank)) if key[2] in firsts else None
                    if met is not None and not met[1].done:
                        moved |= self._end([(rank, place, one), (key[2], *met)])
        return moved

    def _end(self, parts: list[tuple[int, int, Issued]]) -> bool:
        if not all(self._can(*part) for part in parts):
            return False
        for _, _, one in parts:
            one.done = one.started = True
        return True

    def _start(self) -> None:
        for rank in self.programs:
            for place, one in self._firsts(rank).values():
                one.started = place < self.frozen.get(rank, 1 << 60)

    def dump(self, rank: int, choose: random.Random, kept: int | None = None, version: str = "2.10") -> dict[str, Any]:
        """What the rank's recorder holds, by a clock that may be hours off."""
        clock = _EPOCH + choose.randrange(-(10**13), 10**13)
        entries = []
        seen: dict[int, int] = defaultdict(int)
        for order, one in enumerate(self.issued[rank]):
            group = one.call.group
            seen[group] += one.call.peer is None
            entries.append(self._entry(rank, order, one, seen[group], clock + order * 2_000_000))
        mine = [number for number, members in enumerate(self.groups) if rank in members]
        config = {str(n): {"name": str(n), "desc": _described(n), "ranks": str(list(self.groups[n]))} for n in mine}
        whole = {"version": version, "pg_config": config, "entries": entries[-kept:] if kept else entries}
        if version != "2.4":
            whole["pg_status"] = {str(place): self._status(rank, number) for place, number in enumerate(mine)}
        return whole

    def _status(self, rank: int, group: int) -> dict[str, int]:
        calls = [one for one in self.issued[rank] if one.call.group == group]
        counts = (len(calls), sum(one.started for one in calls), sum(one.done for one in calls))
        names = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
        return {name: count or -1 for name, count in zip(names, counts, strict=True)}

    def _entry(self, rank: int, order: int, one: Issued, collectives: int, time: int) -> dict[str, Any]:
        call, members = one.call, self.groups[one.call.group]
        arrow = {"send": "->", "recv": "<-"}.get(call.op)
        words = f" {members.index(rank)}{arrow}{members.index(call.peer)}" if call.peer is not None else ""
        sizes = [list(call.size)]
        state = "completed" if one.done else "started" if one.started else "scheduled"
        return {
            "record_id": order, "pg_id": call.group, "process_group": (str(call.group), _described(call.group)),
            "collective_seq_id": collectives, "p2p_seq_id": one.number if call.peer is not None else 0, "op_id": order,
            "profiling_name": f"nccl:{call.op}{words}", "time_created_ns": time, "input_sizes": sizes, "output_sizes": sizes,
            "input_dtypes": [call.dtype], "output_dtypes": [call.dtype], "state": state,
            "time_discovered_started_ns": time + 10_000 if one.started else None,
            "time_discovered_completed_ns": time + 900_000 if one.done else None, "retired": one.done, "timeout_ms": 600_000,
            "is_p2p": call.peer is not None, "frames": [{"name": "step", "filename": "train.py", "line": call.line}],
        }  # fmt: skip

    def files(self, choose: random.Random, without: Iterable[int] = (), rings: bool = False, mixed: bool = False) -> dict[str, bytes]:  # fmt: skip
        """Dumps by name. `rings`: each keeps another number of calls; `mixed`: releases and forms differ."""
        found = {}
        for rank in sorted(set(self.programs) - set(without)):
            kept = choose.randrange(24, 80) if rings else None
            version = choose.choice(_VERSIONS) if mixed else "2.10"
            dump = self.dump(rank, choose, kept, version)
            if mixed and choose.random() < 0.5:
                found[f"nccl_trace_rank_{rank}.json"] = as_json(dump)
            else:
                found[f"nccl_trace_rank_{rank}"] = pickle.dumps(dump, 2)
        return found


def as_json(dump: dict[str, Any]) -> bytes:
    """As PyTorch's JSON: 0 for no time, no stacks."""
    entries = []
    for one in dump["entries"]:
        plain = {key: value for key, value in one.items() if key != "frames"}
        times = {key: value or 0 for key, value in plain.items() if key.startswith("time_")}
        entries.append(plain | times)
    return json.dumps(dump | {"entries": entries}, separators=(",", ":")).encode()


def _described(group: int) -> str:
    return "default_pg" if group == 0 else "undefined"


def places(program: list[Call], op: str | None = None, group: int | None = None) -> list[int]:
    """Where in the second half of a program such calls stand."""
    fit = [n for n, call in enumerate(program) if op in (None, call.op) and group in (None, call.group)]
    return [n for n in fit if n >= len(program) // 2]


def changed(program: list[Call], at: int, **words: Any) -> list[Call]:
    """The program with one call made otherwise."""
    return [*program[:at], replace(program[at], **words), *program[at + 1 :]]
