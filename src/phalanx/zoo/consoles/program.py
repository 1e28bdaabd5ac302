"""The collectives of one training step, and who waits where when a rank stays away from one of them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from phalanx.zoo.consoles.job import Group, Job


@dataclass(frozen=True, slots=True)
class Call:
    """One collective of a step: `ranks` take part, which for a send are only two of its group."""

    group: Group
    op: str
    numel_in: int
    numel_out: int
    ranks: tuple[int, ...]

    def op_of(self, rank: int) -> str:
        if self.op == "SEND":
            return "SEND" if rank == self.ranks[0] else "RECV"
        return self.op


@dataclass(frozen=True, slots=True)
class Position:
    """Where a rank stands in a group: the call it waits in (None: in none), the last it put in and the last that ended."""

    call: Call | None
    seq: int
    enqueued: int
    completed: int


def step_of(job: Job) -> list[Call]:
    """The calls of one step of all ranks, in an order in which they can happen."""
    world = job.groups[0]
    size = job.world
    if job.parallelism == "ddp":
        return [_whole(world, "ALLREDUCE", numel, numel) for numel in (27304960, 26214400, 25557032, 7087872)]
    if job.parallelism == "zero":
        buckets = [_whole(world, "_REDUCE_SCATTER_BASE", 8388608 * size, 8388608) for _ in range(2)]
        return [*buckets, _whole(world, "ALLREDUCE", 1, 1), _whole(world, "_ALLGATHER_BASE", 4194304, 4194304 * size)]
    if job.parallelism == "fsdp":
        shards = [one for one in job.groups if one.name == "mesh_fsdp"] or [world]
        copies = [one for one in job.groups if one.name == "mesh_replicate"]
        numels = (67108864, 33554432)
        calls = [_whole(one, "_ALLGATHER_BASE", n // len(one.ranks), n) for n in numels for one in shards]
        calls += [_whole(one, "_REDUCE_SCATTER_BASE", n, n // len(one.ranks)) for n in numels for one in shards]
        calls += [_whole(one, "ALLREDUCE", 8388608, 8388608) for one in copies]
        return [*calls, _whole(world, "ALLREDUCE", 1, 1)]
    return _megatron(job)


def _megatron(job: Job) -> list[Call]:
    by_name: dict[str, list[Group]] = {}
    for group in job.groups:
        by_name.setdefault(group.name, []).append(group)
    stage = job.world // 2
    tensor, data = by_name["TENSOR_MODEL_PARALLEL_GROUP"], by_name["DATA_PARALLEL_GROUP"]
    first = [one for one in tensor if one.ranks[0] < stage]
    last = [one for one in tensor if one.ranks[0] >= stage]
    calls = [_whole(one, "ALLREDUCE", 16777216, 16777216) for one in first for _ in range(2)]
    calls += [Call(one, "SEND", 16777216, 16777216, one.ranks) for one in by_name["PIPELINE_MODEL_PARALLEL_GROUP"]]
    calls += [_whole(one, "ALLREDUCE", 16777216, 16777216) for one in last for _ in range(2)]
    calls += [_whole(one, "ALLTOALL_BASE", 4194304, 4194304) for one in by_name["EXPERT_MODEL_PARALLEL_GROUP"]]
    calls += [
        Call(one, "SEND", 16777216, 16777216, one.ranks[::-1]) for one in by_name["PIPELINE_MODEL_PARALLEL_GROUP"]
    ]
    calls += [_whole(one, "_REDUCE_SCATTER_BASE", 131072000, 131072000 // len(one.ranks)) for one in data]
    calls += [_whole(one, "_ALLGATHER_BASE", 131072000 // len(one.ranks), 131072000) for one in data]
    return [*calls, _whole(job.groups[0], "ALLREDUCE", 1, 1)]


def _whole(group: Group, op: str, numel_in: int, numel_out: int) -> Call:
    return Call(group, op, numel_in, numel_out, group.ranks)


def waits(
    job: Job, steps: int, rng: random.Random, absent: Mapping[int, int]
) -> tuple[dict[int, Position], dict[int, Position]]:
    """Where each rank ends up after `steps` whole steps: in the group it waits in, and in the default group.

    `absent` gives for a rank how many of its calls of the last step it makes before it stays away. Numbers count
    from 1 within a group and a rank. A call that lacks one rank holds all others of it, and so the hold spreads.
    """
    calls = step_of(job)
    made: dict[tuple[int, int], int] = {}
    for call in calls:
        for rank in call.ranks:
            made[call.group.uid, rank] = made.get((call.group.uid, rank), 0) + 1
    base = {key: count * steps for key, count in made.items()}
    done, entered = dict(base), dict(base)
    own: dict[int, int] = dict.fromkeys(range(job.world), 0)
    held: dict[int, tuple[Call, int]] = {}
    for call in calls:
        away = [rank for rank in call.ranks if rank in held or own[rank] >= absent.get(rank, len(calls))]
        for rank in call.ranks:
            if rank in away:
                continue
            own[rank] += 1
            key = (call.group.uid, rank)
            entered[key] = entered.get(key, 0) + 1
            if away:
                held[rank] = (call, entered[key])
            else:
                done[key] = entered[key]
    ahead = {rank: rng.choice((0, 0, 0, 1, 2)) for rank in range(job.world)}
    main = {
        rank: Position(None, entered.get((0, rank), 0), entered.get((0, rank), 0), done.get((0, rank), 0))
        for rank in range(job.world)
    }
    stuck = {}
    for rank, (call, seq) in held.items():
        key = (call.group.uid, rank)
        room = base[key] + made[key] - seq
        put = seq + min(ahead[rank], room)
        stuck[rank] = Position(call, seq, put, done[key])
        if call.group.uid == 0:
            main[rank] = replace(main[rank], call=call, enqueued=put)
    return stuck, main
