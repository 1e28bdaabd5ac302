"""Writes the flight-recorder dumps of a synthetic job of up to 10,000 ranks with one fault in it, and the truth beside.

python bench/make_traces.py bench/data/traces-256 --ranks 256 --fault host-stall
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy

from dump_bytes import NOW, Body, Memo, body_of, encode, places_of_times
from job_shape import DESCRIPTIONS, EMBEDDING, SHAPES, TENSOR, WORLD, Call, Shape, other_shape, shape_of, step_of

FAULTS = ("none", "missing", "mismatch-op", "mismatch-shape", "host-stall", "device-stall", "straggler", "dead")
_EPOCH = 1_758_610_000_000_000_000
_FIRST_SEQ = 100_000  # the ring has dropped what came before
_POLL = 100_000_000  # PyTorch's watchdog sees that a call has ended at its next round
_LATE = 250_000_000  # by how much the straggler is late in every step
Key = tuple[int, ...]  # what two ranks must both reach: a collective of a group, or one point-to-point of a pair


@dataclass(frozen=True)
class Fault:
    """What is wrong: which rank, at which call of its last step."""

    name: str
    rank: int
    at: int


class Job:
    """A job of a shape, its last step stopped by a fault."""

    def __init__(self, shape: Shape, fault: Fault, entries: int) -> None:
        self.shape, self.fault, self.entries = shape, fault, entries
        self.steps = {stage: step_of(shape, stage) for stage in range(shape.pipeline)}
        self.last = -(-entries // min(len(step) for step in self.steps.values()))  # number of the last step
        self.bodies: dict[tuple[int, int, str], Body] = {}
        self.kinds = {stage: shape.kinds(stage) for stage in self.steps}
        self.counts = {stage: Counter((c.kind, c.p2p) for c in step) for stage, step in self.steps.items()}

    def calls(self, rank: int) -> list[Call]:
        """The calls of the rank's last step, the fault in them."""
        step = self.steps[self.shape.stage(rank)]
        if rank != self.fault.rank:
            return step
        before, call, after = step[: self.fault.at], step[self.fault.at], step[self.fault.at + 1 :]
        if self.fault.name in ("host-stall", "dead"):
            return before
        if self.fault.name == "missing":  # it went to a barrier of all ranks instead, and waits there
            return [*before, replace(step[-1], op="all_reduce_barrier", inputs=((1,),), outputs=((1,),))]
        if self.fault.name == "mismatch-op":
            return [*before, replace(call, op="all_reduce", outputs=call.inputs), *after]
        return [*before, other_shape(call), *after] if self.fault.name == "mismatch-shape" else step

    def keys(self, rank: int, calls: list[Call]) -> list[Key]:
        """For each call what the others of it must reach too."""
        counts: Counter[tuple[int, int]] = Counter()
        found: list[Key] = []
        numbers = {kind: self.shape.group(kind, rank) for kind in self.kinds[self.shape.stage(rank)]}
        block = self.shape.tensor * self.shape.data
        for call in calls:
            if call.to is None:
                counts[call.kind, 0] += 1
                found.append((call.kind, numbers[call.kind][0], counts[call.kind, 0]))
            else:
                other = rank % block + call.to * block
                pair = (rank, other) if call.op == "send" else (other, rank)
                counts[pair] += 1
                found.append((-1, *pair, counts[pair]))
        return found

    @cached_property
    def reached(self) -> list[int]:
        """How many calls of its last step each rank's device has done when nothing moves any more."""
        keys = [self.keys(rank, self.calls(rank)) for rank in range(self.shape.ranks)]
        sizes = {(kind): len(self.shape.group(kind, 0)[1]) for kind in range(7)}
        done = [0] * self.shape.ranks
        if self.fault.name in ("none", "straggler"):
            return [len(one) for one in keys]
        cursed = keys[self.fault.rank][self.fault.at] if self.fault.at < len(keys[self.fault.rank]) else None
        stuck = cursed if self.fault.name.startswith("mismatch") else None
        waiting: defaultdict[Key, list[int]] = defaultdict(list)
        ready = list(range(self.shape.ranks))
        while ready:
            rank = ready.pop()
            if done[rank] == len(keys[rank]):
                continue
            key = keys[rank][done[rank]]
            if key == stuck or (self.fault.name == "device-stall" and rank == self.fault.rank and key == cursed):
                continue
            waiting[key].append(rank)
            if len(waiting[key]) == (2 if key[0] == -1 else sizes[key[0]]):
                for member in waiting.pop(key):
                    done[member] += 1
                    ready.append(member)
        return done

    @cached_property
    def ends(self) -> dict[int, list[int]]:
        """For each stage when, within a healthy step, each call ends; all members of a call end it together."""
        clock = dict.fromkeys(self.steps, 0)
        at = dict.fromkeys(self.steps, 0)
        ends: dict[int, list[int]] = {stage: [] for stage in self.steps}

        def finish(stages: list[int]) -> None:
            moment = max(clock[stage] for stage in stages) + self.steps[stages[0]][at[stages[0]]].nanoseconds
            for stage in stages:
                clock[stage] = moment
                ends[stage].append(moment)
                at[stage] += 1

        while any(at[stage] < len(step) for stage, step in self.steps.items()):
            for stage, step in self.steps.items():
                while at[stage] < len(step):
                    call = step[at[stage]]
                    partners = [stage]
                    if call.to is not None:
                        partners = [stage, call.to]
                    elif call.kind in (WORLD, EMBEDDING) or DESCRIPTIONS[call.kind] == "MODEL_PARALLEL_GROUP":
                        partners = [s for s in self.steps if call.kind in self.kinds[s]]
                    facing = [self.steps[s][at[s]] if at[s] < len(self.steps[s]) else None for s in partners]
                    meets = all(
                        other is not None and other.kind == call.kind and (call.to is None or other is call or other.to == stage)
                        for other in facing
                    )  # fmt: skip
                    if not meets:
                        break
                    finish(partners)
        return ends

    def entry(self, stage: int, step: int, index: int, call: Call, state: str, names: dict[int, str], memo: Memo) -> bytes:  # fmt: skip
        """One call as its bytes. All ranks of a stage share them but for the times."""
        own, counts = self.steps[stage], self.counts[stage]
        before = Counter((c.kind, c.p2p) for c in own[:index])
        same = (call.kind, False)
        collective = _FIRST_SEQ + step * counts[same] + before[same] + (0 if call.p2p else 1)
        point = _FIRST_SEQ + step * counts[call.kind, True] + before[call.kind, True] + 1 if call.p2p else 0
        local = {"send": f" {stage}->{call.to}", "recv": f" {stage}<-{call.to}"}.get(call.op, "")
        done = state == "completed"
        entry: dict[str, object] = {
            "frames": list(call.frames), "record_id": _FIRST_SEQ + step * len(own) + index, "pg_id": self.kinds[stage].index(call.kind),
            "process_group": (names[call.kind], DESCRIPTIONS[call.kind]), "thread_name": "python3", "thread_id": "23456244340032",
            "collective_seq_id": collective, "p2p_seq_id": point, "op_id": collective + point,
            "profiling_name": f"nccl:{call.op}{local}", "time_created_ns": NOW,
        }  # fmt: skip
        if done:
            entry["duration_ms"] = call.nanoseconds / 1e6
        entry |= {
            "input_sizes": [list(one) for one in call.inputs], "input_dtypes": [call.dtype] * len(call.inputs),
            "output_sizes": [list(one) for one in call.outputs], "output_dtypes": [call.dtype] * len(call.outputs), "state": state,
            "time_discovered_started_ns": None if state == "scheduled" else NOW, "time_discovered_completed_ns": NOW if done else None,
            "retired": done, "timeout_ms": 600_000, "is_p2p": call.p2p,
        }  # fmt: skip
        return encode(entry, memo)

    def window(self, rank: int) -> list[tuple[int, int]]:
        """Step and index of the calls that the rank's ring still holds."""
        own, tail = len(self.steps[self.shape.stage(rank)]), len(self.calls(rank))
        first = self.last * own + tail - self.entries
        return [divmod(number, own) for number in range(max(first, 0), self.last * own)] + [
            (self.last, index) for index in range(tail)
        ][-self.entries :]

    def body(self, rank: int, header: Memo) -> Body:
        """The bytes of the rank's entries; ranks of a stage that stopped at the same call share them."""
        stage, reached = self.shape.stage(rank), self.reached[rank]
        key = (stage, reached, self.fault.name if rank == self.fault.rank else "")
        if key not in self.bodies:
            calls, memo = self.calls(rank), header.copy()
            names = self.names(rank)
            parts = []
            for step, index in self.window(rank):
                call = calls[index] if step == self.last else self.steps[stage][index]
                parts.append(self.entry(stage, step, index, call, self.state(rank, step, index), names, memo))
            self.bodies[key] = body_of(parts, [places_of_times(part) for part in parts])
        return self.bodies[key]

    def state(self, rank: int, step: int, index: int) -> str:
        """How far a call came: the device runs them one after the other, the host is far ahead of it."""
        if step < self.last or index < self.reached[rank]:
            return "completed"
        never = self.fault.name == "device-stall" and rank == self.fault.rank
        return "scheduled" if index > self.reached[rank] or never else "started"

    def names(self, rank: int) -> dict[int, str]:
        kinds = self.kinds[self.shape.stage(rank)]
        return {kind: self.shape.name(kind, self.shape.group(kind, rank)[0]) for kind in kinds}

    def header(self, rank: int) -> tuple[bytes, Memo]:
        """Everything before the entries: groups with their members, and how far each came."""
        memo, kinds = Memo(), self.kinds[self.shape.stage(rank)]
        names = self.names(rank)
        groups = {names[k]: {"name": names[k], "desc": DESCRIPTIONS[k], "ranks": self.members(k, rank)} for k in kinds}
        calls, counts = self.calls(rank), self.counts[self.shape.stage(rank)]
        status = {}
        for place, kind in enumerate(kinds):
            base = _FIRST_SEQ + self.last * (counts[kind, False] + counts[kind, True])
            done = sum(call.kind == kind for call in calls[: self.reached[rank]])
            started = done + (self.reached[rank] < len(calls) and calls[self.reached[rank]].kind == kind)
            issued = sum(call.kind == kind for call in calls)
            status[str(place)] = {
                "last_enqueued_collective": base + issued, "last_started_collective": base + started, "last_completed_collective": base + done,
            }  # fmt: skip
        whole = {"version": "2.10", "pg_config": groups, "comm_lib_version": "2.27.5", "pg_status": status}
        head = b"\x80\x02" + encode(whole, memo)[:-1] + encode("entries", memo) + b"]("
        return head, memo

    def members(self, kind: int, rank: int) -> str:
        if kind == WORLD:
            return self._world
        return str(list(self.shape.group(kind, rank)[1]))

    @cached_property
    def _world(self) -> str:
        return str(list(range(self.shape.ranks)))

    def times(self, rank: int, random_numbers: numpy.random.Generator) -> numpy.ndarray:
        """The times of the rank's entries by its own clock, in the order of writing."""
        stage = self.shape.stage(rank)
        skew = int(random_numbers.integers(-5_000_000, 5_000_000))
        phase = int(random_numbers.integers(0, _POLL))
        ends = numpy.array(self.ends[stage], dtype=numpy.int64)
        straggles = self.fault.name == "straggler"
        length = int(max(max(one) for one in self.ends.values())) + (_LATE if straggles else 0) + 20_000_000
        late = _LATE if straggles and rank == self.fault.rank else 0
        window = numpy.array(self.window(rank), dtype=numpy.int64)
        step, index = window[:, 0], window[:, 1]
        began = _EPOCH + skew + step * length
        created = began + late + index * 40_000 + random_numbers.integers(0, 20_000, len(window))
        ended = began + (_LATE if straggles else 0) + ends[index]
        wanted = numpy.array([call.nanoseconds for call in self.steps[stage]], dtype=numpy.int64)[index]
        started = numpy.maximum(ended - wanted, created)
        seen = [created, _next_poll(started, phase), _next_poll(ended, phase)]
        states = [self.state(rank, int(s), int(i)) for s, i in window[-len(self.calls(rank)) :].tolist()]
        kept = numpy.ones((len(window), 3), dtype=bool)
        for place, state in enumerate(states, len(window) - len(states)):
            kept[place] = (True, state != "scheduled", state == "completed")
        return numpy.stack(seen, axis=1)[kept]

    def dump(self, rank: int, random_numbers: numpy.random.Generator) -> bytes:
        """The whole file of one rank."""
        head, memo = self.header(rank)
        body = self.body(rank, memo)
        return head + body.with_times(self.times(rank, random_numbers)) + b"eu."


