"""Collectives that some rank never joins, joins too late, or joins with another call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from phalanx.zoo.consoles import acts, endings
from phalanx.zoo.consoles.formats import render
from phalanx.zoo.consoles.job import groups_of
from phalanx.zoo.consoles.program import step_of
from phalanx.zoo.consoles.situation import Situation
from phalanx.zoo.consoles.stage import Stage

_LOGIC = ("fix-behavior-logic", "fix-batch-size-or-data-partition", "fix-distributed-api-usage")
_MISSING = (*_LOGIC, "fix-communication-configuration", "other")


def _away(stage: Stage, rank: int) -> dict[int, int]:
    """The rank stays away from one of its calls, not always the first."""
    own = sum(rank in call.ranks for call in step_of(stage.job))
    return {rank: stage.rng.randrange(own)}


def _missing(stage: Stage) -> tuple[int, ...]:
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    stuck, main = acts.hold(stage, _away(stage, culprit))
    in_default = all(one.call is not None and one.call.group.uid == 0 for one in stuck.values())
    behind = all(main[rank].enqueued > main[culprit].enqueued for rank in stuck)
    acts.time_out(stage, stuck, main, tells="what why", who="who why" if in_default and behind else "")
    endings.collapse(stage)
    return (culprit,)


def _rank0_work(stage: Stage) -> tuple[int, ...]:
    """Rank 0 alone evaluates or saves for longer than the time-out."""
    acts.start(stage)
    acts.train(stage)
    stage.rank(0, stage.rng.choice(("Saving checkpoint to /checkpoints/step", "Evaluating on 48211 samples ...")))
    stuck, main = acts.hold(stage, {0: 0})
    in_default = all(one.call is not None and one.call.group.uid == 0 for one in stuck.values())
    acts.time_out(stage, stuck, main, tells="what why", who="who" if in_default else "")
    endings.collapse(stage)
    return (0,)


def _pipeline(stage: Stage) -> tuple[int, ...]:
    """One stage's rank stalls; the wait spreads through tensor, pipeline and data groups."""
    job = stage.job
    if job.parallelism != "megatron":
        stage.job = job = replace(job, parallelism="megatron", groups=groups_of(job.world, "megatron"))
    acts.start(stage)
    acts.train(stage)
    culprit = stage.rng.randrange(job.world // 2, job.world)
    stuck, main = acts.hold(stage, {culprit: 1})
    acts.time_out(stage, stuck, main, tells="what why")
    endings.collapse(stage)
    return (culprit,)


def _differs(stage: Stage, op: str | None, factor: float | None) -> tuple[int, ...]:
    """All ranks are in the same number of the default group, one with another operation or size."""
    parallelism = stage.rng.choice(("ddp", "zero"))
    stage.job = replace(stage.job, parallelism=parallelism, groups=groups_of(stage.job.world, parallelism))
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    stuck, main = acts.hold(stage, {culprit: 0})
    example = next(iter(stuck.values()))
    if example.call is None:
        raise ValueError("nobody waits")
    numel = None if factor is None else int(example.call.numel_in * factor)
    if numel is not None and stage.job.torch in ("1.13", "2.0"):
        # these releases do not print sizes: only the operation can tell
        stage.job = replace(stage.job, torch="2.2")
    stuck[culprit] = replace(example, enqueued=example.seq)
    main[culprit] = replace(main[culprit], enqueued=example.seq, call=example.call)
    acts.time_out(stage, stuck, main, ops={culprit: (op, numel)}, tells="what why")
    endings.collapse(stage)
    return (culprit,)


def _other_operation(stage: Stage) -> tuple[int, ...]:
    return _differs(stage, stage.rng.choice(("BROADCAST", "ALLGATHER", "REDUCE")), None)


def _other_size(stage: Stage) -> tuple[int, ...]:
    return _differs(stage, None, stage.rng.choice((0.5, 0.75, 2.0)))


def _swapped(stage: Stage) -> tuple[int, ...]:
    """One rank makes two calls in the other order: it is found in the second while all are in the first."""
    return _differs(stage, "_ALLGATHER_BASE", 0.25)


def _watchdog_stuck(stage: Stage) -> tuple[int, ...]:
    """A rank's watchdog is blocked in a CUDA call; its heartbeat monitor ends it, the others time out later or are ended."""
    if stage.job.torch in ("1.13", "2.0"):
        stage.job = replace(stage.job, torch="2.4", nccl="2.20.5")
    acts.start(stage)
    acts.train(stage)
    culprit = stage.pick()
    seconds = {"2.2": 600, "2.4": 600}.get(stage.job.torch, 480)
    stage.clock += seconds
    fields: dict[str, Any] = {**stage.group_fields(stage.job.groups[0], culprit), "works": 2, "seconds": seconds}
    stage.c10(culprit, "heartbeat.timed_out", at=stage.clock, **fields)
    level = "head_fatal" if stage.job.torch in ("2.2", "2.4") else "head"
    stage.c10(culprit, "heartbeat.stuck", at=stage.clock, tells="what why who", level=level, **fields)
    stage.c10(culprit, "heartbeat.gil", at=stage.clock + 0.3, **fields)
    stage.c10(culprit, "heartbeat.exit", at=stage.clock + 1, level="head_fatal", **fields)
    stage.deaths.append((stage.clock + 1.2, culprit, -6))
    endings.collapse(stage)
    return (culprit,)


def _init_never_ends(stage: Stage) -> tuple[int, ...]:
    """Rank 0 never publishes NCCL's id: the others wait at the store until its time-out."""
    acts.start(stage, connect=False)
    stage.clock += 600
    # only the keys that newer releases print say that [0] is of the default group
    tells = "what why who" if stage.job.torch in ("2.6", "2.9", "2.13") else "what why"
    for rank in range(1, stage.job.world):
        error = render("torch", "store.wait", stage.job.torch, timeout=600000, key="0")
        text = render("torch", "store.unique_id", stage.job.torch, group_rank=rank, key="0", error=error)
        exception = "RuntimeError" if stage.job.torch in ("1.13", "2.0") else "torch.distributed.DistBackendError"
        acts.traceback(stage, rank, f"{exception}: {text}", place="setup", tells=tells, named=True)
    endings.collapse(stage)
    return (0,)


SITUATIONS = (
    Situation(
        "rank-missing",
        "one rank never joins a collective",
        _missing,
        "perf.hang",
        "rank-missing-from-collective",
        _MISSING,
        absence=True,
    ),
    Situation(
        "rank0-work-too-long",
        "rank 0 works alone for longer than the time-out",
        _rank0_work,
        "perf.hang",
        "rank-missing-from-collective",
        _MISSING,
        absence=True,
    ),
    Situation(
        "pipeline-stall",
        "a stall of one stage spreads through all groups",
        _pipeline,
        "perf.hang",
        "rank-missing-from-collective",
        _MISSING,
        absence=True,
        nodes=2,
    ),
    Situation(
        "other-operation",
        "one rank calls another operation at the same number",
        _other_operation,
        "perf.hang",
        "collective-operation-mismatch",
        _LOGIC,
    ),
    Situation(
        "other-size",
        "one rank calls with another size at the same number",
        _other_size,
        "perf.hang",
        "collective-shape-mismatch",
        (*_LOGIC, "fix-consistency-between-devices", "fix-tensor-api-usage"),
    ),
    Situation(
        "swapped-order",
        "one rank makes two calls in the other order",
        _swapped,
        "perf.hang",
        "reordered-collectives",
        _LOGIC,
    ),
    Situation(
        "watchdog-stuck",
        "the heartbeat monitor ends a rank whose watchdog hangs",
        _watchdog_stuck,
        "perf.hang",
        "watchdog-without-heartbeat",
        ("fix-behavior-logic", "fix-communication-configuration", "fix-dependency-version", "other"),
    ),
    Situation(
        "nccl-init-never-ends",
        "rank 0 never publishes NCCL's id",
        _init_never_ends,
        "comm.hang-timeout",
        "nccl-id-not-received",
        ("fix-communication-configuration", "fix-network-setting", "fix-device-assignment", "fix-behavior-logic"),
        also=("prep.hang-timeout",),
    ),
)