def _next_poll(moments: numpy.ndarray, phase: int) -> numpy.ndarray:
    return moments + (phase - moments) % _POLL


def choose_fault(name: str, shape: Shape, rank: int | None, seed: int) -> Fault:
    """The rank (drawn unless given) and the call at which it breaks: a tensor-parallel one in the middle of its backward."""
    chosen = random.Random(seed).randrange(shape.ranks) if rank is None else rank
    step = step_of(shape, shape.stage(chosen))
    candidates = [i for i, call in enumerate(step) if call.kind == TENSOR and call.op == "_all_gather_base"]
    return Fault(name, chosen, candidates[len(candidates) * 3 // 4])


def write_job(folder: Path, ranks: int, fault_name: str, entries: int = 2000, rank: int | None = None, seed: int = 0, flat: bool = False) -> dict[str, object]:  # fmt: skip
    """Write the dumps into a folder and the truth beside it; the same arguments give the same bytes."""
    shape = shape_of(ranks, flat)
    fault = choose_fault(fault_name, shape, rank, seed)
    job = Job(shape, fault, entries)
    folder.mkdir(parents=True, exist_ok=True)
    random_numbers = numpy.random.default_rng(seed)
    total = 0
    for number in range(ranks):
        if fault_name == "dead" and number == fault.rank:
            continue
        data = job.dump(number, random_numbers)
        (folder / f"nccl_trace_rank_{number}").write_bytes(data)
        total += len(data)
    call = job.steps[shape.stage(fault.rank)][fault.at]
    name = job.names(fault.rank)[call.kind]
    truth: dict[str, object] = {
        "fault": fault_name, "ranks": [] if fault_name == "none" else [fault.rank], "group": name, "description": DESCRIPTIONS[call.kind],
        "op": call.op, "world": ranks, "shape": shape.__dict__, "entries": entries, "bytes": total,
    }  # fmt: skip
    folder.with_name(folder.name + ".truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    return truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, choices=sorted(SHAPES), default=256)
    parser.add_argument("--fault", choices=FAULTS, default="host-stall")
    parser.add_argument("--entries", type=int, default=2000, help="entries a rank")
    parser.add_argument("--rank", type=int, help="the rank that breaks; drawn unless given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flat", action="store_true", help="without pipeline stages: no point-to-point calls")
    given = parser.parse_args()
    truth = write_job(given.folder, given.ranks, given.fault, given.entries, given.rank, given.seed, given.flat)
    print(json.dumps(truth))


if __name__ == "__main__":
    main()
